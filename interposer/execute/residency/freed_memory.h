// Freed ranges: they keep addresses and mapping for the next allocation of their size, until their
// memory is needed elsewhere.
//
// Called by residency's classes with the state lock held. Retiring a range takes its mapping,
// memory and addresses; nothing else does.
//
// Invariants
//  1. Freed memory serves another allocation only with its earlier work as ready_after.
//  2. A range that a call names is neither reused nor retired, nor is one retired that work uses.
// Never: waits.
#pragma once

#include "interposer/driver/chunk_pool.h"
#include "interposer/execute/residency/freed_ranges.h"
#include "interposer/execute/residency/mappings.h"
#include "interposer/execute/residency/parked_ranges.h"
#include "interposer/execute/residency/range_table.h"
#include "interposer/execute/residency/range_uses.h"
#include "interposer/execute/state/counters.h"

namespace spillway::interposer {

class FreedMemory {
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
  explicit FreedMemory(const Parts& parts) : parts_(parts) {}

  void Add(Range* range) { freed_.Add(range); }
  // A range of that size as it is: no driver call. Null when there is none.
  Range* Reuse(size_t bytes);
  bool HasOfSize(size_t bytes) {
    return freed_.FindOfSize(bytes, [](const Range*) { return true; }) != nullptr;
  }

  // Retires the range with most device memory that no work uses. Only chunks of at most
  // `piece_bytes` count. False when there is none.
  bool RetireIdle(size_t piece_bytes = kLargestChunkBytes);
  // Whether retiring all of them would give that much.
  bool IdleBytesReach(size_t bytes, size_t piece_bytes = kLargestChunkBytes);
  // The one freed longest ago, of at most that size: memory that is taken again all the time is
  // younger.
  bool RetireOldestIdle(size_t most_bytes);
  // Work uses some that has device memory.
  bool AnyIsBusy();
  // All without device memory: they hold addresses only.
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

  void Clear() { freed_.Clear(); }

 private:
  bool MayServe(Range* freed);
  void Retire(Range* range);

  const Parts parts_;
  FreedRanges freed_;
};

}  // namespace spillway::interposer
