// The process behind a connection. A later process with the same pid is a different peer.
#pragma once

#include <sys/types.h>

namespace spillway::agent {

class Peer {
 public:
  virtual ~Peer() = default;
  virtual pid_t pid() const = 0;
  virtual uid_t uid() const = 0;
  virtual bool IsAlive() const = 0;
  // Readable when the process has ended, for polling. -1: nothing to poll.
  virtual int file() const { return -1; }
};

}  // namespace spillway::agent
