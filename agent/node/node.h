// The agent without sockets and clocks: sessions, jobs and the arbiter behind a few events. One
// thread, the loop's. `now_ns` is any clock; if it goes backwards, things only take longer. Calls
// between parts go one way: messages, sessions, holdings, table.
//
// Invariants
//  1. A session that breaks a rule gets one Error that names the rule, and is closed. Other
//     sessions are not affected.
//  2. A living process keeps its grant, connected or not. A dead one keeps nothing.
#pragma once

#include <memory>
#include <vector>

#include "agent/node/messages/job_messages.h"
#include "agent/node/messages/operators.h"
#include "agent/node/sessions/absent_processes.h"
#include "agent/node/sessions/device_turns.h"
#include "agent/node/sessions/session_opener.h"

namespace spillway::agent {

class Node {
 public:
  static constexpr size_t kMostUnread = GrantDelivery::kMostUnread;
  using Gone = GoneSession;

  // Null shares: no slabs and no link places. Null planning: jobs plan for themselves.
  Node(Config config, std::vector<NodeDevice> devices, int64_t host_bytes, uint64_t instance,
       NodeServices* services, int64_t now_ns, Shares* shares = nullptr,
       Planning* planning = nullptr, HeldRecord* record = nullptr,
       HardLimits* hard_limits = nullptr);
  Node(const Node&) = delete;

  std::optional<SessionId> Connected(std::unique_ptr<protocol::Channel> channel,
                                     std::unique_ptr<Peer> peer, int64_t now_ns,
                                     Entrance entrance = Entrance::kAll,
                                     const std::string& allocation = "");
  void Readable(SessionId session, int64_t now_ns);
  void PeerEnded(SessionId session, int64_t now_ns);
  // Call it after every batch of events, and when NextWake has come.
  void Settle(int64_t now_ns);
  int64_t NextWake() const;
  // The node keeps those with a living process.
  std::vector<Gone> TakeGone() { return closer_.TakeGone(); }
  void Stop() { closer_.SayAgentStops(); }

  void SetConfig(const Config& config);
  void NoteReload(bool succeeded);
  // Null: there is no count of late.
  void NoteProcesses(std::shared_ptr<const DeviceProcesses> processes);
  // Restore takes an earlier instance's; a job gets its terms when it returns in time.
  SavedState Saved() const;
  void Restore(const SavedState& state);
  uint64_t saved_version() const {
    return terms_.saved_version() + expected_.saved_version() + allocations_.saved_version();
  }
  const std::map<std::string, Allocation>& allocations() const { return allocations_.Saved(); }

  const Config& config() const { return facts_.config; }
  NodeReport Report(int64_t now_ns) const { return reporter_.Report(now_ns); }
  const Arbiter& arbiter() const { return arbiter_; }
  size_t session_count() const { return table_.sessions().size(); }

 private:
  std::optional<Refusal> Take(Session& session, protocol::Received& received, int64_t now_ns);
  void SetDevices();
  void EndReturn(int64_t now_ns);
  void Deliver(const Decisions& decisions, int64_t now_ns);

  NodeServices* const services_;
  NodeFacts facts_;
  NodeCounters counters_;
  int64_t settled_ns_;
  std::shared_ptr<const DeviceProcesses> counted_;  // as the driver counts, with our own limits

  Arbiter arbiter_;
  ResumePeriod resume_;
  SessionTable table_;
  Users users_;
  UnknownDevices unknown_;

  JobOwners owners_;
  ExpectedJobs expected_;
  Allocations allocations_;
  JobTerms terms_;
  UnusedClaims claims_;
  BudgetRecord record_;
  SessionSlabs slabs_;
  SessionLinks links_;
  PlanRequests plans_;
  Backstop backstop_;

  GrantDelivery delivery_;
  DeviceTurns turns_;
  SessionSpill spill_;
  JobLife jobs_;
  SessionCloser closer_;
  SessionOpener opener_;
  AbsentProcesses absent_;

  NodeReporter reporter_;
  DeviceRegistrar registrar_;
  JobMessages job_messages_;
  Operators operators_;
};

}  // namespace spillway::agent
