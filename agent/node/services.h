// What the node needs of the world: who is at a socket, what to tell the operator. Real ones in agent/, fakes in tests.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "agent/identity/job_identity.h"
#include "agent/node/node_report.h"
#include "protocol/message.h"

namespace spillway::agent {

// The process behind a connection, known by more than its number: another process with the same number is another.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual pid_t pid() const = 0;
  virtual uid_t uid() const = 0;
  virtual bool IsAlive() const = 0;
  // To be polled; readable when the process has ended. -1: there is nothing to poll.
  virtual int file() const { return -1; }
};

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
  // What an operator asks for beyond the node: an empty text when it was done, else why not.
  virtual std::string Reload() = 0;
  virtual std::string SetLogLevel(const std::string& level) = 0;
};

}  // namespace spillway::agent
