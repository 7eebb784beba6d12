// Ends the claims of processes that hold nothing.
//
// Note [Holds nothing]
// A process reports its own demand and activity. One that holds no memory on the device, and no own
// memory on the host, has nothing to lose. It keeps a claim only for [arbiter] unused_ms after a
// grant, and none while idle. The time in which it waits for its turn on any device does not count:
// its calls wait then, so it cannot begin to hold anything. A stopped process does not wait. It
// gets a claim again when it wakes or wants more. Reported holdings count only within the budget.
//
// Invariants
//  1. `ends_` has (T, session, number) if that registration's `unused_until_ns` is T, until the
//     session ends.
#pragma once

#include <set>
#include <tuple>
#include <vector>

#include "agent/node/table/node_facts.h"
#include "agent/node/table/session_table.h"

namespace spillway::agent {

class UnusedClaims {
 public:
  // By the arbiter.
  struct Budgeted {
    bool has_grant = false;
    int64_t memory_bytes = 0;
  };
  struct Change {
    TenantProcess process;
    Demand demand;
  };

  explicit UnusedClaims(const NodeFacts* facts) : facts_(*facts) {}

  // `before`: the report before this one. Sets the registration's has_claim.
  void NoteUsage(const Session& session, uint32_t number, Registration& registration,
                 const protocol::Usage& before, const Budgeted& budgeted, int64_t now_ns);
  void AwaitUse(const Session& session, uint32_t number, Registration& registration,
                int64_t now_ns);
  // Returns the demands that changed.
  std::vector<Change> End(SessionTable& table, int64_t now_ns);
  int64_t NextWake() const { return ends_.empty() ? INT64_MAX : std::get<0>(*ends_.begin()); }

 private:
  bool HasWaitedForTurn(const Session& session, uint32_t number, Registration& registration,
                        int64_t now_ns);
  void EndAt(const Session& session, uint32_t number, Registration& registration, int64_t ns);
  void SetClaim(const Session& session, uint32_t number, Registration& registration,
                bool has_claim);

  const NodeFacts& facts_;
  std::set<std::tuple<int64_t, SessionId, uint32_t>> ends_;  // time, session, client's device
};

}  // namespace spillway::agent
