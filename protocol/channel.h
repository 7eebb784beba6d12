// One side of a message connection: a socket (socket_channel.h), or an in-memory queue for tests
// and the simulation (memory_channel.h).
//
// Invariants
//  1. Nothing blocks. A full queue is reported, and nothing of the message is sent.
//  2. Messages arrive whole and in order, or not at all.
//  3. Messages sent before a close arrive before kClosed. After a fault the owner closes the
//     channel.
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
  std::vector<base::UniqueFd> files;
  int file() const { return files.empty() ? -1 : files.front().get(); }
};

class Channel {
 public:
  virtual ~Channel() = default;
  // The caller keeps `files`; at most kMostFiles.
  virtual Sent Send(const Message& message, std::span<const int> files = {}) = 0;
  virtual Received Receive() = 0;
  virtual int file() const = 0;
  // The peer has received all that was sent.
  virtual bool IsRead() const = 0;
  // Ends the connection for all processes that share it. Destruction closes only this process's
  // copy, and a forked child may have another.
  virtual void End() {}

  void SetVersion(uint16_t version) { version_ = version; }
  uint16_t version() const { return version_; }

 private:
  uint16_t version_ = kNewestVersion;
};

}  // namespace spillway::protocol
