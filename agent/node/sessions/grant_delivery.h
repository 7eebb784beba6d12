// Sends the arbiter's decisions to the sessions that they concern.
//
// Invariants
//  1. A client with kMostUnread unread grants gets no further ones. Then only the newest is kept,
//     until it reads again.
//  2. A grant that grows waits for its hard limit (holdings/backstop.h).
//  3. Grants of host memory and link take effect when they are sent.
#pragma once

#include <set>

#include "agent/node/holdings/backstop.h"
#include "agent/node/holdings/session_links.h"
#include "agent/node/holdings/session_slabs.h"
#include "agent/node/holdings/unused_claims.h"

namespace spillway::agent {

class GrantDelivery {
 public:
  static constexpr size_t kMostUnread = 4;

  GrantDelivery(SessionTable* table, UnusedClaims* claims, SessionSlabs* slabs, SessionLinks* links,
                const Backstop* backstop, NodeCounters* counters)
      : table_(*table),
        claims_(*claims),
        slabs_(*slabs),
        links_(*links),
        backstop_(*backstop),
        counters_(*counters) {}

  void Deliver(const AdmissionDecision& decision, int64_t now_ns);
  void Deliver(const GrantDecision& decision, int64_t now_ns);
  void Send(Session& session, int64_t now_ns);
  void SendAll(int64_t now_ns);
  void Forget(SessionId id) { waiting_.erase(id); }
  bool WantsRetry() const;

 private:
  bool SendWorkspaceLimit(Session& session, uint32_t number, Registration& registration,
                          int64_t limit_bytes);
  void SendGrant(Session& session, uint32_t number, Registration& registration, int64_t now_ns);

  SessionTable& table_;
  UnusedClaims& claims_;
  SessionSlabs& slabs_;
  SessionLinks& links_;
  const Backstop& backstop_;
  NodeCounters& counters_;
  std::set<SessionId> waiting_;  // with unsent messages
};

}  // namespace spillway::agent
