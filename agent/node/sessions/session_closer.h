// Ends sessions: refused ones, closed connections, ended processes.
//
// Invariants
//  1. A living process keeps its grant and its slabs, connected or not. A dead one keeps nothing.
//  2. A session that breaks a rule gets one Error that names the rule. Others are not affected.
#pragma once

#include <utility>
#include <vector>

#include "agent/node/holdings/budget_record.h"
#include "agent/node/holdings/plan_requests.h"
#include "agent/node/sessions/grant_delivery.h"
#include "agent/node/sessions/job_life.h"

namespace spillway::agent {

struct GoneSession {
  SessionId session;
  bool process_lives;
};

class SessionCloser {
 public:
  struct Parts {
    SessionTable* table;
    Users* users;
    Arbiter* arbiter;
    JobTerms* terms;
    BudgetRecord* record;
    SessionSlabs* slabs;
    SessionLinks* links;
    PlanRequests* plans;
    GrantDelivery* delivery;
    JobLife* jobs;
    NodeServices* services;
    NodeCounters* counters;
  };
  explicit SessionCloser(const Parts& parts) : parts_(parts) {}

  void Refuse(Session& session, const Refusal& refusal, int64_t now_ns);
  // A session with a living process that holds something is kept, detached.
  void CloseChannel(Session& session, int64_t now_ns);
  void End(SessionId id, int64_t now_ns);
  // The last one ends the session.
  void EndRegistrations(Session& session, DeviceId device, int64_t now_ns);
  void SayAgentStops();

  std::vector<GoneSession> TakeGone() { return std::exchange(gone_, {}); }

 private:
  void Forget(SessionId id, int64_t now_ns);
  void LeaveJob(Session& session, Job& job);

  const Parts parts_;
  std::vector<GoneSession> gone_;
};

}  // namespace spillway::agent
