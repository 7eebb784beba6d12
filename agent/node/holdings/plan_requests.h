// Passes jobs' requests for plans to the planner, and its replies back. Without Planning, requests
// are answered at once: jobs plan for themselves.
//
// Invariants
//  1. A request that reaches the planner is one sealed file of its stated size.
//  2. No reply is kept for a client that does not read: it plans for itself by then.
#pragma once

#include <optional>
#include <vector>

#include "agent/node/planning.h"
#include "agent/node/table/session_table.h"

namespace spillway::agent {

class PlanRequests {
 public:
  PlanRequests(const SessionTable* table, Planning* planning)
      : table_(*table), planning_(planning) {}

  static bool IsOne(const protocol::Message& message);
  std::optional<Refusal> Take(const Session& session, protocol::Received& received);
  void SendReplies();
  void Forget(SessionId id);

 private:
  void Take(const Session& session, const protocol::AskPlan& ask,
            std::vector<base::UniqueFd>& files);
  void Take(const Session& session, const protocol::RecallPlans& recall);
  PlanOwner OwnerOf(const Session& session, uint32_t device) const;

  const SessionTable& table_;
  Planning* const planning_;
};

}  // namespace spillway::agent
