// The physical device memory of this job: handles of a few sizes, created once, reused, never more
// than the budget.
//
// Called by execute with the state lock held. Owns every handle that is not part of a range at the
// moment; a range owns the chunks that are mapped into it and gives them back when they are idle.
//
// Invariants
//  1. held_bytes() <= budget at every moment (chunks free and lent, and what is charged); after the
//  budget has become less,
//     as soon as what is lent has come back: until then nothing is given out.
//  2. A chunk in the pool is mapped nowhere and no device work uses it.
//  3. Take gives all that was asked for or nothing, and never waits.
//  4. A chunk goes back to the driver only where the budget, or another's charge, leaves no room
//  for it, where Take may
//     cut (Note [Cutting]), or by ReleaseFree.
// Never: maps, copies, or decides whose memory is given up.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

inline constexpr size_t kMiB = size_t{1} << 20;
inline constexpr size_t kGranuleBytes =
    2 * kMiB;  // cuMemGetAllocationGranularity on every supported device

constexpr size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Note [Cutting]
// Memory is made of large chunks and, for what is left of a range, of granules. To create a chunk
// costs as much as to map a hundred, so chunks live long; a large one that is cut is given back and
// granules are created for it, one by one. A budget that is just enough has a need for granules
// that repeats itself with each iteration. Ranges that are free, idle, and still mapped give theirs
// up for large chunks: so Take is asked first not to cut. Where there are none, a large one is cut:
// it is never put together again, so a job cuts ever fewer, while to wait for the work of a range
// that has granules would cost the device some microseconds in every iteration. Two sizes are
// enough for that. With more of them, or with larger ones, an iteration's ranges pass chunks on in
// orders in which some size is always short (traces of ResNet, VGG and GPT at 100 and 102 % of
// their peaks). Where much moves, sizes from 64 to 2 MiB, each half of the one before, end up as
// small as these two do (ResNet-50 at 50 and 25 %: as many calls of cuMemMap); to put chunks
// together again, or to have one for each range, costs more in creations than it spares.
inline constexpr size_t kLargeChunkBytes = 8 * kMiB;

enum class Cutting : bool { kNo, kYes };

struct Chunk {
  CUmemGenericAllocationHandle handle;
  size_t bytes;
  bool shared = false;  // other processes may have it: it serves no other allocation
};
using Chunks = std::vector<Chunk>;

// How many of them are granules.
inline size_t GranulesOf(const Chunks& chunks) {
  return std::count_if(chunks.begin(), chunks.end(),
                       [](const Chunk& chunk) { return chunk.bytes == kGranuleBytes; });
}

// The device promises that its memory can be exported by file descriptor.
bool PromisesShareableMemory(CUdevice device);

class ChunkPool {
 public:
  // Chunks can be exported by file descriptor if `shareable`.
  ChunkPool(int device, size_t budget_bytes, bool shareable = false)
      : device_(device),
        shareable_(shareable),
        budget_bytes_(budget_bytes),
        ceiling_bytes_(budget_bytes) {}

  // Appends chunks of `bytes` in all (a multiple of the granule) to `out`; false when neither the
  // pool nor the budget nor the device has them, or has them only in chunks that would have to be
  // cut.
  bool Take(size_t bytes, Chunks* out, Cutting cutting = Cutting::kYes);
  // What others may have is given back to the driver, which keeps it for them.
  void Give(Chunks* chunks);
  void ReleaseAll();
  // Of the free chunks so many bytes, or less, go back to the driver; answers how many.
  size_t ReleaseFree(size_t bytes);

  // Memory outside the pool that counts against the budget (passed-through allocations).
  bool Charge(size_t bytes);
  void Discharge(size_t bytes) { charged_bytes_ -= bytes; }

  // What is free and more than the new budget goes back to the driver.
  void SetBudget(size_t bytes);
  size_t budget_bytes() const { return budget_bytes_; }
  bool IsOverBudget() const { return held_bytes() > budget_bytes_; }
  size_t ExcessBytes() const { return std::max(held_bytes(), budget_bytes_) - budget_bytes_; }
  bool shareable() const { return shareable_; }
  size_t free_bytes() const { return free_bytes_; }
  size_t held_bytes() const { return created_bytes_ + charged_bytes_; }
  size_t held_peak_bytes() const { return held_peak_bytes_; }
  // Without waiting: free chunks, and new ones within the budget and what the device was last seen
  // to have.
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
  void LookForMoreNowAndThen();
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
  size_t ceiling_bytes_;  // the budget, or less while others fill the device
  size_t takes_below_budget_ = 0;
};

}  // namespace spillway::interposer
