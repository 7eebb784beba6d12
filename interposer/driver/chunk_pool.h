// The physical device memory of this job: handles of a few sizes, created once, reused, never more than the budget.
//
// Called by execute with the state lock held. Owns every handle that is not part of a range at the moment; a range
// owns the chunks that are mapped into it and gives them back when they are idle.
//
// Invariants
//  1. held_bytes() <= budget at every moment (chunks free and lent, and what is charged); after the budget has become less,
//     as soon as what is lent has come back: until then nothing is given out.
//  2. A chunk in the pool is mapped nowhere and no device work uses it.
//  3. Take gives all that was asked for or nothing, and never waits.
// Never: maps, copies, or decides whose memory is given up.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

inline constexpr size_t kMiB = size_t{1} << 20;
inline constexpr size_t kGranuleBytes = 2 * kMiB;  // cuMemGetAllocationGranularity on every supported device

constexpr size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

struct Chunk {
  CUmemGenericAllocationHandle handle;
  size_t bytes;
  bool shared = false;  // other processes may have it: it serves no other allocation
};
using Chunks = std::vector<Chunk>;

// The device promises that its memory can be exported by file descriptor.
bool PromisesShareableMemory(CUdevice device);

class ChunkPool {
 public:
  // Chunks can be exported by file descriptor if `shareable`.
  ChunkPool(int device, size_t budget_bytes, bool shareable = false)
      : device_(device), shareable_(shareable), budget_bytes_(budget_bytes), ceiling_bytes_(budget_bytes) {}

  // Appends chunks of `bytes` in all (a multiple of the granule) to `out`; false when neither the pool nor the
  // budget nor the device has them.
  bool Take(size_t bytes, Chunks* out);
  // What others may have is given back to the driver, which keeps it for them.
  void Give(Chunks* chunks);
  void ReleaseAll();

  // Memory outside the pool that counts against the budget (passed-through allocations).
  bool Charge(size_t bytes);
  void Discharge(size_t bytes) { charged_bytes_ -= bytes; }

  // What is free and more than the new budget goes back to the driver.
  void SetBudget(size_t bytes);
  size_t budget_bytes() const { return budget_bytes_; }
  bool IsOverBudget() const { return held_bytes() > budget_bytes_; }
  bool shareable() const { return shareable_; }
  size_t held_bytes() const { return created_bytes_ + charged_bytes_; }
  size_t held_peak_bytes() const { return held_peak_bytes_; }
  // Without waiting: free chunks, and new ones within the budget and what the device was last seen to have.
  size_t ObtainableBytes() const {
    return free_bytes_ + std::max(ceiling_bytes_, held_bytes()) - held_bytes();
  }

 private:
  static constexpr std::array<size_t, 3> kClasses = {256 * kMiB, 32 * kMiB, 2 * kMiB};

  size_t TakeFree(size_t bytes, Chunks* out);
  bool CreateFor(size_t bytes, Chunks* out);
  bool CreateOne(size_t bytes, Chunks* out);
  CUresult Create(size_t bytes, CUmemAllocationHandleType type, CUmemGenericAllocationHandle* out) const;
  void LookForMoreNowAndThen();
  bool ReleaseForRoom(size_t bytes);
  void ReleaseOne(size_t index);

  // Constant after construction.
  const int device_;
  const bool shareable_;
  // Guarded by the caller's state lock.
  size_t budget_bytes_;
  std::array<Chunks, kClasses.size()> free_;
  size_t free_bytes_ = 0;
  size_t created_bytes_ = 0;
  size_t charged_bytes_ = 0;
  size_t held_peak_bytes_ = 0;
  size_t ceiling_bytes_;  // the budget, or less while others fill the device
  size_t takes_below_budget_ = 0;
};

}  // namespace spillway::interposer
