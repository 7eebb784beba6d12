// Messages over a Unix SEQPACKET socket.
#pragma once

#include <sys/socket.h>

#include <span>
#include <string_view>
#include <vector>

#include "protocol/channel.h"

namespace spillway::protocol {

// Closes files of an untrusted peer that are no plain memory. That may block for as long as the
// peer likes: a lingering socket, a file of the peer's own file system.
class FileSink {
 public:
  virtual ~FileSink() = default;
  virtual void Take(base::UniqueFd file) = 0;
};

class SocketChannel : public Channel {
 public:
  // Null: the peer is trusted.
  explicit SocketChannel(base::UniqueFd socket, FileSink* strays = nullptr)
      : socket_(std::move(socket)), strays_(strays) {}
  SocketChannel(SocketChannel&&) = default;
  // Unread messages may have files, so the sink gets the socket, too.
  ~SocketChannel() override;
  Sent Send(const Message& message, std::span<const int> files = {}) override;
  Received Receive() override;
  int file() const override { return socket_.get(); }
  bool IsRead() const override;
  void End() override { shutdown(socket_.get(), SHUT_RDWR); }

 private:
  ssize_t ReceiveBytes(std::span<char> place, std::vector<base::UniqueFd>* files);

  base::UniqueFd socket_;
  FileSink* const strays_;
};

// `address` is a path, or "@name" for an abstract address. Non-blocking, close-on-exec. Replaces a
// socket file without a listener; fails with EADDRINUSE if one listens.
base::UniqueFd ListenOn(std::string_view address, unsigned mode);
bool IsSeqPacket(int socket);
base::UniqueFd ConnectTo(std::string_view address);
base::UniqueFd AcceptFrom(int listener);

}  // namespace spillway::protocol
