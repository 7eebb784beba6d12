// Messages over a Unix SEQPACKET socket.
#pragma once

#include <sys/socket.h>

#include <string_view>

#include "protocol/channel.h"

namespace spillway::protocol {

class SocketChannel : public Channel {
 public:
  explicit SocketChannel(base::UniqueFd socket) : socket_(std::move(socket)) {}
  Sent Send(const Message& message, std::span<const int> files = {}) override;
  Received Receive() override;
  int file() const override { return socket_.get(); }
  void End() override { shutdown(socket_.get(), SHUT_RDWR); }

 private:
  base::UniqueFd socket_;
};

// `address` is a path, or "@name" for an abstract address. Non-blocking, close-on-exec. Replaces a
// socket file without a listener; fails with EADDRINUSE if one listens.
base::UniqueFd ListenOn(std::string_view address, unsigned mode);
bool IsSeqPacket(int socket);
base::UniqueFd ConnectTo(std::string_view address);
base::UniqueFd AcceptFrom(int listener);

}  // namespace spillway::protocol
