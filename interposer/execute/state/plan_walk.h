// Where the job is in the plan that it follows, and what the plan asks for there.
//
// Called for every event while a plan is followed, on the application's threads, also from the
// launch path. Its own lock is held for tens of nanoseconds.
//
// Invariants
//  1. A plan replaces another where an iteration begins, or while nothing is followed.
//  2. What the plan asks for at an operation is reported once, by the allocations of that moment.
//  3. IsActive is one relaxed load. It is false until the first plan.
// Never: moves memory, calls the driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/inline_vector.h"
#include "base/mutex.h"
#include "scheduler/learn/iteration_follower.h"
#include "scheduler/plan/live_plan.h"

namespace spillway::interposer {

struct PlanStep {
  PlanStep() {}  // clears no more than the vectors do

  using Allocations = base::InlineVector<std::uint64_t, 4>;
  // Recomputes the allocation, or drops it again where it only served other steps.
  struct Rerun {
    std::uint64_t allocation = 0;
    bool drops = false;
  };
  Allocations prefetch;
  base::InlineVector<Rerun, 4> recompute;  // before it, in this order, once `prefetch` is asked for
  Allocations prefetch_behind;             // before it, behind `recompute`
  Allocations leave;          // after it: evicted with a host copy, never dropped by a record
  Allocations drop;           // dropped if its record can recompute it, otherwise as `leave`
  bool keeps_record = false;  // what it writes is dropped later: record how it is made
  bool began_iteration = false;
  std::uint64_t last_misses = 0;  // when an iteration began: of the one before
  std::uint64_t pattern = 0;      // likewise, its fingerprint
  bool is_planned = false;        // likewise: the plan has something to do
};

class PlanWalk {
 public:
  PlanWalk();
  ~PlanWalk();

  bool IsActive() const { return is_active_.load(std::memory_order_relaxed); }
  // Whether the plan that is followed has something to do: a resting one has not.
  bool MovesMemory() const SPILLWAY_EXCLUDES(lock_) {
    const base::MutexLock lock(lock_);
    return HasActions();
  }
  void Adopt(std::shared_ptr<const scheduler::LivePlan> plan) SPILLWAY_EXCLUDES(lock_);
  // Reports an allocation, a free or an operation. `step` may be null for the first two.
  void Observe(const scheduler::JobEvent& event, PlanStep* step) SPILLWAY_EXCLUDES(lock_);

  // What the plan expects: another use; a drop in this iteration. False while the job is lost.
  bool ExpectsUse(std::uint64_t allocation) SPILLWAY_EXCLUDES(lock_);
  bool ExpectsDrop(std::uint64_t allocation) SPILLWAY_EXCLUDES(lock_);

  // Calls visit(allocation, events until it is used) for each that the plan knows. Visits none
  // where the plan moves nothing, or after several strange events in a row.
  template <class Visit>
  void ForEachNextUse(Visit visit) SPILLWAY_EXCLUDES(lock_) {
    const base::MutexLock lock(lock_);
    if (!KnowsNextUses()) return;
    const auto buffers = static_cast<std::int32_t>(now_->plan->pattern().buffers.size());
    for (std::int32_t buffer = 0; buffer < buffers; ++buffer) {
      const std::uint64_t allocation = now_->follower.AllocationOf(buffer);
      if (allocation) visit(allocation, now_->follower.NextUse(buffer));
    }
  }

  struct Figures {
    std::uint64_t planned_operations = 0;
    std::uint64_t off_plan_operations = 0;  // since there is a plan
    std::uint64_t plans = 0;
  };
  Figures Read() SPILLWAY_EXCLUDES(lock_);

 private:
  struct Walk {
    explicit Walk(std::shared_ptr<const scheduler::LivePlan> followed)
        : plan(std::move(followed)), follower(plan->shared_pattern()) {}
    std::shared_ptr<const scheduler::LivePlan> plan;
    scheduler::IterationFollower follower;
  };
  scheduler::Followed Follow(const scheduler::JobEvent& event, std::unique_ptr<Walk>* former)
      SPILLWAY_REQUIRES(lock_);
  void TakeNext(std::unique_ptr<Walk>* former) SPILLWAY_REQUIRES(lock_);
  bool HasActions() const SPILLWAY_REQUIRES(lock_) {
    return now_ && now_->plan->action_count() > 0;
  }
  bool KnowsNextUses() const SPILLWAY_REQUIRES(lock_);
  std::int32_t BufferOf(std::uint64_t allocation) const SPILLWAY_REQUIRES(lock_);
  std::uint64_t AllocationAfter(std::int32_t position, std::int32_t buffer) const
      SPILLWAY_REQUIRES(lock_);
  void AddBefore(std::int32_t position, const scheduler::LiveAction& action, PlanStep* step)
      SPILLWAY_REQUIRES(lock_);
  void AddAfter(std::int32_t position, const scheduler::LiveAction& action, PlanStep* step)
      SPILLWAY_REQUIRES(lock_);
  void FillStep(const scheduler::Followed& followed, PlanStep* step) SPILLWAY_REQUIRES(lock_);

  std::atomic<bool> is_active_{false};
  mutable base::Mutex lock_{base::LockRank::kPlan};
  std::unique_ptr<Walk> now_ SPILLWAY_GUARDED_BY(lock_);
  std::unique_ptr<Walk> next_ SPILLWAY_GUARDED_BY(lock_);
  bool has_begun_ SPILLWAY_GUARDED_BY(lock_) = false;
  Figures figures_ SPILLWAY_GUARDED_BY(lock_);
};

}  // namespace spillway::interposer
