// The node's needs of the outside world; tests have fakes.
#pragma once

#include <memory>
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
  virtual std::string PageFor(const protocol::Ask& ask, const NodeReport& report) = 0;
  // Null: no such process lives.
  virtual std::unique_ptr<Peer> PeerOf(pid_t /*pid*/) { return nullptr; }
  // Node::PeerEnded follows the process's end, until the session's.
  virtual void WatchProcess(SessionId /*session*/, const Peer& /*peer*/) {}
  // With a job's first process, and after its last has ended.
  virtual void JobStarted(const JobReport& job) = 0;
  virtual void JobEnded(const JobReport& job) = 0;
  virtual void Warn(const std::string& line) = 0;
  virtual void Note(const std::string& line) = 0;
  virtual void Inform(const std::string& /*line*/) {}
  virtual base::Status Reload() = 0;
  virtual base::Status SetLogLevel(const std::string& level) = 0;
  virtual std::string WhatNeedsRestart() { return ""; }
  // An error: why the next agent will not know the operators' settings.
  virtual base::Status SaveState() { return base::Ok(); }
  // The socket of an allocation, where its folder is; again: the same one. It goes with its folder.
  virtual base::Result<std::string> OpenListener(const std::string& /*allocation*/) {
    return base::Error{"this agent makes no sockets"};
  }
  virtual base::Status CloseListener(const std::string& /*allocation*/) { return base::Ok(); }
  // Measures answer times. Constant in simulations.
  virtual int64_t NowNs() const { return 0; }
};

}  // namespace spillway::agent
