// Which operations must run again so that lost content exists again: the chain back to what is
// still there.
//
// Called by strategies (to know what a recomputation costs) and by the lowering of decisions, on
// any thread. Pure. Built once per profile; a question costs as much as its answer is long.
//
// An operation can be part of a chain when it is replayable, changes nothing in place, and no
// buffer that it read or wrote has been written since. Content that is gone on the way is rebuilt
// by the chain too; in a live job, where it was: what is freed by then ends the chain.
#pragma once

#include <cstdint>
#include <vector>

#include "base/function_ref.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

class RecomputeChains {
 public:
  // The profile must outlive this and pass CheckProfile(); of no live job.
  explicit RecomputeChains(const IterationProfile& profile) : RecomputeChains(profile, false) {}
  // The problem's profile must.
  explicit RecomputeChains(const Problem& problem)
      : RecomputeChains(problem.iteration(), problem.is_live) {}

  // Is the content of this buffer on the device when the question's operation is about to run?
  using Present = base::FunctionRef<bool(BufferId)>;

  // What a question has entered; whoever asks often keeps one, so that asking allocates little.
  class Marks {
   public:
    explicit Marks(size_t operations) : question_of_(operations, 0) {}

   private:
    friend class RecomputeChains;
    std::vector<uint32_t> question_of_;  // by operation: the last that entered it
    uint32_t question_ = 0;
  };

  // Operations in running order that bring back every target's content as of operation `before`.
  // Empty when one cannot be brought back, or when all targets are present.
  std::vector<OperationId> Find(const std::vector<BufferId>& targets, OperationId before,
                                Present present, Marks& marks) const;
  std::vector<OperationId> Find(const std::vector<BufferId>& targets, OperationId before,
                                Present present) const;

  // Is the buffer on the device before an operation when nothing was taken away?
  bool LivesBefore(BufferId buffer, OperationId before) const;

  // An interval that ends with the buffer's free, in which its content can be made again at any
  // moment: what it is made from lives as long, and nobody writes that. A live job drops it, as any
  // other dead content only who is no live job.
  bool MayLeaveForGood(const IdleInterval& interval) const;

  // The last operation before `before` that wrote the buffer; index -1: none in this iteration.
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
  bool CanBeMadeUntilFreed(BufferId buffer) const;

  const IterationProfile& profile_;
  const bool is_live_;
  std::vector<std::vector<OperationId>> writers_;  // by buffer, ascending
  std::vector<int32_t>
      repeatable_until_;  // by operation: before this one and all earlier ones it can run again
  std::vector<bool> can_be_made_until_freed_;  // by buffer
};

}  // namespace spillway::scheduler
