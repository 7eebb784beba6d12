#include "protocol/socket_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <utility>

#include "base/unix_endpoint.h"
#include "base/unix_socket.h"

namespace spillway::protocol {
namespace {

// Nothing was sent, but a retry may succeed: the queue is full, or too many files are in flight.
bool IsFull(int error) { return error == EAGAIN || error == ENOBUFS || error == ETOOMANYREFS; }

// A memfd, or a file of tmpfs. Its close does not block.
bool IsMemory(int file) { return fcntl(file, F_GET_SEALS) >= 0; }

Received Ended(Received::What what, Fault fault = Fault::kNone) {
  Received received;
  received.what = what;
  received.fault = fault;
  return received;
}

}  // namespace

Sent SocketChannel::Send(const Message& message, std::span<const int> files) {
  const Frame frame = Encode(message, version());
  const std::string_view bytes(reinterpret_cast<const char*>(frame.data()), frame.size());
  const ssize_t sent = base::SendWithFiles(socket_.get(), bytes, files, MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(frame.size())) return Sent::kSent;
  return IsFull(errno) ? Sent::kFull : Sent::kClosed;
}

Received SocketChannel::Receive() {
  uint8_t bytes[kFrameBytes + 1];  // one more, to detect a datagram that is too long
  Received received;
  const ssize_t size = ReceiveBytes(base::PlaceOf(bytes), &received.files);
  if (size < 0) return Ended(errno == EAGAIN ? Received::What::kNothing : Received::What::kClosed);
  if (size == 0) return Ended(Received::What::kClosed);
  Decoded decoded = Decode(bytes, static_cast<size_t>(size));
  if (!decoded.message) return Ended(Received::What::kFault, decoded.fault);
  received.what = Received::What::kMessage;
  received.message = *decoded.message;
  return received;
}

// All files are received: the kernel would close those that do not fit, on this thread.
ssize_t SocketChannel::ReceiveBytes(std::span<char> place, std::vector<base::UniqueFd>* files) {
  const size_t most = strays_ != nullptr ? base::kMostPassedFiles : kMostFiles;
  ssize_t size;
  // A peer that closes with unread messages resets the connection. The kernel reports that once,
  // before the peer's last messages.
  do {
    size = base::ReceiveWithFiles(socket_.get(), place, most, files, MSG_DONTWAIT);
  } while (size < 0 && errno == ECONNRESET);
  if (strays_ != nullptr) {
    const int error = errno;
    for (base::UniqueFd& file : *files) {
      if (!IsMemory(file.get())) strays_->Take(std::move(file));
    }
    std::erase_if(*files, [](const base::UniqueFd& file) { return !file; });
    if (files->size() > kMostFiles) files->resize(kMostFiles);
    errno = error;
  }
  return size;
}

bool SocketChannel::IsRead() const {
  int unread_bytes = 0;
  return ioctl(socket_.get(), SIOCOUTQ, &unread_bytes) != 0 || unread_bytes == 0;
}

SocketChannel::~SocketChannel() {
  if (strays_ == nullptr || !socket_) return;
  End();
  strays_->Take(std::move(socket_));
}

base::UniqueFd ListenOn(std::string_view address, unsigned mode) {
  return base::ListenOn(address, SOCK_SEQPACKET, mode);
}

bool IsSeqPacket(int socket) {
  int type = 0;
  socklen_t size = sizeof type;
  return getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

base::UniqueFd ConnectTo(std::string_view address) {
  return base::ConnectTo(address, SOCK_SEQPACKET);
}

base::UniqueFd AcceptFrom(int listener) {
  return base::UniqueFd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

}  // namespace spillway::protocol
