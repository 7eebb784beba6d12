// Listeners and clients of Unix sockets, close-on-exec and non-blocking.
//
// Addresses as for UnixAddressOf; `type` is SOCK_STREAM or SOCK_SEQPACKET. Without a result errno
// says why; ENAMETOOLONG also for an empty address.
//
// Invariants
//  1. Only the socket file of a listener that has ended is replaced.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "base/unix_socket.h"

namespace spillway::base {

namespace internal {

inline UniqueFd NewUnixSocket(int type) {
  return UniqueFd(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

inline UnixAddress CheckedAddressOf(std::string_view text) {
  const UnixAddress address = UnixAddressOf(text);
  if (address.size == 0) errno = ENAMETOOLONG;
  return address;
}

}  // namespace internal

inline UniqueFd ConnectTo(std::string_view address, int type) {
  const UnixAddress name = internal::CheckedAddressOf(address);
  UniqueFd socket = internal::NewUnixSocket(type);
  if (name.size == 0 || !socket) return {};
  if (connect(socket.get(), name.get(), name.size) != 0) return {};
  return socket;
}

namespace internal {

// False, with errno, if something else stays: another kind of file, or the socket of a live
// listener, even one too busy to accept.
inline bool RemoveStaleSocket(std::string_view address, const char* path, int type) {
  struct stat facts;
  if (lstat(path, &facts) != 0) return true;
  errno = EEXIST;
  if (!S_ISSOCK(facts.st_mode)) return false;
  const bool is_taken = ConnectTo(address, type) || errno == EAGAIN || errno == EPROTOTYPE;
  errno = EADDRINUSE;
  return !is_taken && unlink(path) == 0;
}

}  // namespace internal

// Nobody can connect before it listens, so a path has its mode from the first client on.
inline UniqueFd ListenOn(std::string_view address, int type, mode_t mode) {
  const UnixAddress name = internal::CheckedAddressOf(address);
  UniqueFd socket = internal::NewUnixSocket(type);
  if (name.size == 0 || !socket) return {};
  const char* const path = name.name.sun_path;
  if (name.is_path() && !internal::RemoveStaleSocket(address, path, type)) return {};
  if (bind(socket.get(), name.get(), name.size) != 0) return {};
  if (name.is_path() && chmod(path, mode) != 0) return {};
  if (listen(socket.get(), SOMAXCONN) != 0) return {};
  return socket;
}

}  // namespace spillway::base
