// Freed ranges: they keep addresses and mapping for the next allocation of their size, also while
// their memory serves others.
//
// Called by residency's classes with the state lock held.
//
// Note [Mappings outlive their memory]
// Mapping memory anew costs the program's thread some 60 us, and a range can be unmapped only once
// its work is done. So a freed range stays mapped when its chunks are needed elsewhere: they are
// mapped a second time. Chunk::holder says whose memory a chunk is. A freed range serves its size
// again, without a driver call, when no live range holds any of its chunks. Of several, the one
// with the oldest addresses serves. So an iteration that repeats finds the same chunks taken at
// each place, chooses the same ranges, and needs no mapping calls from its second or third time on,
// even when it fills the budget. (docs/decisions/0012-mappings-outlive-their-memory.md)
//
// Invariants
//  1. Freed memory serves another allocation only with its earlier work as ready_after. So where a
//     chunk is idle, all freed ranges that are mapped onto it are idle.
//  2. A chunk has one holder. Only the holder's addresses are used, and a holder's first user finds
//     undefined bytes: nothing is passed on from one mapping to another.
//  3. The memory of a range that a call names is not taken.
//  4. A range is unmapped only when no work uses it. While a call names it, it keeps its addresses.
// Never: waits.
#pragma once

#include "base/function_ref.h"
#include "interposer/driver/chunk_pool.h"
#include "interposer/execute/residency/freed_ranges.h"
#include "interposer/execute/residency/mappings.h"
#include "interposer/execute/residency/parked_ranges.h"
#include "interposer/execute/residency/range_table.h"
#include "interposer/execute/residency/range_uses.h"
#include "interposer/execute/state/counters.h"

namespace spillway::interposer {

class FreedMemory final : public MappedChunks {
 public:
  struct Parts {
    RangeTable* ranges;
    Mappings* mappings;
    ChunkPool* chunks;
    ParkedRanges* parked;
    RangeUses* uses;
    Timeline* timeline;
    Counters* counters;
  };
  explicit FreedMemory(const Parts& parts) : parts_(parts) { parts_.chunks->SetMapped(this); }
  FreedMemory(const FreedMemory&) = delete;
  FreedMemory& operator=(const FreedMemory&) = delete;

  void Add(Range* range);
  // Before it is given memory.
  void Remove(Range* range) { freed_.Remove(range); }
  // A range of that size as it is: no driver call. Null when there is none.
  Range* Reuse(size_t bytes);
  bool HasOfSize(size_t bytes);
  // The same of one that is mapped onto just these chunks.
  Range* ReuseMappedOnto(size_t bytes, const Chunks& chunks);

  // Chunks of at most `bytes` in all that freed ranges hold, and the work that their next user must
  // wait for. Whole ranges first, the largest ones. While evicted memory is parked: none.
  struct Taken {
    Chunks chunks;
    std::vector<Range*> holders;  // of each chunk, until now; null: the pool
    UseList ready_after;
    size_t bytes = 0;
  };
  Taken Take(size_t bytes);
  // Just these, also of the pool: they have no holder.
  Taken TakeAll(const Chunks& chunks);
  // Whether they are free, or freed ranges hold them. kIdle: and no work uses them.
  enum class Wanted : bool { kForNew, kIdle };
  bool MayTakeAll(const Chunks& chunks, Wanted wanted);
  // Whether they are, or will be once work is complete that does not wait for the program.
  bool AreComing(const Chunks& chunks);
  void PutBack(const Taken& taken);

  // Gives the pool what the range with most device memory that no work uses holds. Only chunks of
  // at most `piece_bytes` count. False when there is none.
  bool YieldIdle(size_t piece_bytes = kLargestChunkBytes);
  // Whether all of them together would give that much.
  bool IdleBytesReach(size_t bytes, size_t piece_bytes = kLargestChunkBytes);
  // The one freed longest ago, of at most that size: memory that is taken again all the time is
  // younger.
  bool YieldOldestIdle(size_t most_bytes);
  // Work uses some that has device memory.
  bool AnyIsBusy();
  // Chunks that are no pieces of a layout. kIdle: no work uses them. kUnderWay: some does, which
  // does not wait for the program.
  enum class Work : bool { kIdle, kUnderWay };
  size_t BytesBesidePieces(Work work);
  // As YieldIdle, but only such chunks count.
  bool YieldIdleBesidePieces();
  // Retires all without a mapping: they hold addresses only.
  void RetireUnmapped();
  // Gives up idle ranges' parked host memory one by one, until `suffices` says so.
  template <class Suffices>
  bool DiscardParkedUntil(Suffices suffices) {
    for (Range* freed = freed_.oldest(); freed; freed = FreedRanges::Younger(freed)) {
      if (freed->place != Place::kParked || !parts_.uses->IsIdle(freed)) continue;
      parts_.parked->Discard(freed);
      if (suffices()) return true;
    }
    return false;
  }

  // Device memory that is free once its work is complete.
  size_t PendingBytes() const;
  void AddNextTo(FirstUses* first);
  // Makes the completion of what uses it known soon, and looks.
  void MarkBusy();

  void Unmap(Chunk* chunk) override;
  void Clear() { freed_.Clear(); }

 private:
  bool MayServe(Range* freed);
  Range* TakeUp(Range* freed);
  bool MayTake(const Chunk& chunk, const Range& freed);
  bool MayTakeFrom(Range* freed);
  bool YieldIdleWithMost(base::FunctionRef<size_t(const Range&)> bytes_of);
  Range* LargestToTake(size_t most_bytes, const std::vector<Range*>& tried);
  Range* FirstMappedOnto(const Chunk* chunk) const;
  void TakeFrom(Range* freed, size_t most_bytes, Taken* taken);
  void Yield(Range* freed);
  void RetireSurplus();
  void Retire(Range* range);
  static Chunks TakeMapping(Range* range);

  const Parts parts_;
  FreedRanges freed_;
};

}  // namespace spillway::interposer
