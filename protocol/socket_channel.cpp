#include "protocol/socket_channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstddef>

namespace spillway::protocol {
namespace {

// The length of the address, or 0 when it does not fit or is empty.
socklen_t AddressOf(std::string_view address, sockaddr_un* out) {
  *out = {};
  out->sun_family = AF_UNIX;
  if (address.empty() || address.size() >= sizeof out->sun_path) {
    errno = ENAMETOOLONG;
    return 0;
  }
  memcpy(out->sun_path, address.data(), address.size());
  const bool abstract = address.front() == '@';
  if (abstract) out->sun_path[0] = 0;
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size() + (abstract ? 0 : 1));
}

base::UniqueFd NewSocket() {
  return base::UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Room for kMostFiles; CMSG_SPACE would leave room for the padding to hold one more.
constexpr size_t kControlBytes = CMSG_LEN(kMostFiles * sizeof(int));

// The files that came along; the kernel has closed what did not fit.
std::vector<base::UniqueFd> FilesIn(msghdr* header) {
  std::vector<base::UniqueFd> files;
  for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr; part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= part->cmsg_len; at += sizeof(int)) {
      int file;
      memcpy(&file, CMSG_DATA(part) + at, sizeof file);
      files.emplace_back(file);
    }
  }
  return files;
}

// Nothing was sent, and later it can be: the queue is full, or too many files are on their way.
bool IsFull(int error) { return error == EAGAIN || error == ENOBUFS || error == ETOOMANYREFS; }

// A socket's file outlives who listened, and goes. One where somebody still listens (maybe too busy to take us) stays, as what is
// no socket does. False, with errno: it stays.
bool MakeRoomFor(std::string_view address, const char* path) {
  struct stat facts;
  if (lstat(path, &facts) != 0) return true;
  errno = EEXIST;
  if (!S_ISSOCK(facts.st_mode)) return false;
  const bool is_taken = ConnectTo(address) || errno == EAGAIN || errno == EPROTOTYPE;
  errno = EADDRINUSE;
  return !is_taken && unlink(path) == 0;
}

Received Ended(Received::What what, Fault fault = Fault::kNone) {
  Received received;
  received.what = what;
  received.fault = fault;
  return received;
}

}  // namespace

Sent SocketChannel::Send(const Message& message, std::span<const int> files) {
  Frame frame = Encode(message, version());
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFiles * sizeof(int))] = {};
  iovec content{frame.data(), frame.size()};
  msghdr header{};
  header.msg_iov = &content;
  header.msg_iovlen = 1;
  if (!files.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(files.size_bytes());
    memcpy(CMSG_DATA(part), files.data(), files.size_bytes());
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(frame.size())) return Sent::kSent;
  return IsFull(errno) ? Sent::kFull : Sent::kClosed;
}

Received SocketChannel::Receive() {
  uint8_t bytes[kFrameBytes + 1];  // one more, to see that a datagram is too long
  alignas(cmsghdr) char control[kControlBytes] = {};
  iovec content{bytes, sizeof bytes};
  msghdr header{};
  header.msg_iov = &content;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t size;
  // Who closes and leaves something unread, as who refuses a connection unheard, resets it; that is told once, before its last words.
  do {
    size = recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (size < 0 && (errno == EINTR || errno == ECONNRESET));
  if (size < 0) return Ended(errno == EAGAIN ? Received::What::kNothing : Received::What::kClosed);
  Received received;
  received.files = FilesIn(&header);
  if (size == 0) return Ended(Received::What::kClosed);
  Decoded decoded = Decode(bytes, static_cast<size_t>(size));
  if (!decoded.message) return Ended(Received::What::kFault, decoded.fault);
  received.what = Received::What::kMessage;
  received.message = *decoded.message;
  return received;
}

base::UniqueFd ListenOn(std::string_view address, unsigned mode) {
  sockaddr_un name;
  const socklen_t length = AddressOf(address, &name);
  base::UniqueFd socket = NewSocket();
  if (length == 0 || !socket) return {};
  const bool is_path = name.sun_path[0] != 0;
  if (is_path && !MakeRoomFor(address, name.sun_path)) return {};
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&name), length) != 0) return {};
  if (is_path && chmod(name.sun_path, mode) != 0) return {};
  if (listen(socket.get(), SOMAXCONN) != 0) return {};
  return socket;
}

bool KeepsMessagesApart(int socket) {
  int type = 0;
  socklen_t size = sizeof type;
  return getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

base::UniqueFd ConnectTo(std::string_view address) {
  sockaddr_un name;
  const socklen_t length = AddressOf(address, &name);
  base::UniqueFd socket = NewSocket();
  if (length == 0 || !socket) return {};
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&name), length) != 0) return {};
  return socket;
}

base::UniqueFd AcceptFrom(int listener) {
  return base::UniqueFd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

}  // namespace spillway::protocol
