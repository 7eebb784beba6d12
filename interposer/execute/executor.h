// Carries out a plan: evicts ranges after their operation and prefetches others before theirs.
//
// Called by the classes behind JobMemory with the state lock held.
//
// Nothing begins while it is not this job's turn at the link. Evictions are postponed then. A
// postponed eviction is left out if its range is used meanwhile or is to be prefetched again. An
// eviction starts its copy at once, on the eviction stream, behind the uses so far. Its memory is
// free when the host has seen the copy complete.
//
// Prefetches wait, in the plan's order, for memory that becomes free without evictions. They are
// retried at each call, when a wait begins, and when memory is made. An operation behind a prefetch
// in the plan gets memory only after the prefetch has some. Otherwise the program, which runs ahead
// of the device, would take the prefetch's memory (MayAwait).
//
// Invariants
//  1. A range is prefetched at most once per request, and only if it is not resident.
//  2. Nothing is evicted for a prefetch.
//  3. While the job parks (pointer_safety.h), nothing is carried out and the queue is empty.
// Never: waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

#include "interposer/execute/residency/residency.h"
#include "interposer/execute/state/plan_walk.h"
#include "interposer/execute/state/touch_clock.h"

namespace spillway::interposer {

class Executor {
 public:
  Executor(Residency* residency, Timeline* timeline, Counters* counters, JobTrace* trace)
      : residency_(residency), timeline_(timeline), counters_(counters), trace_(trace) {}

  // From Begin on, ranges are known by the ids of their allocations. Begin registers the live ones.
  bool IsOn() const { return is_on_; }
  void Begin();
  void Allocated(Range* range) {
    if (is_on_) by_id_[range->id] = range;
  }
  void Freed(std::uint64_t allocation) {
    if (is_on_) by_id_.erase(allocation);
  }

  // Any thread. Whether a prefetch or a postponed eviction is pending.
  bool HasPending() const { return pending_.load(std::memory_order_relaxed) > 0; }
  void AskFor(const PlanStep::Allocations& allocations);
  void RestoreQueued();
  bool IsAskedFor(std::uint64_t allocation) const;
  // Whether the first prefetch is worth a wait for memory: not after one wait for it was in vain.
  bool MayAwait() const {
    return !queue_.empty() && !waits_for_turn_ && queue_.front() != futile_wait_;
  }
  void NoteFutileWait() { futile_wait_ = queue_.empty() ? 0 : queue_.front(); }
  // True when the range was queued: something else has restored it.
  bool TakeFromQueue(Range* range);
  void ForgetQueue();
  void StartEvictions(const PlanStep::Allocations& allocations);
  Range* Find(std::uint64_t allocation) const;
  bool WaitsForTurn() const { return waits_for_turn_ || !postponed_.empty(); }

  // Sets each range's next use as the plan expects it (Range::next_use). False when that is
  // unknown. A range unknown to the plan counts as never used again after an iteration without use.
  bool NoteNextUses(PlanWalk* walk);
  void IterationBegan() { iteration_before_at_ = std::exchange(iteration_at_, TouchClock()); }

 private:
  static bool IsEvicted(const Range& range) {
    return range.place == Place::kHost || range.place == Place::kParked;
  }
  void SetPending() {
    pending_.store(queue_.size() + postponed_.size(), std::memory_order_relaxed);
  }
  void StartPostponed();
  bool IsTurn(protocol::Direction direction) {
    return residency_->copies().link().WaitNs(direction) == 0;
  }
  bool HasNewMemory();

  Residency* const residency_;
  Timeline* const timeline_;
  Counters* const counters_;
  JobTrace* const trace_;
  std::atomic<std::size_t> pending_{0};
  bool is_on_ = false;
  std::unordered_map<std::uint64_t, Range*> by_id_;
  std::deque<std::uint64_t> queue_;  // allocation ids
  struct Postponed {
    std::uint64_t allocation;
    std::uint64_t last_touch;
  };
  std::deque<Postponed> postponed_;
  bool waits_for_turn_ = false;
  std::uint64_t iteration_at_ = 0,
                iteration_before_at_ = 0;  // starts of the last two, by the touch clock
  std::uint64_t tried_at_ = 0;
  std::uint64_t futile_wait_ = 0;  // an allocation id
};

}  // namespace spillway::interposer
