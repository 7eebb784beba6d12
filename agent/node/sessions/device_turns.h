// Lets jobs take turns where the decider (agent/turns) says so: collects its facts, tells jobs to
// run or to wait, and the arbiter who waits.
//
// Invariants
//  1. A job hears that it waits before the grant that takes its memory. A job hears that it runs
//     before the grants that bring memory.
//  2. Nothing happens while jobs of an earlier agent return, and nothing is asked of the sessions
//     while no setting allows turns.
//     Only jobs that have not heard of the end of turns are still told.
//  3. A session of an older protocol takes no part, and neither does its job.
#pragma once

#include "agent/node/services.h"
#include "agent/node/shares.h"
#include "agent/node/table/node_facts.h"
#include "agent/node/table/session_table.h"
#include "agent/turns/turns.h"

namespace spillway::agent {

class DeviceTurns {
 public:
  struct Parts {
    const NodeFacts* facts;
    SessionTable* table;
    Arbiter* arbiter;
    NodeServices* services;
    const Shares* shares;  // null: link rates are unknown
  };
  explicit DeviceTurns(const Parts& parts) : parts_(parts) {}

  // Before the arbiter decides.
  void Settle(bool is_resuming, int64_t now_ns);
  int64_t NextWake() const { return next_wake_ns_; }

  TurnView ViewOf(JobId job, DeviceId device) const { return turns_.ViewOf(job, device); }
  DeviceTurnView ViewOf(DeviceId device) const { return turns_.ViewOf(device); }

 private:
  enum class Mode : uint8_t { kShares, kSharesByChoice, kTurns };

  void NoteIdle();
  std::vector<TurnDevice> Devices() const;
  std::vector<TurnJob> Jobs(int64_t now_ns) const;
  TurnsChoice ChoiceFor(const TenancyView& view) const;
  void AddSession(const Session& session, int64_t now_ns, TurnJob& job) const;
  void Apply(const std::vector<TurnJob>& jobs, int64_t now_ns);
  // False: the job did not take the message, which must be sent again.
  bool Tell(Session& session, uint32_t number, Registration& registration, const TurnJob& job,
            int64_t now_ns);
  void LogModes();
  void LogTurns(const std::vector<TurnJob>& jobs);
  std::string NameOf(JobId job) const;

  const Parts parts_;
  Turns turns_;
  std::shared_ptr<const DeviceProcesses> read_;
  std::map<std::string, int64_t> idle_permille_;  // by UUID; of devices that the driver tells of
  std::map<DeviceId, Mode> logged_modes_;
  std::map<std::pair<JobId, DeviceId>, TurnStanding> logged_;
  bool is_used_ = false;
  bool must_tell_ = false;  // a job has not heard its newest standing
  int64_t looked_ns_ = 0;
  int64_t next_wake_ns_ = INT64_MAX;
};

}  // namespace spillway::agent
