// Finds the operations that must rerun to restore lost content, back to content that still exists.
//
// Pure. Built once per profile; a query costs as much as its answer is long.
//
// An operation can rerun if it is replayable, changes nothing in place, and none of its buffers has
// been written since. A presumed read of an input counts as a write unless its output is touched at
// the same time: then nothing is lost if the read turns out to write. Missing inputs are recomputed
// too; a live job cannot recompute freed buffers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/function_ref.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

class RecomputeChains {
 public:
  // For problems that are not live. The profile must outlive this and pass CheckProfile().
  explicit RecomputeChains(const IterationProfile& profile) : RecomputeChains(profile, false) {}
  explicit RecomputeChains(const Problem& problem)
      : RecomputeChains(problem.iteration(), problem.is_live) {}

  using Present = base::FunctionRef<bool(BufferId)>;

  // Frequent callers keep one to avoid allocations.
  class Marks {
   public:
    explicit Marks(size_t operations) : question_of_(operations, 0) {}

   private:
    friend class RecomputeChains;
    std::vector<uint32_t> question_of_;  // by operation: the last query that visited it
    uint32_t question_ = 0;
  };

  // In order, to restore the content as of `before`. Empty if one cannot be restored, or if all are
  // present.
  std::vector<OperationId> Find(const std::vector<BufferId>& targets, OperationId before,
                                Present present, Marks& marks) const;
  std::vector<OperationId> Find(const std::vector<BufferId>& targets, OperationId before,
                                Present present) const;

  // If nothing were evicted.
  bool LivesBefore(BufferId buffer, OperationId before) const;

  // For an interval that ends with a free: its inputs live as long and are not written. A live job
  // may then drop it, and a workspace too.
  bool IsRecomputableUntilFree(const IdleInterval& interval) const;

  // Whether one operation could recompute what `user` reads until `until`, even if the buffer is
  // freed before.
  bool IsRecomputableAt(BufferId buffer, OperationId user, OperationId until) const;

  // Index -1: none in this iteration.
  OperationId WriterBefore(BufferId buffer, OperationId before) const;

 private:
  struct Search;
  RecomputeChains(const IterationProfile& profile, bool is_live);
  bool Collect(BufferId target, Search& search) const;
  bool Visit(OperationId operation, Search& search) const;
  bool CanRepeat(OperationId operation, OperationId before) const {
    return before.index <= repeatable_until_[static_cast<size_t>(operation.index)];
  }
  int32_t RepeatableUntil(OperationId operation) const;
  int32_t FirstPresumedReadBesides(OperationId operation) const;
  bool CanRecomputeUntilFreed(BufferId buffer) const;

  const IterationProfile& profile_;
  const bool is_live_;
  std::vector<std::vector<OperationId>> writers_;  // by buffer, ascending
  std::vector<std::vector<OperationId>>
      presumed_;  // by buffer, ascending: Operation::presumed_reads
  // By operation: it can rerun before this operation and all earlier ones.
  std::vector<int32_t> repeatable_until_;
  std::vector<bool> can_be_made_until_freed_;  // by buffer
};

}  // namespace spillway::scheduler
