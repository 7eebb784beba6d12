// A budget that changes while the job runs.
#include "base/clock.h"
#include "interposer/driver/calling_context.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {

using base::MonotonicNs;
using base::MutexLock;
using driver::CurrentContext;
using driver::RelaxedCapture;

void JobMemory::SetBudget(size_t bytes) {
  GrantBudget(bytes);
  MeetBudget();
}

// Calls that make memory see it at once: nothing is added to what is too much.
void JobMemory::GrantBudget(size_t bytes) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(context_);
  const MutexLock lock(state_);
  const size_t before_bytes = budget_bytes_.exchange(bytes / kGranuleBytes * kGranuleBytes);
  if (budget_bytes_ != before_bytes) ++counters_.budget_changes;
  residency_.chunks().SetBudget(budget_bytes_);
  UpdateHostLimit();
  RecordIfItIsTime(0);
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
