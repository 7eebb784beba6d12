// The server's side of TLS 1.2 and 1.3, by OpenSSL; the only user of it. A build without OpenSSL
// has none: Open then says so.
#pragma once

#include <memory>
#include <string>

#include "agent/http/transport.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace spillway::agent {

class TlsServer {
 public:
  virtual ~TlsServer() = default;
  // PEM files: the certificate with its chain, and its key.
  static base::Result<std::shared_ptr<const TlsServer>> Open(const std::string& certificate,
                                                             const std::string& key);
  // The handshake is part of the first Receive. Null: no memory.
  virtual std::unique_ptr<Transport> Accept(base::UniqueFd socket) const = 0;
};

}  // namespace spillway::agent
