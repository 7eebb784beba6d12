// Looks through bytes for words that may be addresses of ours.
//
// Called by execute on any thread, without a lock, on bytes that the caller may read. Owns nothing.
//
// A kernel that follows a pointer in memory loads it as one aligned word of eight bytes; what lies
// between such places is not looked at. An integer that looks like an address makes memory stay
// that could have left, no more.
//
// Note [How much of a payload is scanned]
// Up to kWholeBytes a payload is scanned in full: pointer tables, parameter blocks and node pools
// that a program writes are mostly this small, and a scan (about 10 GB/s) then costs less than the
// copy. Of larger payloads the beginning, the end and a page of every sixteen are looked at:
// images, weights and tokens, which hold no addresses, pass at a sixteenth of the price. If one of
// these pages holds an address, all of the payload is scanned. Pointers that lie thinly in large
// payloads are left to the full scan (execute/memory_scan.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "interposer/driver/cuda_abi.h"
#include "interposer/ledger/contents.h"
#include "interposer/ledger/tensor_maps.h"

namespace spillway::interposer {

inline constexpr std::size_t kWholeBytes = std::size_t{1} << 20;
inline constexpr std::size_t kScanPageBytes = 4096;
inline constexpr std::size_t kPagesPerSample = 16;

// The words that may be addresses of ours: lowest <= word < highest.
struct WordBounds {
  CUdeviceptr lowest = 0;
  CUdeviceptr highest = 0;
  bool Contain(CUdeviceptr word) const { return word - lowest < highest - lowest; }
};

// Calls found({at, word}) for each word within bounds of `bytes` at `data`, which lie or will lie
// at device address `at`, at multiples of eight there.
template <class Found>
void ScanWords(const void* data, std::size_t bytes, CUdeviceptr at, WordBounds bounds,
               Found found) {
  const auto* first = static_cast<const std::byte*>(data);
  for (std::size_t offset = -at % sizeof(CUdeviceptr); offset + sizeof(CUdeviceptr) <= bytes;
       offset += sizeof(CUdeviceptr)) {
    CUdeviceptr word;
    std::memcpy(&word, first + offset, sizeof word);
    if (bounds.Contain(word)) found(HeldWord{at + offset, word});
  }
  // Tensor maps name memory without showing its address; such a map counts as a pointer in its
  // first eight bytes.
  ForEachTensorMap(data, bytes, -at % kTensorMapAlignment,
                   [&](std::size_t offset, CUdeviceptr address) {
                     if (bounds.Contain(address)) found(HeldWord{at + offset, address});
                   });
}

// Whether a look at some pages finds a word within bounds.
inline bool LooksLikeHolding(const void* data, std::size_t bytes, CUdeviceptr at,
                             WordBounds bounds) {
  bool holds = false;
  const auto look = [&](std::size_t offset) {
    const std::size_t page = std::min(kScanPageBytes, bytes - offset);
    ScanWords(static_cast<const std::byte*>(data) + offset, page, at + offset, bounds,
              [&](const HeldWord&) { holds = true; });
  };
  for (std::size_t offset = 0; offset < bytes && !holds;
       offset += kPagesPerSample * kScanPageBytes) {
    look(offset);
  }
  if (bytes > kScanPageBytes && !holds)
    look((bytes - kScanPageBytes) / kScanPageBytes * kScanPageBytes);
  if (bytes > kScanPageBytes && !holds) look(bytes - kScanPageBytes);
  return holds;
}

// See Note [How much of a payload is scanned].
template <class Found>
void ScanPayload(const void* data, std::size_t bytes, CUdeviceptr at, WordBounds bounds,
                 Found found) {
  if (bounds.lowest == bounds.highest) return;
  if (bytes > kWholeBytes && !LooksLikeHolding(data, bytes, at, bounds)) return;
  ScanWords(data, bytes, at, bounds, found);
}

}  // namespace spillway::interposer
