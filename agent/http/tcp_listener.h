// A nonblocking TCP socket that listens on "127.0.0.1:9477", "[::1]:9477" or "node:9477"; port 0
// takes a free one.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace spillway::agent {

struct TcpListener {
  base::UniqueFd socket;
  int port = -1;
  bool is_loopback = false;
};

base::Result<TcpListener> ListenOnTcp(const std::string& address);

}  // namespace spillway::agent
