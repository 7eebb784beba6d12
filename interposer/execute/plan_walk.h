// Where the job is in the plan that it follows, and what the plan asks for there.
//
// Called by PlanFollower for every event while a plan is followed, on the application's threads,
// from the launch path too: it has a lock of its own, held for some tens of nanoseconds. Owns the
// follower; plans are shared and never change.
//
// Invariants
//  1. A plan takes the place of another where an iteration begins, or while nothing is followed.
//  2. What is asked for at an operation is told once, with the allocations that the plan's buffers
//  are at that moment.
//  3. IsActive is one relaxed load; it is false until the first plan.
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

// What the plan asks for at one operation.
struct PlanStep {
  using Allocations = base::InlineVector<std::uint64_t, 4>;
  // One step of making content again: the allocation is made again by its record, or dropped by it
  // where it only served others.
  struct Rerun {
    std::uint64_t allocation = 0;
    bool drops = false;
  };
  Allocations prefetch;                    // before it
  base::InlineVector<Rerun, 4> recompute;  // before it, once `prefetch` is asked for: in this order
  Allocations prefetch_behind;             // before it, behind `recompute`
  Allocations
      leave;  // after it: offloaded, or taken away where the host copy is good; never by a record
  Allocations drop;  // after it: let go where its record can make it again, otherwise as `leave`
  bool keeps_record = false;  // what it writes is dropped later on: note how it is made
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
  // From the next iteration on this plan is followed.
  void Adopt(std::shared_ptr<const scheduler::LivePlan> plan) SPILLWAY_EXCLUDES(lock_);
  // An allocation, a free or an operation has come. `step` may be null for the former two.
  void Observe(const scheduler::JobEvent& event, PlanStep* step) SPILLWAY_EXCLUDES(lock_);

  // By the plan the allocation will be used once more; false where the job is lost.
  bool ExpectsUse(std::uint64_t allocation) SPILLWAY_EXCLUDES(lock_);
  // By the plan it will be dropped in this iteration; false where the job is lost.
  bool ExpectsDrop(std::uint64_t allocation) SPILLWAY_EXCLUDES(lock_);

  // Calls visit(allocation, events until it is used) for each that the plan knows. Nothing is known
  // where the plan moves nothing, and behind a few events in a row that are not its: the job may do
  // something else.
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
    std::uint64_t planned_operations = 0;   // that came as the plan expects
    std::uint64_t off_plan_operations = 0;  // others, since there is a plan
    std::uint64_t plans = 0;                // that took effect
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
  bool KnowsNextUses() const SPILLWAY_REQUIRES(lock_);
  std::int32_t BufferOf(std::uint64_t allocation) const SPILLWAY_REQUIRES(lock_);
  std::uint64_t AllocationAfter(std::int32_t position, std::int32_t buffer) const
      SPILLWAY_REQUIRES(lock_);
  void AddBefore(std::int32_t position, const scheduler::LiveAction& action, PlanStep* step)
      SPILLWAY_REQUIRES(lock_);
  void AddAfter(std::int32_t position, const scheduler::LiveAction& action, PlanStep* step)
      SPILLWAY_REQUIRES(lock_);
  void Tell(const scheduler::Followed& followed, PlanStep* step) SPILLWAY_REQUIRES(lock_);

  std::atomic<bool> is_active_{false};
  base::Mutex lock_{base::LockRank::kPlan};
  std::unique_ptr<Walk> now_ SPILLWAY_GUARDED_BY(lock_);
  std::unique_ptr<Walk> next_ SPILLWAY_GUARDED_BY(lock_);
  bool has_begun_ SPILLWAY_GUARDED_BY(lock_) =
      false;  // an iteration, and no operation of it has come
  Figures figures_ SPILLWAY_GUARDED_BY(lock_);
};

}  // namespace spillway::interposer
