// Slabs of the host pool for sessions' processes: requests, quotas, returns, and takeovers by a new
// session of the same process. Without Shares, and for older protocols, sessions get none.
//
// Note [Slabs follow device memory]
// The agent allocates a slab's memory even if its process has nothing to move into it. So slabs are
// limited by the most device memory that the process has held. The current amount would not do: an
// idle process has all its data on the host, and needs the same slabs when it wakes.
//
// Invariants
//  1. A living process keeps its slabs, even if it lost its connection between Hello and Register.
//  2. A slab that could not be sent goes back to the pool, and its process is served again later.
//  3. The pool keeps one request per process: for the device asked for last.
#pragma once

#include <span>
#include <vector>

#include "agent/node/table/node_facts.h"
#include "agent/node/table/session_table.h"

namespace spillway::agent {

class SessionSlabs {
 public:
  SessionSlabs(const NodeFacts* facts, SessionTable* table, const Arbiter* arbiter, Shares* shares)
      : facts_(*facts), table_(*table), arbiter_(*arbiter), shares_(shares) {}

  // Detached sessions of this process that were kept for its slabs. End them before Begin.
  std::vector<SessionId> KeptFor(const Session& session) const;
  void Begin(Session& session);
  bool IsLastWithSlabs(const Session& session) const;
  void StopAsking(const Session& session);
  // A process's slabs end with its last session.
  void End(const Session& session);
  void EndJob(const Job& job);

  void Take(Session& session, const protocol::HeldSlabs& held);
  void Take(Session& session, const protocol::ReturnSlabs& returned);
  void Take(Session& session, Registration& registration, const protocol::AskSlabs& ask);
  void NoteGrant(const Session& session, Registration& registration, int64_t host_bytes);
  // More device memory held raises the quota.
  void NoteUsage(Session& session, uint32_t number, Registration& registration);

  void RefreshQuotas();
  void ForgetUnclaimed();
  void Settle(int64_t now_ns);
  bool wants_retry() const { return wants_retry_; }

 private:
  bool Serves(const Session& session) const;
  PoolHolder HolderOf(const Session& session) const;
  void SetQuotaOf(const Job& job);
  void Serve(Session& session, uint32_t number, Registration& registration);
  void ServeAll();
  void GiveBack(const Session& session, std::span<const Lease> leases);
  int64_t OutsideBytes() const;

  const NodeFacts& facts_;
  SessionTable& table_;
  const Arbiter& arbiter_;
  Shares* const shares_;
  int64_t next_check_ns_ = 0;
  bool wants_retry_ = false;
};

}  // namespace spillway::agent
