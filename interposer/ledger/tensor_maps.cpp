#include "interposer/ledger/tensor_maps.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace spillway::interposer {
namespace {

struct Digest {
  std::uint64_t low;
  std::uint64_t high;
  bool operator==(const Digest&) const = default;
};

struct Entry {
  Digest digest;
  std::atomic<CUdeviceptr> address;
  const Entry* next;
};

constexpr std::size_t kBuckets = std::size_t{1} << 14;
constinit std::array<std::atomic<Entry*>, kBuckets> buckets{};
constinit std::atomic<bool> any{false};

// Two folded products of each word with odd constants: every bit reaches both halves.
Digest Of(const void* bytes) {
  std::array<std::uint64_t, kTensorMapBytes / sizeof(std::uint64_t)> words;
  std::memcpy(words.data(), bytes, sizeof words);
  Digest sum{0x9e3779b97f4a7c15u, 0xd1b54a32d192ed03u};
  for (const std::uint64_t word : words) {
    const auto low = static_cast<unsigned __int128>(sum.low ^ word) * 0xff51afd7ed558ccdu;
    const auto high = static_cast<unsigned __int128>(sum.high ^ word) * 0xc4ceb9fe1a85ec53u;
    sum = {static_cast<std::uint64_t>(low) ^ static_cast<std::uint64_t>(high >> 64),
           static_cast<std::uint64_t>(high) + static_cast<std::uint64_t>(low >> 64)};
  }
  return sum;
}

std::atomic<Entry*>& BucketOf(const Digest& digest) { return buckets[digest.low % kBuckets]; }

const Entry* Search(const Entry* first, const Digest& wanted) {
  while (first && !(first->digest == wanted)) first = first->next;
  return first;
}

}  // namespace

void NoteTensorMap(const CUtensorMap& map, CUdeviceptr address) {
  const Digest digest = Of(&map);
  std::atomic<Entry*>& bucket = BucketOf(digest);
  Entry* first = bucket.load(std::memory_order_acquire);
  if (const Entry* known = Search(first, digest)) {
    const_cast<Entry*>(known)->address.store(address, std::memory_order_release);
    return;
  }
  // Two threads may note equal content at once; the newer entry is found first.
  auto* const made = new Entry{digest, {address}, first};
  while (!bucket.compare_exchange_weak(first, made, std::memory_order_acq_rel)) made->next = first;
  any.store(true, std::memory_order_release);
}

bool AnyTensorMaps() { return any.load(std::memory_order_acquire); }

CUdeviceptr TensorMapAddress(const void* bytes) {
  const Digest digest = Of(bytes);
  const Entry* const found = Search(BucketOf(digest).load(std::memory_order_acquire), digest);
  return found ? found->address.load(std::memory_order_acquire) : 0;
}

}  // namespace spillway::interposer
