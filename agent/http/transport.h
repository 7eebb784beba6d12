// The bytes of one HTTP client: as they are, or under TLS. Owned by its connection; nonblocking.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/unique_fd.h"

namespace spillway::agent {

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int file() const = 0;
  // Like recv and sendmsg: 0 at the end, -1 and errno. EAGAIN: call again when the file is ready
  // for Needs.
  virtual ssize_t Receive(char* to, size_t size) = 0;
  virtual ssize_t Send(const iovec* parts, size_t count) = 0;
  // What epoll should wait for, where the client is to be read or written (EPOLLIN, EPOLLOUT).
  virtual uint32_t Needs(uint32_t wanted) const = 0;
  // No byte follows; the client may still send some.
  virtual void EndSending() = 0;
};

std::unique_ptr<Transport> PlainTransport(base::UniqueFd socket);

}  // namespace spillway::agent
