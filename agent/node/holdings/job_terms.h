// The terms of jobs: from the configuration, the manager that expects the job, and the operator,
// within their own limits.
//
// Invariants
//  1. A job's own limits only lower its terms. A stated limit only lowers the configured one.
//  2. A refused or dry change leaves everything as it was.
//  3. No limit is above what the driver's own limits leave (table/native_budget.h). While the
//     driver does not tell of a process, what it told last holds.
//  4. A job that returns to a new agent in time gets the terms that an operator had set.
#pragma once

#include <map>
#include <utility>

#include "agent/node/holdings/allocations.h"
#include "agent/node/holdings/expected_jobs.h"
#include "agent/node/saved_state.h"
#include "agent/node/table/node_facts.h"
#include "agent/node/table/session_table.h"
#include "base/result.h"

namespace spillway::agent {

class JobTerms {
 public:
  JobTerms(const NodeFacts* facts, const SessionTable* table, const ExpectedJobs* expected,
           Arbiter* arbiter, const Allocations* allocations)
      : facts_(*facts),
        table_(*table),
        expected_(*expected),
        arbiter_(*arbiter),
        allocations_(*allocations) {}

  Terms Of(const Job& job, DeviceId device) const;
  void Refresh(const Job& job, DeviceId device);
  void Refresh(const Job& job);
  void RefreshAll();
  // After a new count of the driver's: its own limits on jobs' control groups may be others.
  void RefreshIfLimitsChanged();

  // An error: why it is refused.
  base::Status Change(Job& job, const protocol::SetBudget& wanted);
  void SetWorkspaceLimit(Job& job, int64_t bytes);
  void SetDraining(bool draining);

  // The operators' settings. Restore takes those of an earlier agent, of jobs that may return
  // until EndReturn.
  SavedState Saved() const;
  void Restore(const SavedState& state, bool jobs_may_return);
  void EndReturn();
  uint64_t saved_version() const { return saved_version_; }
  TermsChange TakeRestored(const std::string& key);
  void NoteEnd(const Job& job);

 private:
  void ApplyAllocations(const Job& job, Terms& terms) const;
  void ApplyStated(const Job& job, Terms& terms, int64_t memory_bytes) const;
  protocol::Register OwnLimitsOf(const Job& job, DeviceId device) const;
  base::Status Check(const Job& job, const protocol::SetBudget& wanted) const;

  const NodeFacts& facts_;
  const SessionTable& table_;
  const ExpectedJobs& expected_;
  Arbiter& arbiter_;
  const Allocations& allocations_;
  std::map<std::pair<JobId, DeviceId>, int64_t> NativeBudgets() const;

  SavedState restored_;
  std::map<std::pair<JobId, DeviceId>, int64_t> native_budgets_;  // that the terms have
  uint64_t saved_version_ = 0;
};

}  // namespace spillway::agent
