#include "protocol/memory_channel.h"

namespace spillway::protocol {

std::pair<std::unique_ptr<MemoryChannel>, std::unique_ptr<MemoryChannel>> MemoryChannel::Pair(
    size_t most) {
  auto there = std::make_shared<Queue>(), back = std::make_shared<Queue>();
  return {std::unique_ptr<MemoryChannel>(new MemoryChannel(back, there, most)),
          std::unique_ptr<MemoryChannel>(new MemoryChannel(there, back, most))};
}

Sent MemoryChannel::Send(const Message& message, std::span<const int> files) {
  const Frame frame = Encode(message, version());
  return SendBytes({frame.begin(), frame.end()}, files);
}

Sent MemoryChannel::SendBytes(std::vector<uint8_t> bytes, std::span<const int> files) {
  if (outgoing_->severed || incoming_->severed) return Sent::kClosed;
  if (outgoing_->mail.size() >= most_) return Sent::kFull;
  QueuedFrame letter = {std::move(bytes), {}};
  for (const int file : files) letter.files.emplace_back(dup(file));
  outgoing_->mail.push_back(std::move(letter));
  return Sent::kSent;
}

Received MemoryChannel::Receive() {
  Received received;
  if (incoming_->mail.empty()) {
    if (incoming_->severed) received.what = Received::What::kClosed;
    return received;
  }
  QueuedFrame letter = std::move(incoming_->mail.front());
  incoming_->mail.pop_front();
  const Decoded decoded = Decode(letter.bytes.data(), letter.bytes.size());
  received.what = decoded.message ? Received::What::kMessage : Received::What::kFault;
  received.fault = decoded.fault;
  if (decoded.message) {
    received.message = *decoded.message;
    received.files = std::move(letter.files);
  }
  return received;
}

void MemoryChannel::Sever() { outgoing_->severed = true; }

}  // namespace spillway::protocol
