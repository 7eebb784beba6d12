// An in-memory connection for tests and the simulation.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "protocol/channel.h"

namespace spillway::protocol {

class MemoryChannel : public Channel {
 public:
  // `most`: frames in each queue.
  static std::pair<std::unique_ptr<MemoryChannel>, std::unique_ptr<MemoryChannel>> Pair(
      size_t most = 64);
  ~MemoryChannel() override { Sever(); }

  Sent Send(const Message& message, std::span<const int> files = {}) override;
  Received Receive() override;
  int file() const override { return -1; }
  bool IsRead() const override { return outgoing_->mail.empty(); }

  Sent SendBytes(std::vector<uint8_t> bytes, std::span<const int> files = {});
  // As if the process was killed: messages it had sent still arrive.
  void Sever();
  bool HasFrames() const { return !incoming_->mail.empty() || incoming_->severed; }

 private:
  struct QueuedFrame {
    std::vector<uint8_t> bytes;
    std::vector<base::UniqueFd> files;
  };
  struct Queue {
    std::deque<QueuedFrame> mail;
    bool severed = false;
  };
  MemoryChannel(std::shared_ptr<Queue> incoming, std::shared_ptr<Queue> outgoing, size_t most)
      : most_(most), incoming_(std::move(incoming)), outgoing_(std::move(outgoing)) {}

  const size_t most_;
  std::shared_ptr<Queue> incoming_, outgoing_;
};

}  // namespace spillway::protocol
