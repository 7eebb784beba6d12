#include "interposer/execute/executor.h"
#include "interposer/execute/state/range_trace.h"

#include <algorithm>

namespace spillway::interposer {
namespace {

constexpr std::uint64_t kUnknownUse = ~std::uint64_t{0};

}  // namespace

void Executor::Begin() {
  is_on_ = true;
  residency_->ForEachLive([this](Range* range) { by_id_[range->id] = range; });
}

Range* Executor::Find(std::uint64_t allocation) const {
  const auto at = by_id_.find(allocation);
  return at == by_id_.end() ? nullptr : at->second;
}

// A range that is still leaving stays.
void Executor::AskFor(const PlanStep::Allocations& allocations) {
  if (residency_->parking()) return;
  for (const std::uint64_t allocation : allocations) {
    std::erase_if(postponed_, [&](const Postponed& one) { return one.allocation == allocation; });
    Range* const range = Find(allocation);
    if (!range) continue;
    if (range->place == Place::kLeaving) residency_->departures().Cancel(range);
    if (!IsEvicted(*range) || residency_->parked().StaysParked(range) || IsAskedFor(allocation))
      continue;
    queue_.push_back(allocation);
    TraceNow(trace_, TraceKind::kPrefetchAsked, range, TraceCause::kPlan);
  }
  tried_at_ = 0;
  SetPending();
}

bool Executor::IsAskedFor(std::uint64_t allocation) const {
  return std::find(queue_.begin(), queue_.end(), allocation) != queue_.end();
}

bool Executor::HasNewMemory() {
  timeline_->Poll();
  const std::uint64_t progress = timeline_->SumCompleted() + counters_->frees + 1;
  if (progress == tried_at_) return false;
  tried_at_ = progress;
  return true;
}

void Executor::RestoreQueued() {
  if (queue_.empty() && postponed_.empty()) return;
  if (residency_->parking()) return ForgetQueue();
  StartPostponed();
  if (!waits_for_turn_ && !HasNewMemory()) return SetPending();
  waits_for_turn_ = false;
  while (!queue_.empty()) {
    Range* const range = Find(queue_.front());
    // A call that names it reads the job's file without the state lock.
    if (range && range->spilled) {
      queue_.pop_front();
      continue;
    }
    if (range && IsEvicted(*range) && !residency_->parked().StaysParked(range)) {
      waits_for_turn_ = !IsTurn(protocol::Direction::kToDevice);
      if (waits_for_turn_) break;
      if (!residency_->Restore(range, TraceCause::kPrefetch)) break;
      range->prefetched = true;
      ++counters_->prefetches;
      counters_->prefetched_bytes += range->requested_bytes;
    }
    queue_.pop_front();
  }
  SetPending();
}

bool Executor::TakeFromQueue(Range* range) {
  const auto at = std::find(queue_.begin(), queue_.end(), range->id);
  if (at == queue_.end()) return false;
  queue_.erase(at);
  SetPending();
  return true;
}

void Executor::ForgetQueue() {
  queue_.clear();
  postponed_.clear();
  waits_for_turn_ = false;
  SetPending();
}

void Executor::StartEvictions(const PlanStep::Allocations& allocations) {
  if (residency_->parking()) return;
  for (const std::uint64_t allocation : allocations) {
    Range* const range = Find(allocation);
    if (!range) continue;
    if (range->scratch_call != 0) {
      range->leaves_when_idle = true;
    } else if (!postponed_.empty() || !IsTurn(protocol::Direction::kToHost)) {
      postponed_.push_back({allocation, range->last_touch});
    } else if (residency_->departures().Start(range)) {
      ++counters_->planned_departures;
    }
  }
  SetPending();
}

void Executor::StartPostponed() {
  while (!postponed_.empty() && IsTurn(protocol::Direction::kToHost)) {
    const Postponed next = postponed_.front();
    postponed_.pop_front();
    Range* const range = Find(next.allocation);
    const bool is_unused = range && range->last_touch == next.last_touch;
    if (is_unused && residency_->departures().Start(range)) ++counters_->planned_departures;
  }
}

bool Executor::NoteNextUses(PlanWalk* walk) {
  if (!is_on_) return false;
  std::uint64_t furthest = 0;
  bool any = false;
  residency_->ForEachLive([](Range* range) { range->next_use = kUnknownUse; });
  walk->ForEachNextUse([&](std::uint64_t allocation, std::int64_t events) {
    Range* const range = Find(allocation);
    if (!range) return;
    range->next_use = static_cast<std::uint64_t>(events);
    if (events != scheduler::IterationFollower::kNever)
      furthest = std::max(furthest, range->next_use);
    any = true;
  });
  residency_->ForEachLive([&](Range* range) {
    const bool is_recent =
        range->next_use == kUnknownUse && range->last_touch >= iteration_before_at_;
    if (is_recent) range->next_use = furthest + 1;
  });
  return any;
}

}  // namespace spillway::interposer
