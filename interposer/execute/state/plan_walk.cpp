#include "interposer/execute/state/plan_walk.h"

#include <utility>

namespace spillway::interposer {

using base::MutexLock;
using scheduler::Followed;
using scheduler::JobEvent;
using scheduler::JobEventKind;
using scheduler::LiveAction;
using scheduler::LiveActionKind;
using scheduler::Tracking;

namespace {

// A logging step is shorter. Longer means that the loop is over and another follows.
constexpr std::int64_t kUnknownUntilDoubt = 16;

}  // namespace

PlanWalk::PlanWalk() = default;
PlanWalk::~PlanWalk() = default;

void PlanWalk::Adopt(std::shared_ptr<const scheduler::LivePlan> plan) {
  auto walk = std::make_unique<Walk>(std::move(plan));
  {
    const MutexLock lock(lock_);
    next_.swap(walk);
  }
  is_active_.store(true, std::memory_order_relaxed);
}

void PlanWalk::Observe(const JobEvent& event, PlanStep* step) {
  std::unique_ptr<Walk> former;  // destroyed without the lock
  const MutexLock lock(lock_);
  const Followed followed = Follow(event, &former);
  if (followed.began_iteration) has_begun_ = true;
  if (event.kind != JobEventKind::kOperation) return;
  ++(followed.position >= 0 ? figures_.planned_operations : figures_.off_plan_operations);
  if (followed.position >= 0) FillStep(followed, step);
}

Followed PlanWalk::Follow(const JobEvent& event, std::unique_ptr<Walk>* former) {
  if (next_ && (!now_ || now_->follower.tracking() == Tracking::kLost)) TakeNext(former);
  if (!now_) return {};
  const Followed followed = now_->follower.Observe(event);
  if (!followed.began_iteration || !next_) return followed;
  const bool is_same = followed.position >= 0 &&
                       next_->plan->pattern().fingerprint == now_->plan->pattern().fingerprint;
  TakeNext(former);
  if (is_same) now_->follower.Expect(followed.position);
  return now_->follower.Observe(event);
}

void PlanWalk::TakeNext(std::unique_ptr<Walk>* former) {
  *former = std::exchange(now_, std::move(next_));
  ++figures_.plans;
}

// With the iteration's last event, a buffer that outlives it has already changed its name.
std::uint64_t PlanWalk::AllocationAfter(std::int32_t position, std::int32_t buffer) const {
  const scheduler::IterationPattern& pattern = now_->plan->pattern();
  const scheduler::PatternBuffer& of_pattern = pattern.buffers[static_cast<std::size_t>(buffer)];
  const bool has_gone_on = position + 1 == pattern.size() && !of_pattern.persistent;
  const std::int32_t now = has_gone_on ? of_pattern.becomes : buffer;
  return now < 0 ? 0 : now_->follower.AllocationOf(now);
}

void PlanWalk::AddBefore(std::int32_t position, const LiveAction& action, PlanStep* step) {
  const std::uint64_t allocation = AllocationAfter(position, action.buffer);
  if (!allocation) return;
  if (action.kind == LiveActionKind::kPrefetch)
    (step->recompute.empty() ? step->prefetch : step->prefetch_behind).push_back(allocation);
  else
    step->recompute.push_back({allocation, action.kind == LiveActionKind::kDrop});
}

void PlanWalk::AddAfter(std::int32_t position, const LiveAction& action, PlanStep* step) {
  const std::uint64_t allocation = AllocationAfter(position, action.buffer);
  if (allocation)
    (action.kind == LiveActionKind::kDrop ? step->drop : step->leave).push_back(allocation);
}

// An iteration that begins with an allocation is reported at its first operation.
void PlanWalk::FillStep(const Followed& followed, PlanStep* step) {
  step->began_iteration = std::exchange(has_begun_, false);
  if (step->began_iteration) {
    step->last_misses = static_cast<std::uint64_t>(now_->follower.last_misses());
    step->pattern = now_->plan->pattern().fingerprint;
    step->is_planned = HasActions();
  }
  if (!HasActions()) return;
  step->keeps_record = now_->plan->IsRerunLater(followed.position);
  for (const LiveAction& action : now_->plan->Before(followed.position))
    AddBefore(followed.position, action, step);
  for (const LiveAction& action : now_->plan->After(followed.position))
    AddAfter(followed.position, action, step);
}

bool PlanWalk::KnowsNextUses() const {
  return HasActions() && now_->follower.tracking() != Tracking::kLost &&
         now_->follower.unknown_in_a_row() < kUnknownUntilDoubt;
}

// -1 when it is unknown.
std::int32_t PlanWalk::BufferOf(std::uint64_t allocation) const {
  const bool is_known = now_ && now_->follower.tracking() != Tracking::kLost;
  return is_known ? now_->follower.BufferOf(allocation) : -1;
}

bool PlanWalk::ExpectsUse(std::uint64_t allocation) {
  const MutexLock lock(lock_);
  const std::int32_t buffer = BufferOf(allocation);
  return buffer >= 0 && now_->follower.NextUse(buffer) != scheduler::IterationFollower::kNever;
}

bool PlanWalk::ExpectsDrop(std::uint64_t allocation) {
  const MutexLock lock(lock_);
  const std::int32_t buffer = BufferOf(allocation);
  return buffer >= 0 && now_->plan->LastDrop(buffer) >= now_->follower.next();
}

PlanWalk::Figures PlanWalk::Read() {
  const MutexLock lock(lock_);
  return figures_;
}

}  // namespace spillway::interposer
