#include "agent/identity/socket_peer.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace spillway::agent {
namespace {

constexpr int kSoPeerPidFd = 77;  // Linux 6.5; not yet in Debian 12's headers

base::UniqueFd ProcessBehind(int socket, pid_t pid) {
  int file = -1;
  socklen_t length = sizeof file;
  if (getsockopt(socket, SOL_SOCKET, kSoPeerPidFd, &file, &length) == 0)
    return base::UniqueFd(file);
  // Older kernels: the pid may have been reused before this call, but not after.
  return base::UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace

std::unique_ptr<SocketPeer> SocketPeer::Of(int socket) {
  ucred who{};
  socklen_t length = sizeof who;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 || who.pid <= 0)
    return nullptr;
  base::UniqueFd process = ProcessBehind(socket, who.pid);
  if (!process) return nullptr;
  return std::unique_ptr<SocketPeer>(new SocketPeer(who.pid, who.uid, std::move(process)));
}

// The pidfd comes first: if the process lives afterwards, what was read is its own.
std::unique_ptr<SocketPeer> SocketPeer::OfProcess(pid_t pid, const ProcessTable& processes) {
  base::UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const std::optional<uid_t> uid = processes.UserOf(pid);
  if (!process || !uid) return nullptr;
  std::unique_ptr<SocketPeer> peer(new SocketPeer(pid, *uid, std::move(process)));
  return peer->IsAlive() ? std::move(peer) : nullptr;
}

bool SocketPeer::IsAlive() const {
  pollfd watched{process_.get(), POLLIN, 0};
  return poll(&watched, 1, 0) == 0;
}

}  // namespace spillway::agent
