// Launches that, as far as experiments showed, only read memory that records need. Nobody believes
// that: a fingerprint from before the first such launch is compared when an output is dropped.
// (Note [Learned effects] in state/launch_effects.h)
//
// Called by the classes behind JobMemory with the state lock held. Owns the fingerprints of
// Tracked::presumed.
//
// Invariants
//  1. While a call presumably reads memory, no output is dropped that a record makes of it, and
//     none is away without its bytes (MayPresume).
//  2. A drop is complete only if its record's memory is as it was before all presumed reads
//     (RecomputeRecord::compared). Otherwise the output leaves with a copy.
//  3. A fingerprint serves several comparisons while nothing was launched that might lie.
// Never: waits.
#pragma once

#include "interposer/execute/deferred_frees.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/touch_set.h"

namespace spillway::interposer {

class PresumedReads {
 public:
  PresumedReads(JobState& state, DeferredFrees& frees) : state_(state), frees_(frees) {}

  // Whether a call may presumably read the memory now: if it writes after all, nothing is lost.
  bool MayPresume(const Tracked* memory) const SPILLWAY_REQUIRES(kStateLock);
  // A learned launch begins, with its memory in place; it has ended, or was not made.
  void Enter(const Addresses& addresses, TouchSet* set) SPILLWAY_REQUIRES(kStateLock);
  void Leave(TouchSet* set) SPILLWAY_REQUIRES(kStateLock);
  // The record's own launch, which is learned, presumably only reads its inputs.
  void EnterOwn(const RecomputeRecord& record, TouchSet* set) SPILLWAY_REQUIRES(kStateLock);
  // The record begins: what was before says nothing of its memory.
  void Begin(const RecomputeRecord& record) SPILLWAY_REQUIRES(kStateLock);
  // The record's output is leaving without its bytes: enqueues what must be compared meanwhile.
  // False when it cannot be.
  bool Compare(RecomputeRecord* record) SPILLWAY_REQUIRES(kStateLock);
  // The memory's fingerprint, taken by that work, is in the slot.
  void Taken(Tracked* memory, ContentChecks::Slot slot, Use use) SPILLWAY_REQUIRES(kStateLock);

  // No record needs the memory: fingerprints of its former content are given back.
  void Reset(Tracked* memory) SPILLWAY_REQUIRES(kStateLock);

 private:
  using Memory = base::InlineVector<Tracked*, 4>;
  void Take(const Memory& memory, TouchSet* set) SPILLWAY_REQUIRES(kStateLock);
  bool TakeAll(const Memory& memory, StreamState* stream) SPILLWAY_REQUIRES(kStateLock);
  bool CompareOne(Tracked* memory, RecomputeRecord* record) SPILLWAY_REQUIRES(kStateLock);
  bool TakeNow(Tracked* memory, ContentChecks::Slot to, RecomputeRecord* record)
      SPILLWAY_REQUIRES(kStateLock);
  bool MayHaveChanged(const Tracked& memory) const SPILLWAY_REQUIRES(kStateLock);
  std::uint64_t Launched() const SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  DeferredFrees& frees_;
};

}  // namespace spillway::interposer
