// A pidfd keeps the process's pid from being reused.
#pragma once

#include <memory>

#include "agent/identity/job_identity.h"
#include "agent/identity/peer.h"
#include "base/unique_fd.h"

namespace spillway::agent {

class SocketPeer : public Peer {
 public:
  // Null: the process has ended, or the kernel gives no pidfd.
  static std::unique_ptr<SocketPeer> Of(int socket);

  // Null: no such process lives.
  static std::unique_ptr<SocketPeer> OfProcess(pid_t pid, const ProcessTable& processes);

  pid_t pid() const override { return pid_; }
  uid_t uid() const override { return uid_; }
  bool IsAlive() const override;
  int file() const override { return process_.get(); }

 private:
  SocketPeer(pid_t pid, uid_t uid, base::UniqueFd process)
      : pid_(pid), uid_(uid), process_(std::move(process)) {}

  const pid_t pid_;
  const uid_t uid_;
  const base::UniqueFd process_;
};

}  // namespace spillway::agent
