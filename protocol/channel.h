// One side of a connection that carries messages: a socket (socket_channel.h), or a queue in memory
// for tests and the simulation (memory_channel.h).
//
// Called by the thread that owns it: the agent's loop, a job's planner thread, the command. Owned
// by that side of the session.
//
// Invariants
//  1. Nothing here blocks. A full queue is said, and the message is not half sent.
//  2. A message is delivered whole or not at all, in order.
//  3. What was sent before a close is delivered before kClosed. After a fault its owner closes:
//  nothing behind it counts.
#pragma once

#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "protocol/codec.h"

namespace spillway::protocol {

inline constexpr size_t kMostFiles = kMostSlabsAtOnce;

enum class Sent : uint8_t { kSent, kFull, kClosed };

struct Received {
  enum class What : uint8_t { kMessage, kNothing, kClosed, kFault };
  What what = What::kNothing;
  Message message;
  Fault fault = Fault::kNone;
  std::vector<base::UniqueFd> files;  // the memfds that came with it
  int file() const { return files.empty() ? -1 : files.front().get(); }
};

class Channel {
 public:
  virtual ~Channel() = default;
  // `files` stay the caller's; at most kMostFiles.
  virtual Sent Send(const Message& message, std::span<const int> files = {}) = 0;
  virtual Received Receive() = 0;
  // To be polled for reading; -1 where there is nothing to poll.
  virtual int file() const = 0;

  // What the two sides have agreed upon, for the frames that are sent from now on.
  void SetVersion(uint16_t version) { version_ = version; }
  uint16_t version() const { return version_; }

 private:
  uint16_t version_ = kNewestVersion;
};

}  // namespace spillway::protocol
