// Keeps the budgets of an earlier agent's processes that live and have not returned in time: they
// are stopped, or cannot connect. Each gets a detached session, which a returning process takes
// over, and which ends with the process.
//
// Invariants
//  1. A process is known by its pid and its job's key, so a later process of another job with the
//     same pid has nothing.
#pragma once

#include "agent/node/holdings/budget_record.h"
#include "agent/node/sessions/job_life.h"

namespace spillway::agent {

class AbsentProcesses {
 public:
  struct Parts {
    const NodeFacts* facts;
    SessionTable* table;
    Users* users;
    Arbiter* arbiter;
    JobTerms* terms;
    BudgetRecord* record;
    SessionSlabs* slabs;
    JobLife* jobs;
    NodeServices* services;
  };
  explicit AbsentProcesses(const Parts& parts) : parts_(parts) {}

  // Before the record, the terms and the slabs of absent processes are forgotten.
  void Keep(int64_t now_ns);

 private:
  using Recorded = std::map<HolderOnDevice, Held>;
  // Of one process. Null: it has ended.
  Session* SessionFor(const HolderOnDevice& holder, int64_t now_ns);
  void Rejoin(Session& session, const HolderOnDevice& holder, const Held& held, int64_t now_ns);

  const Parts parts_;
};

}  // namespace spillway::agent
