// Scans bytes for words that may be addresses of ours.
//
// A kernel loads a pointer as one aligned word of eight bytes, so only those are checked. An
// integer that looks like an address only keeps memory resident needlessly.
//
// Note [How much of a payload is scanned]
// Payloads up to kWholeBytes are scanned in full. Pointer tables, parameter blocks and node pools
// are mostly this small, and the scan (about 10 GB/s) costs less than the copy. Of larger payloads
// the beginning, the end and one page in sixteen are scanned: images, weights and tokens hold no
// addresses. If a sampled page holds one, the whole payload is scanned. The full scan
// (execute/memory_scan.h) finds rare pointers.
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

// Words that may be addresses of ours: lowest <= word < highest.
class WordBounds {
 public:
  constexpr WordBounds() = default;
  constexpr WordBounds(CUdeviceptr lowest, CUdeviceptr highest)
      : lowest_(lowest), span_(highest > lowest ? highest - lowest : 0) {}
  static constexpr WordBounds Around(WordBounds a, WordBounds b) {
    if (a.IsEmpty() || b.IsEmpty()) return a.IsEmpty() ? b : a;
    return {std::min(a.lowest_, b.lowest_), std::max(a.highest(), b.highest())};
  }
  constexpr CUdeviceptr lowest() const { return lowest_; }
  constexpr CUdeviceptr highest() const { return lowest_ + span_; }
  constexpr bool IsEmpty() const { return span_ == 0; }
  constexpr bool Contain(CUdeviceptr word) const { return word - lowest_ < span_; }

 private:
  CUdeviceptr lowest_ = 0;
  CUdeviceptr span_ = 0;
};

// Calls found({at, word}) for each word within bounds. The `bytes` at `data` lie, or will lie, at
// device address `at`; only multiples of eight there are checked.
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
  // A map counts as a pointer in its first eight bytes.
  ForEachTensorMap(data, bytes, -at % kTensorMapAlignment,
                   [&](std::size_t offset, CUdeviceptr address) {
                     if (bounds.Contain(address)) found(HeldWord{at + offset, address});
                   });
}

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

template <class Found>
void ScanPayload(const void* data, std::size_t bytes, CUdeviceptr at, WordBounds bounds,
                 Found found) {
  if (bounds.IsEmpty()) return;
  if (bytes > kWholeBytes && !LooksLikeHolding(data, bytes, at, bounds)) return;
  ScanWords(data, bytes, at, bounds, found);
}

}  // namespace spillway::interposer
