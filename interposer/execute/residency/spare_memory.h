// How much unallocated device memory a job without a budget keeps for its next allocations.
//
// Called by residency with the state lock held. Pure.
//
// Freed memory goes back to the device, where others may need it. What had to be created soon after
// as much was given back is kept from then on. What stays unused for a window of calls goes.
//
// Invariants
//  1. keep_bytes() is at most kLeastBytes and what was created again after it had been given back.
//  2. Beyond kLeastBytes, memory that went unused in a window goes back at its end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace spillway::interposer {

class SpareMemory {
 public:
  static constexpr std::size_t kLeastBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMostBusyBytes = std::size_t{256}
                                                << 20;  // busy memory beside which more is created
  static constexpr std::uint64_t kFirstWindow = 1024;   // in allocations and frees
  static constexpr std::uint64_t kLongestWindow = 65536;

  std::size_t keep_bytes() const { return keep_bytes_; }

  // So much had to be created for an allocation. Unused memory beside it does not count: it was
  // busy, or mapped in other sizes, and will be so in the next iteration.
  void Created(std::size_t bytes) {
    const std::size_t missed_bytes = std::min(given_back_bytes_, bytes);
    if (missed_bytes == 0) return;
    keep_bytes_ += missed_bytes;
    given_back_bytes_ -= missed_bytes;
    is_missed_ = true;
  }
  void GaveBack(std::size_t bytes) { given_back_bytes_ += bytes; }
  // An allocation or a free was made, which leaves so much unused.
  void Note(std::size_t unused_bytes) {
    least_unused_bytes_ = std::min(least_unused_bytes_, unused_bytes);
    if (++calls_ >= window_) EndWindow();
  }

 private:
  // An iteration longer than the window gave back in its first part what it takes in its second.
  void EndWindow() {
    const std::size_t above_bytes = keep_bytes_ - kLeastBytes;
    keep_bytes_ -= std::min(above_bytes, least_unused_bytes_);
    if (is_missed_) window_ = std::min(2 * window_, kLongestWindow);
    is_missed_ = false;
    calls_ = 0;
    least_unused_bytes_ = ~std::size_t{0};
  }

  std::size_t keep_bytes_ = kLeastBytes;
  std::size_t given_back_bytes_ = 0;  // and not created again
  std::size_t least_unused_bytes_ = ~std::size_t{0};
  std::uint64_t window_ = kFirstWindow;
  std::uint64_t calls_ = 0;
  bool is_missed_ = false;
};

}  // namespace spillway::interposer
