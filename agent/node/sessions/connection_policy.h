// Decides whether a connection may come in, and which session gives way to it.
//
// Note [A crowd of sessions]
// A session that sends no Hello ends after kHelloNs. At a limit, the oldest session that holds
// nothing is closed: first those without Hello, then operators, then jobs without a device. At a
// user's limit, that user loses one. At the node's limit, the user with most sessions loses one, if
// it has more than the newcomer's user. So a crowd of one user keeps out nobody, not even that
// user. Never: closes anything itself, or names a session whose process holds memory.
#pragma once

#include <set>
#include <vector>

#include "agent/node/holdings/session_slabs.h"
#include "agent/node/table/users.h"

namespace spillway::agent {

class ConnectionPolicy {
 public:
  struct Verdict {
    std::optional<Refusal> refusal = {};
    std::set<SessionId> to_close = {};  // before the answer
  };

  ConnectionPolicy(const NodeFacts* facts, const SessionTable* table, Users* users,
                   const SessionSlabs* slabs)
      : facts_(*facts), table_(*table), users_(*users), slabs_(*slabs) {}

  Verdict Admit(const User& user, int64_t now_ns);
  // Sessions that have sent no Hello in time. Looks at most once a second.
  std::vector<SessionId> TakeSilent(int64_t now_ns);

 private:
  std::optional<SessionId> LeastOf(const User& user, const std::set<SessionId>& except) const;
  std::optional<SessionId> LeastOfLargest(const User& newcomer, int64_t at_least) const;
  int RankOf(const Session& session) const;

  const NodeFacts& facts_;
  const SessionTable& table_;
  Users& users_;
  const SessionSlabs& slabs_;
  int64_t next_check_ns_ = 0;
};

}  // namespace spillway::agent
