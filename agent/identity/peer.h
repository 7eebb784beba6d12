// The process behind a connection, known by more than its number: another process with the same
// number is another.
//
// Owned by the session; one thread. Real ones are SocketPeers, tests make their own.
#pragma once

#include <sys/types.h>

namespace spillway::agent {

class Peer {
 public:
  virtual ~Peer() = default;
  virtual pid_t pid() const = 0;
  virtual uid_t uid() const = 0;
  virtual bool IsAlive() const = 0;
  // To be polled; readable when the process has ended. -1: there is nothing to poll.
  virtual int file() const { return -1; }
};

}  // namespace spillway::agent
