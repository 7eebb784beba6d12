// A budget that changes while the job runs.
#include "base/clock.h"
#include "interposer/driver/calling_context.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

using base::MonotonicNs;
using driver::CurrentContext;
using driver::RelaxedCapture;

void JobMemory::SetBudget(size_t bytes) {
  GrantBudget(bytes);
  MeetBudget();
}

void JobMemory::GrantBudget(size_t bytes) { ChangeBudget(bytes, 0); }

void JobMemory::HoldBudget(size_t bytes, std::uint64_t until_ns) { ChangeBudget(bytes, until_ns); }

// Calls that make memory see it at once: nothing is added to what is too much.
void JobMemory::ChangeBudget(size_t bytes, std::uint64_t held_until_ns) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  const StateLock lock(state_.locks);
  state_.budget.Set(bytes, held_until_ns);
  state_.residency.chunks().SetBudget(state_.budget.bytes());
  state_.host_grant.UpdateLimits();
  recording_.RecordIfItIsTime(0);
}

bool JobMemory::IsOverBudget() {
  const StateLock lock(state_.locks);
  return state_.residency.chunks().IsOverBudget();
}

void JobMemory::MeetBudget() {
  const std::uint64_t start_ns = MonotonicNs();
  if (!IsOverBudget()) return;
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  {
    const MakingLock making(state_.locks);
    eviction_.MakeRoom(0, StallCause::kShrink,
                       [&]() SPILLWAY_REQUIRES(kStateLock) { return state_.residency.Charge(0); });
    parking_.EndMoving();
  }
  const StateLock lock(state_.locks);
  state_.counters.over_budget_ns += MonotonicNs() - start_ns;
}

void JobMemory::FollowSchedule() {
  size_t bytes = 0;
  if (schedule_.Launched(&bytes)) SetBudget(bytes);
}

}  // namespace spillway::interposer
