// What the agent grants while the job runs: budget, host memory, and share of the link.
//
// Called by the lease and shrink threads, by tests, and by launches that follow a test's schedule.
//
// Invariants
//  1. Calls that make memory see a new grant at once. MeetBudget, or later calls, evict the excess.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/inline_vector.h"
#include "interposer/execute/call_recorder.h"
#include "interposer/execute/eviction.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/runs.h"
#include "interposer/lease/budget_schedule.h"
#include "protocol/message.h"

namespace spillway::interposer {

class Grants {
 public:
  Grants(JobState& state, CallRecorder& recording, Runs& runs, Parking& parking, Eviction& eviction)
      : state_(state), recording_(recording), runs_(runs), parking_(parking), eviction_(eviction) {}

  size_t budget_bytes() const { return state_.budget.bytes(); }
  // What is held beyond it stays for now.
  void GrantBudget(size_t bytes) SPILLWAY_EXCLUDES(kStateLock);
  // The same, but only until the next budget, which is near. A call that needs more waits for that
  // one, at the latest until `until_ns` (MonotonicNs).
  void HoldBudget(size_t bytes, std::uint64_t until_ns) SPILLWAY_EXCLUDES(kStateLock);
  // The budget was lent to others, and is on its way back: until then (MonotonicNs) calls that need
  // a whole run wait for it. 0: it is not.
  void ExpectReturn(std::uint64_t until_ns) { state_.budget.ExpectReturn(until_ns); }
  // Returns when the budget is met, or when only later calls can go on evicting for it.
  void MeetBudget() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // Both, for tests, also of runs that leave while the job computes.
  void SetBudget(size_t bytes) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);

  // For a job whose calls wait for its turn, while its budget grows: begins to bring evicted memory
  // back, the most recently used first, as far as there is memory. Evicts nothing, and waits for no
  // copy.
  void BringBack() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // The budget that plans are made for. While a job waits for its turn, it is that of its turns.
  size_t budget_to_plan_bytes() const {
    const size_t kept = kept_for_plans_bytes_.load(std::memory_order_relaxed);
    return kept > 0 ? kept : budget_bytes();
  }
  void KeepBudgetForPlans() {
    if (kept_for_plans_bytes_.load() == 0) kept_for_plans_bytes_.store(budget_bytes());
  }
  void EndKeepingForPlans() { kept_for_plans_bytes_.store(0); }

  // What the agent grants beside the budget. Host memory: at most what the launcher allows, and at
  // least what memory granted to the program needs. The link: thousandths, for the planner.
  void SetHostLimit(size_t bytes) SPILLWAY_EXCLUDES(kStateLock);
  // For a job that takes turns or is idle: pins some of the host memory that all its memory needs
  // to leave, as far as the agent has lent it. True: there may be more.
  bool PrepareToLeave() SPILLWAY_EXCLUDES(kStateLock);
  size_t own_host_limit_bytes() const { return state_.host_grant.own_limit_bytes(); }

  void SetLinkPermille(std::int64_t permille) {
    link_permille_.store(permille, std::memory_order_relaxed);
  }
  std::int64_t link_permille() const { return link_permille_.load(std::memory_order_relaxed); }
  // Of one workspace of cuDNN, for the hooks of its queries.
  void SetWorkspaceLimit(size_t bytes) {
    workspace_limit_bytes_.store(bytes, std::memory_order_relaxed);
  }
  size_t workspace_limit_bytes() const {
    return workspace_limit_bytes_.load(std::memory_order_relaxed);
  }
  bool JoinLink(const protocol::LinkPlace& place, int terms_file, int lanes_file)
      SPILLWAY_EXCLUDES(kStateLock);

  // For tests, before the first allocation.
  void Schedule(BudgetSchedule schedule) { schedule_ = std::move(schedule); }
  void FollowSchedule() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  void ReturnFreedMemory() { eviction_.ReturnFreedMemory(); }
  bool has_schedule() const { return !schedule_.empty(); }

 private:
  void ChangeBudget(size_t bytes, std::uint64_t held_until_ns) SPILLWAY_EXCLUDES(kStateLock);
  static constexpr size_t kBatch = 32;
  using Batch = base::InlineVector<Range*, kBatch>;
  Batch NextToBringBack() SPILLWAY_REQUIRES(kStateLock);
  bool MayBringBack() SPILLWAY_REQUIRES(kStateLock);
  bool HasRoomFor(const Range& range) SPILLWAY_REQUIRES(kStateLock);
  bool MayHaveToBringBack() SPILLWAY_REQUIRES(kStateLock);
  bool BringBackBatch() SPILLWAY_REQUIRES(kStateLock);
  bool IsOverBudget() SPILLWAY_EXCLUDES(kStateLock);

  JobState& state_;
  CallRecorder& recording_;
  Runs& runs_;
  Parking& parking_;
  Eviction& eviction_;
  BudgetSchedule schedule_;
  struct BroughtBack {
    size_t held_bytes = 0, budget_bytes = 0, spilled_bytes = 0;
    bool operator==(const BroughtBack&) const = default;
  };
  // No evicted memory fitted then.
  BroughtBack brought_back_ SPILLWAY_GUARDED_BY(kStateLock);
  std::atomic<std::int64_t> link_permille_{1000};
  std::atomic<size_t> workspace_limit_bytes_{SIZE_MAX};
  std::atomic<size_t> kept_for_plans_bytes_{0};
};

}  // namespace spillway::interposer
