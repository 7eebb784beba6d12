#include "interposer/driver/address_arena.h"

#include <algorithm>

#include "interposer/driver/chunk_pool.h"
#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using driver::Driver;
namespace {

constexpr size_t kReservationBytes = size_t{64} << 30;
constexpr size_t kGuardBytes = kGranuleBytes;

}  // namespace

CUdeviceptr AddressArena::Take(size_t bytes) {
  const size_t span = bytes + kGuardBytes;
  const auto fits = [span](const auto& hole) { return hole.second >= span; };
  auto hole = std::find_if(holes_.begin(), holes_.end(), fits);
  if (hole == holes_.end()) {
    if (!Grow(span)) return 0;
    hole = std::find_if(holes_.begin(), holes_.end(), fits);
  }
  const auto [base, hole_bytes] = *hole;
  holes_.erase(hole);
  if (hole_bytes > span) holes_.emplace(base + span, hole_bytes - span);
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
  AddHole(base, reservation_bytes);
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
