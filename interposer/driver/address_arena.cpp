#include "interposer/driver/address_arena.h"

#include <algorithm>

#include "interposer/driver/chunk_pool.h"
#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using driver::Driver;
namespace {

constexpr size_t kReservationBytes = size_t{64} << 30;
constexpr size_t kGuardBytes = kGranuleBytes;

// See Note [No address is a pair of small numbers].
constexpr CUdeviceptr kHalfBytes = CUdeviceptr{1} << 32;
constexpr CUdeviceptr kSmall = CUdeviceptr{16} << 20;

// The lowest base from `base` on at which no address of the range has a small lower half.
CUdeviceptr PlaceFor(CUdeviceptr base, size_t bytes) {
  if (bytes > kHalfBytes - 2 * kSmall) return base;
  const CUdeviceptr around =
      RoundUp(base - kSmall + 1, kHalfBytes);  // first zone of small halves from `base` on
  return base + bytes <= around - kSmall ? base : around + kSmall;
}

}  // namespace

CUdeviceptr AddressArena::Take(size_t bytes) {
  CUdeviceptr base = TakeFromHole(bytes);
  if (!base && Grow(bytes + 2 * kGuardBytes + 2 * kSmall)) base = TakeFromHole(bytes);
  return base;
}

// Returns 0 if no hole is large enough.
CUdeviceptr AddressArena::TakeFromHole(size_t bytes) {
  const size_t span = bytes + kGuardBytes;
  const auto end_of = [](const auto& hole) { return hole.first + hole.second; };
  const auto hole = std::find_if(holes_.begin(), holes_.end(), [&](const auto& hole) {
    return PlaceFor(hole.first, bytes) + span <= end_of(hole);
  });
  if (hole == holes_.end()) return 0;
  const CUdeviceptr begin = hole->first, end = end_of(*hole), base = PlaceFor(begin, bytes);
  holes_.erase(hole);
  if (begin < base) holes_.emplace(begin, base - begin);
  if (base + span < end) holes_.emplace(base + span, end - base - span);
  return base;
}

void AddressArena::Give(CUdeviceptr base, size_t bytes) { AddHole(base, bytes + kGuardBytes); }

bool AddressArena::Owns(CUdeviceptr address) const {
  return std::any_of(reservations_.begin(), reservations_.end(),
                     [address](const Reservation& r) { return address - r.base < r.bytes; });
}

bool AddressArena::Grow(size_t bytes) {
  const size_t reservation_bytes = std::max(kReservationBytes, RoundUp(bytes, kGranuleBytes));
  CUdeviceptr base;
  if (Driver().cuMemAddressReserve(&base, reservation_bytes, kGranuleBytes, 0, 0) != CUDA_SUCCESS)
    return false;
  reservations_.push_back({base, reservation_bytes});
  AddHole(base + kGuardBytes, reservation_bytes - kGuardBytes);
  return true;
}

void AddressArena::AddHole(CUdeviceptr base, size_t bytes) {
  auto next = holes_.lower_bound(base);
  if (next != holes_.end() && base + bytes == next->first) {
    bytes += next->second;
    next = holes_.erase(next);
  }
  if (next != holes_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == base) {
      before->second += bytes;
      return;
    }
  }
  holes_.emplace(base, bytes);
}

void AddressArena::ReleaseAll() {
  for (const Reservation& r : reservations_) Driver().cuMemAddressFree(r.base, r.bytes);
  reservations_.clear();
  holes_.clear();
}

}  // namespace spillway::interposer
