// Unix sockets: addresses, and messages that carry descriptors (SCM_RIGHTS, unix(7)).
//
// Functions return what sendmsg and recvmsg do, and allocate only for received descriptors.
//
// Invariants
//  1. Received descriptors belong to the receiver and are close-on-exec; the kernel closes those
//     that do not fit.
//  2. Interrupted calls are retried. A closed peer raises no signal.
#pragma once

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace spillway::base {

struct UnixAddress {
  sockaddr_un name{};
  socklen_t size = 0;  // 0 if the text is empty or too long

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
  bool is_path() const { return name.sun_path[0] != 0; }
};

// A path, or "@name" for an abstract address without a file.
inline UnixAddress UnixAddressOf(std::string_view text) {
  UnixAddress address;
  address.name.sun_family = AF_UNIX;
  if (text.empty() || text.size() >= sizeof address.name.sun_path) return address;
  memcpy(address.name.sun_path, text.data(), text.size());
  const bool is_abstract = text.front() == '@';
  if (is_abstract) address.name.sun_path[0] = 0;
  address.size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() + (is_abstract ? 0 : 1));
  return address;
}

// The kernel's limit on the descriptors of one message (SCM_MAX_FD).
inline constexpr std::size_t kMostPassedFiles = 253;

// Sends one message. More than kMostPassedFiles files: EINVAL. `to` is for an unconnected socket.
inline ssize_t SendWithFiles(int socket, std::string_view bytes, std::span<const int> files,
                             int flags = 0, const UnixAddress* to = nullptr) {
  if (files.size() > kMostPassedFiles) return errno = EINVAL, -1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMostPassedFiles * sizeof(int))] = {};
  iovec content{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &content;
  header.msg_iovlen = 1;
  if (to) {
    header.msg_name = const_cast<sockaddr_un*>(&to->name);
    header.msg_namelen = to->size;
  }
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
    sent = sendmsg(socket, &header, MSG_NOSIGNAL | flags);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

// Receives one message into `place`. `files` gets at most `most_files`, in the order sent.
inline ssize_t ReceiveWithFiles(int socket, std::span<char> place, std::size_t most_files,
                                std::vector<UniqueFd>* files, int flags = 0) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMostPassedFiles * sizeof(int))];
  iovec content{place.data(), place.size()};
  msghdr header{};
  ssize_t size;
  do {
    header.msg_iov = &content;
    header.msg_iovlen = 1;
    header.msg_control = control;
    // With CMSG_SPACE the padding could hold one more descriptor.
    header.msg_controllen = CMSG_LEN(std::min(most_files, kMostPassedFiles) * sizeof(int));
    size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | flags);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return size;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= part->cmsg_len; at += sizeof(int)) {
      int file;
      memcpy(&file, CMSG_DATA(part) + at, sizeof file);
      files->emplace_back(file);
    }
  }
  return size;
}

template <class T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
template <class T>
std::span<char> PlaceOf(T& value) {
  return {reinterpret_cast<char*>(&value), sizeof value};
}

}  // namespace spillway::base
