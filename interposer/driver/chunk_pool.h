// The job's physical device memory: handles of two sizes, reused, within the budget.
//
// Called by execute with the state lock held. The pool owns every handle that is not part of a
// range. A range owns the chunks mapped into it, and returns them when no device work uses them.
// Invariants
//  1. held_bytes() <= budget at every moment: free chunks, lent chunks and charges. After the
//     budget was lowered, Take gives nothing until enough lent chunks have come back.
//  2. A chunk in the pool is mapped nowhere, and no device work uses it.
//  3. Take gives all bytes or none, and never waits.
//  4. A chunk goes back to the driver in three cases. The budget or a charge needs its room; Take
//     may cut it (Note [Cutting]); or ReleaseFree.
// Never: maps, copies, or chooses memory to evict.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

inline constexpr size_t kMiB = size_t{1} << 20;
inline constexpr size_t kGranuleBytes = 2 * kMiB;  // cuMemGetAllocationGranularity, all GPUs

constexpr size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Note [Cutting]
// A range is made of large chunks and, for its rest, of granules. Creating a chunk costs as much as
// mapping a hundred, so chunks live long. Cutting replaces a large chunk by new granules.
// If the budget is just enough, each iteration needs granules at the same places. Free, idle ranges
// that are still mapped exchange their granules for large chunks: so callers first ask Take not to
// cut. Without such ranges a large chunk is cut. Cut chunks are never merged, so a job cuts ever
// fewer. Waiting for the work of a range with granules would cost microseconds in every iteration.
// Two sizes suffice. With more or larger ones, some size is always short as ranges pass chunks on.
// (Traces of ResNet, VGG and GPT at 100 and 102 % of their peaks.) If much memory moves, sizes from
// 64 to 2 MiB end up as small as these two (ResNet-50 at 50 and 25 %: as many calls of cuMemMap).
// Merging chunks, or one chunk per range, costs more in creations than it saves.
inline constexpr size_t kLargeChunkBytes = 8 * kMiB;

enum class Cutting : bool { kNo, kYes };

struct Chunk {
  CUmemGenericAllocationHandle handle;
  size_t bytes;
  bool shared = false;  // other processes may hold it: it serves no other allocation
};
using Chunks = std::vector<Chunk>;

inline size_t GranulesOf(const Chunks& chunks) {
  return std::count_if(chunks.begin(), chunks.end(),
                       [](const Chunk& chunk) { return chunk.bytes == kGranuleBytes; });
}

bool PromisesShareableMemory(CUdevice device);

class ChunkPool {
 public:
  ChunkPool(int device, size_t budget_bytes, bool shareable = false)
      : device_(device),
        shareable_(shareable),
        budget_bytes_(budget_bytes),
        ceiling_bytes_(budget_bytes) {}

  // Appends chunks of `bytes` in all (a multiple of the granule) to `out`. False: pool, budget or
  // device lack the memory, or it would have to be cut.
  bool Take(size_t bytes, Chunks* out, Cutting cutting = Cutting::kYes);
  // Shared chunks go back to the driver, which keeps them for the other processes.
  void Give(Chunks* chunks);
  void ReleaseAll();
  // Returns at most `bytes` of free chunks to the driver. Answers how many bytes.
  size_t ReleaseFree(size_t bytes);

  // Memory outside the pool that counts against the budget (passed-through allocations).
  bool Charge(size_t bytes);
  void Discharge(size_t bytes) { charged_bytes_ -= bytes; }

  // Free chunks beyond the new budget go back to the driver.
  void SetBudget(size_t bytes);
  size_t budget_bytes() const { return budget_bytes_; }
  bool IsOverBudget() const { return held_bytes() > budget_bytes_; }
  size_t ExcessBytes() const { return std::max(held_bytes(), budget_bytes_) - budget_bytes_; }
  bool shareable() const { return shareable_; }
  size_t free_bytes() const { return free_bytes_; }
  size_t held_bytes() const { return created_bytes_ + charged_bytes_; }
  size_t held_peak_bytes() const { return held_peak_bytes_; }
  // Available without waiting: free chunks, and new ones within budget and known device memory.
  size_t ObtainableBytes() const { return free_bytes_ + RoomBytes(); }

 private:
  enum Class { kLarge, kGranule, kClassCount };
  static constexpr std::array<size_t, kClassCount> kClasses = {kLargeChunkBytes, kGranuleBytes};

  bool FitsUncut(size_t bytes) const;
  size_t TakeFree(size_t bytes, Chunks* out);
  bool CreateFor(size_t bytes, Chunks* out);
  bool CreateOne(size_t bytes, Chunks* out);
  CUresult Create(size_t bytes, CUmemAllocationHandleType type,
                  CUmemGenericAllocationHandle* out) const;
  size_t RoomBytes() const { return std::max(ceiling_bytes_, held_bytes()) - held_bytes(); }
  void RetryFullDevice();
  bool ReleaseForRoom(size_t bytes, size_t limit_bytes);
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
  size_t ceiling_bytes_;  // the budget, or less while other tenants fill the device
  size_t takes_below_budget_ = 0;
};

}  // namespace spillway::interposer
