// What the agent grants, as it changes while the job runs: the budget, host memory, and the job's
// part of the link.
//
// Called by the lease's and the shrink's threads, by tests, and by launches for a schedule of
// tests. The budget itself is in BudgetAccount, host memory in HostGrant.
//
// Invariants
//  1. Calls that make memory see a new grant at once; what is held beyond it goes in MeetBudget, or
//  as calls take it away.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "interposer/execute/call_recorder.h"
#include "interposer/execute/eviction.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/parking.h"
#include "interposer/lease/budget_schedule.h"
#include "protocol/message.h"

namespace spillway::interposer {

class Grants {
 public:
  Grants(JobState& state, CallRecorder& recording, Parking& parking, Eviction& eviction)
      : state_(state), recording_(recording), parking_(parking), eviction_(eviction) {}

  size_t budget_bytes() const { return state_.budget.bytes(); }
  // The budget is another one from now on; what is held beyond it stays until MeetBudget, or until
  // calls take it away. Waits for nothing.
  void GrantBudget(size_t bytes) SPILLWAY_EXCLUDES(kStateLock);
  // Likewise, but only until the next one, which is near: who needs more waits for that, until then
  // at the latest (of MonotonicNs).
  void HoldBudget(size_t bytes, std::uint64_t until_ns) SPILLWAY_EXCLUDES(kStateLock);
  // Returns when the budget is met, or when nothing more can be done for that at the moment: then
  // calls go on to take memory away until it is.
  void MeetBudget() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void SetBudget(size_t bytes) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);  // both

  // What the agent grants beside the budget. Host memory: never more than the launcher allows, and
  // never less than what has been granted to the program needs. The link: thousandths, for the
  // planner.
  void SetHostLimit(size_t bytes) SPILLWAY_EXCLUDES(kStateLock);
  size_t own_host_limit_bytes() const { return state_.host_grant.own_limit_bytes(); }

  void SetLinkPermille(std::int64_t permille) {
    link_permille_.store(permille, std::memory_order_relaxed);
  }
  std::int64_t link_permille() const { return link_permille_.load(std::memory_order_relaxed); }
  bool JoinLink(const protocol::LinkPlace& place, int terms_file, int lanes_file)
      SPILLWAY_EXCLUDES(kStateLock);

  // For tests: the budget at certain launches (lease/budget_schedule.h). Before the first
  // allocation.
  void Schedule(BudgetSchedule schedule) { schedule_ = std::move(schedule); }
  void FollowSchedule() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // There is no budget: freed memory goes back to the device (spare_memory.h).
  void GiveBackWhatIsFreed() { eviction_.GiveBackWhatIsFreed(); }
  bool has_schedule() const { return !schedule_.empty(); }

 private:
  void ChangeBudget(size_t bytes, std::uint64_t held_until_ns) SPILLWAY_EXCLUDES(kStateLock);
  bool IsOverBudget() SPILLWAY_EXCLUDES(kStateLock);

  JobState& state_;
  CallRecorder& recording_;
  Parking& parking_;
  Eviction& eviction_;
  BudgetSchedule schedule_;  // constant after construction
  std::atomic<std::int64_t> link_permille_{1000};
};

}  // namespace spillway::interposer
