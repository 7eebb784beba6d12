// A budget that changes while the job runs.
#include "base/clock.h"
#include "base/pause.h"
#include "interposer/driver/calling_context.h"
#include "interposer/execute/job_memory.h"
#include "interposer/lease/bell.h"

namespace spillway::interposer {

using base::MonotonicNs;
using base::MutexLock;
using driver::CurrentContext;
using driver::RelaxedCapture;

namespace {

constexpr std::int64_t kHeldBackPauseNs = 500'000;
constexpr std::uint64_t kLongestHoldNs = 30'000'000'000;  // of one call

}  // namespace

void JobMemory::SetBudget(size_t bytes) {
  GrantBudget(bytes);
  MeetBudget();
}

void JobMemory::GrantBudget(size_t bytes) { ChangeBudget(bytes, 0); }

void JobMemory::HoldBudget(size_t bytes, std::uint64_t until_ns) { ChangeBudget(bytes, until_ns); }

// Calls that make memory see it at once: nothing is added to what is too much.
void JobMemory::ChangeBudget(size_t bytes, std::uint64_t held_until_ns) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(context_);
  const MutexLock lock(state_);
  const size_t before_bytes = budget_bytes_.exchange(bytes / kGranuleBytes * kGranuleBytes);
  held_until_ns_ = held_until_ns;
  if (budget_bytes_ != before_bytes) ++counters_.budget_changes;
  residency_.chunks().SetBudget(budget_bytes_);
  UpdateHostLimit();
  RecordIfItIsTime(0);
}

bool JobMemory::IsHeldBack() const {
  const std::uint64_t until_ns = held_until_ns_.load(std::memory_order_relaxed);
  return until_ns != 0 && MonotonicNs() < until_ns;
}

// Who may not move would be refused for good what the next budget has room for.
void JobMemory::AwaitBudget(base::FunctionRef<bool()> fits) {
  if (!IsHeldBack()) return;
  const base::ScopedCount call(&calls_for_memory_);
  Bell::ForGrants().Ring();  // who slept is awake
  for (const std::uint64_t start_ns = MonotonicNs();; base::Pause(kHeldBackPauseNs)) {
    const MutexLock lock(state_);
    const std::uint64_t waited_ns = MonotonicNs() - start_ns;
    if (IsHeldBack() && !fits() && waited_ns < kLongestHoldNs) continue;
    return counters_.Stalled(StallCause::kNoMemory, waited_ns);
  }
}

bool JobMemory::IsOverBudget() {
  const MutexLock lock(state_);
  return residency_.chunks().IsOverBudget();
}

void JobMemory::MeetBudget() {
  const std::uint64_t start_ns = MonotonicNs();
  if (!IsOverBudget()) return;
  const RelaxedCapture relaxed(true);
  const CurrentContext current(context_);
  {
    const MutexLock making(making_);
    MakeRoom(0, StallCause::kShrink, [&]() SPILLWAY_REQUIRES(state_) { return residency_.Charge(0); });
    EndMoving();
  }
  const MutexLock lock(state_);
  counters_.over_budget_ns += MonotonicNs() - start_ns;
}

void JobMemory::FollowSchedule() {
  size_t bytes = 0;
  if (schedule_.Launched(&bytes)) SetBudget(bytes);
}

}  // namespace spillway::interposer
