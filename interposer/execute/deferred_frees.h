// Gives back freed memory once no record needs it, and ends records that are no longer needed.
// (Note [Recompute records] in recompute_record.h)
//
// Owns the list of ranges that the program has freed and a record still reads.
//
// Invariants
//  1. Memory that the record of a dropped range reads is not given back.
//  2. When the last record that reads freed memory ends, the memory is given back at once.
// Never: waits.
#pragma once

#include <atomic>
#include <vector>

#include "base/inline_vector.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/state/recompute_record.h"

namespace spillway::interposer {

class DeferredFrees {
 public:
  using FutileRanges = base::InlineVector<const Range*, 8>;

  explicit DeferredFrees(JobState& state) : state_(state) {}

  // `busy`: all work that may still use the memory.
  void GiveBack(Allocation* found, const UseList& busy) SPILLWAY_REQUIRES(kStateLock);
  // Reports the free to the recorder and the plan, even if the memory is given back later.
  void ReportFree(const Allocation* found) SPILLWAY_REQUIRES(kStateLock);
  void DeferFree(Tracked* memory) SPILLWAY_REQUIRES(kStateLock);
  // At the program's free: ends records that the free makes useless.
  bool IsStillNeeded(Tracked* memory) SPILLWAY_REQUIRES(kStateLock);

  void Forget(const RecomputeRecord* record) SPILLWAY_REQUIRES(kStateLock);
  // Of memory about to be written or freed. Returns what must be recomputed before that.
  ToRecompute EndRecordsOf(Tracked* memory) SPILLWAY_REQUIRES(kStateLock);
  // The first dropped range that needs freed memory for its recomputation, but for `in_vain`.
  Range* FirstThatFreesAwait(bool even_held, const FutileRanges& in_vain)
      SPILLWAY_REQUIRES(kStateLock);
  // Any thread.
  size_t put_off_bytes() const { return put_off_bytes_.load(); }
  // Small memory of the job's own (input_copies.h), until GiveBack.
  size_t saved_input_bytes() const SPILLWAY_REQUIRES(kStateLock) { return saved_input_bytes_; }
  void NoteSavedInput(size_t bytes) SPILLWAY_REQUIRES(kStateLock) { saved_input_bytes_ += bytes; }

 private:
  using FreesThatAreDue = base::InlineVector<Tracked*, 16>;
  void ForgetOne(const RecomputeRecord* record, FreesThatAreDue* due) SPILLWAY_REQUIRES(kStateLock);
  void MarkEnds(const UseList& busy) SPILLWAY_REQUIRES(kStateLock);
  bool ServesPlan(const RecomputeRecord& record) SPILLWAY_REQUIRES(kStateLock);
  bool IsHeldForPlan(const Tracked* memory) SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  std::atomic<size_t> put_off_bytes_{0};
  std::vector<Range*> put_off_ SPILLWAY_GUARDED_BY(kStateLock);
  size_t saved_input_bytes_ SPILLWAY_GUARDED_BY(kStateLock) = 0;
};

}  // namespace spillway::interposer
