// A TCP socket that listens where the configuration says: "127.0.0.1:9477", "[::1]:9477",
// "node:9477"; port 0 takes a free one.
//
// Called once by the pages' server. The socket does not block.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace spillway::agent {

struct TcpListener {
  base::UniqueFd socket;
  int port = -1;
};

base::Result<TcpListener> ListenOnTcp(const std::string& address);

}  // namespace spillway::agent
