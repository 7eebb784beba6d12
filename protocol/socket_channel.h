// Messages over a Unix socket of type SEQPACKET, and the two ways to get one: listen and accept, or
// connect.
//
// Errors are values: an empty UniqueFd, with errno saying why.
#pragma once

#include <string_view>

#include "protocol/channel.h"

namespace spillway::protocol {

class SocketChannel : public Channel {
 public:
  explicit SocketChannel(base::UniqueFd socket) : socket_(std::move(socket)) {}
  Sent Send(const Message& message, std::span<const int> files = {}) override;
  Received Receive() override;
  int file() const override { return socket_.get(); }

 private:
  base::UniqueFd socket_;
};

// A path, or "@name" for an abstract address. Non-blocking, closed on exec.
// A socket's file that nobody listens at any more is replaced; where somebody does: none,
// EADDRINUSE.
base::UniqueFd ListenOn(std::string_view address, unsigned mode);
// Whether it is a socket of type SEQPACKET.
bool KeepsMessagesApart(int socket);
base::UniqueFd ConnectTo(std::string_view address);
base::UniqueFd AcceptFrom(int listener);

}  // namespace spillway::protocol
