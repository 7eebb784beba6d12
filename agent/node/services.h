// What the node needs of the world: who is at a socket, what to tell the operator. Real ones in
// agent/, fakes in tests.
#pragma once

#include <optional>
#include <string>

#include "agent/identity/job_identity.h"
#include "agent/identity/peer.h"
#include "agent/node/node_report.h"
#include "base/result.h"
#include "protocol/message.h"

namespace spillway::agent {

class NodeServices {
 public:
  virtual ~NodeServices() = default;
  virtual std::optional<JobIdentity> IdentityOf(const Peer& peer, pid_t leader_pid) = 0;
  // A page for an operator.
  virtual std::string PageFor(const protocol::Ask& ask, const NodeReport& report) = 0;
  // Of a job, when its first process comes and when its last has gone.
  virtual void JobStarted(const JobReport& job) = 0;
  virtual void JobEnded(const JobReport& job) = 0;
  virtual void Warn(const std::string& line) = 0;
  virtual void Note(const std::string& line) = 0;
  // What an operator did, or was refused.
  virtual void Inform(const std::string& /*line*/) {}
  // What an operator asks for beyond the node.
  virtual base::Status Reload() = 0;
  virtual base::Status SetLogLevel(const std::string& level) = 0;
  // After a reload: which settings that have changed take a restart; an empty text: none.
  virtual std::string WhatNeedsRestart() { return ""; }
  // Keeps what operators have set, at once. An error: why the next agent will not know it.
  virtual base::Status SaveState() { return base::Ok(); }
  // To tell how long an answer took; a simulation's stands still.
  virtual int64_t NowNs() const { return 0; }
};

}  // namespace spillway::agent
