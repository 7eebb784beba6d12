// Gives back what the program frees, once no record needs it any more, and ends records that nobody
// needs. (Note [Recompute records] in recompute_record.h)
//
// Called by the classes behind JobMemory on the program's threads, with the state lock held but for
// put_off_bytes. Owns the list of what the program has freed and a record still reads.
//
// Invariants
//  1. Memory that a record of something dropped reads is not given back.
//  2. When the last record that reads freed memory ends, the memory is given back in the same
//  moment.
// Never: waits.
#pragma once

#include <atomic>
#include <vector>

#include "base/inline_vector.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/recompute_record.h"

namespace spillway::interposer {

class DeferredFrees {
 public:
  using InVain = base::InlineVector<const Range*, 8>;

  explicit DeferredFrees(JobState& state) : state_(state) {}

  // The memory is nobody's any more; `busy` is all that may still use it.
  void GiveBack(Allocation* found, const UseList& busy) SPILLWAY_REQUIRES(kStateLock);
  // The recorder and the plan hear of the program's free, whenever the memory goes.
  void TellOfFree(const Allocation* found) SPILLWAY_REQUIRES(kStateLock);
  // Until no record needs it.
  void PutOffFree(Tracked* memory) SPILLWAY_REQUIRES(kStateLock);
  // The program frees it: records that need it no more end.
  bool IsStillNeeded(Tracked* memory) SPILLWAY_REQUIRES(kStateLock);

  // The record ends, and the frees happen that have waited for it.
  void Forget(const RecomputeRecord* record) SPILLWAY_REQUIRES(kStateLock);
  // The memory is about to be written or freed: what must be made before that.
  ToMake Outdate(Tracked* memory) SPILLWAY_REQUIRES(kStateLock);
  // The first of what is dropped and can only be made from what the program has freed, but for
  // those in vain.
  Range* FirstThatFreesAwait(bool even_held, const InVain& in_vain) SPILLWAY_REQUIRES(kStateLock);
  // Any thread: what the program has freed and a record still reads.
  size_t put_off_bytes() const { return put_off_bytes_.load(); }
  // Small memory that is the job's own (input_copies.h), until GiveBack.
  size_t saved_input_bytes() const SPILLWAY_REQUIRES(kStateLock) { return saved_input_bytes_; }
  void NoteSavedInput(size_t bytes) SPILLWAY_REQUIRES(kStateLock) { saved_input_bytes_ += bytes; }

 private:
  using FreesThatAreDue = base::InlineVector<Tracked*, 16>;
  void ForgetOne(const RecomputeRecord* record, FreesThatAreDue* due) SPILLWAY_REQUIRES(kStateLock);
  void MarkEnds(const UseList& busy) SPILLWAY_REQUIRES(kStateLock);
  bool ServesPlan(const RecomputeRecord& record) SPILLWAY_REQUIRES(kStateLock);
  bool IsHeldForPlan(const Tracked* memory) SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  std::atomic<size_t> put_off_bytes_{0};  // written with the state lock held
  // Guarded by the state lock.
  std::vector<Range*> put_off_ SPILLWAY_GUARDED_BY(kStateLock);
  size_t saved_input_bytes_ SPILLWAY_GUARDED_BY(kStateLock) = 0;
};

}  // namespace spillway::interposer
