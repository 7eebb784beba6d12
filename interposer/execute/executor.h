// Carries out what a plan asks for: sends ranges away after their operation and brings others back
// before theirs.
//
// Called by the classes behind JobMemory with the state lock held. Owns the queue of what is to be
// brought back; ranges are residency's.
//
// While it is not this job's turn at the link nothing begins: departures are postponed, and those
// whose range is used meanwhile, or is to be brought back already, are left out. A departure starts
// its copy at once, on the stream for these, behind the uses so far; the memory is free when the
// host has seen the copy complete. What is to be brought back waits in the plan's order for memory
// that nobody has to be sent away for: it is tried again whenever a call comes by, a wait begins or
// memory is being made. What an operation behind it in the plan needs is given memory only when it
// has some: the program is ahead of the device, and would otherwise take what the plan means for it
// (MayAwait).
//
// Invariants
//  1. A range that is asked for is brought back at most once, and only if it is away.
//  2. Nothing leaves for the sake of what is brought back early.
//  3. While the job parks (pointer_safety.h) nothing is carried out, and the queue is empty.
// Never: waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

#include "interposer/execute/plan_walk.h"
#include "interposer/execute/residency.h"
#include "interposer/execute/touch_clock.h"

namespace spillway::interposer {

class Executor {
 public:
  Executor(Residency* residency, Timeline* timeline, Counters* counters)
      : residency_(residency), timeline_(timeline), counters_(counters) {}

  // Ranges are known by the numbers of their allocations from Begin on, which is told those that
  // live.
  bool IsOn() const { return is_on_; }
  void Begin();
  void Allocated(Range* range) {
    if (is_on_) by_id_[range->id] = range;
  }
  void Freed(std::uint64_t allocation) {
    if (is_on_) by_id_.erase(allocation);
  }

  // Any thread: whether something is to be brought back.
  bool HasPending() const { return pending_.load(std::memory_order_relaxed) > 0; }
  void AskFor(const PlanStep::Allocations& allocations);
  void BringBack();
  bool IsAskedFor(std::uint64_t allocation) const;
  // Whether the first in the queue is worth a wait for memory; not once it was waited for in vain.
  bool MayAwait() const {
    return !queue_.empty() && !waits_for_turn_ && queue_.front() != awaited_in_vain_;
  }
  void AwaitedInVain() { awaited_in_vain_ = queue_.empty() ? 0 : queue_.front(); }
  // The range is on the device: by somebody else's doing, if it is in the queue.
  bool TakeFromQueue(Range* range);
  void ForgetQueue();
  void SendAway(const PlanStep::Allocations& allocations);
  // Null where the number is not known.
  Range* Find(std::uint64_t allocation) const;
  // Something is to be copied as soon as it is this job's turn at the link.
  bool WaitsForTurn() const { return waits_for_turn_ || !postponed_.empty(); }

  // Says of each range when the plan expects its next use (Range::next_use); false when that is not
  // known. Of what the plan does not name only those that a whole iteration has not used are taken
  // for never used again.
  bool NoteNextUses(PlanWalk* walk);
  void IterationBegan() { iteration_before_at_ = std::exchange(iteration_at_, TouchClock()); }

 private:
  static bool IsAway(const Range& range) {
    return range.place == Place::kHost || range.place == Place::kParked;
  }
  void SetPending() {
    pending_.store(queue_.size() + postponed_.size(), std::memory_order_relaxed);
  }
  void SendPostponed();
  bool IsTurn(protocol::Direction direction) { return residency_->link().WaitNs(direction) == 0; }
  bool HasNewMemory();

  // Constant after construction.
  Residency* const residency_;
  Timeline* const timeline_;
  Counters* const counters_;
  // Synchronises itself.
  std::atomic<std::size_t> pending_{0};
  // Guarded by the caller's state lock.
  bool is_on_ = false;
  std::unordered_map<std::uint64_t, Range*> by_id_;
  std::deque<std::uint64_t> queue_;  // allocations
  struct Postponed {
    std::uint64_t allocation;
    std::uint64_t last_touch;
  };
  std::deque<Postponed> postponed_;
  bool waits_for_turn_ = false;                               // the first in the queue
  std::uint64_t iteration_at_ = 0, iteration_before_at_ = 0;  // when they began, by the touch clock
  std::uint64_t tried_at_ = 0;
  std::uint64_t awaited_in_vain_ = 0;  // an allocation
};

}  // namespace spillway::interposer
