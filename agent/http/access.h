// Who may read the agent's pages, and under which certificate they go: what [http] names, read
// once. Immutable; any thread.
//
// Invariants
//  1. The time that Admits takes does not depend on how much of a wrong token is right.
//  2. A token file that other users can read is an error.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "agent/http/tls/tls_server.h"
#include "agent/http/transport.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace spillway::agent {

struct AccessFiles {
  std::string token, certificate, key;  // paths; empty: none
};

class HttpAccess {
 public:
  static base::Result<std::shared_ptr<const HttpAccess>> Open(const AccessFiles& files);

  bool has_token() const { return !token_.empty(); }
  bool has_tls() const { return tls_ != nullptr; }
  // The value of a request's Authorization field. Without a token everybody is admitted.
  bool Admits(std::string_view authorization) const;
  // Null: TLS has no memory for the client.
  std::unique_ptr<Transport> Accept(base::UniqueFd socket) const;

 private:
  std::string token_;
  std::shared_ptr<const TlsServer> tls_;  // null: plain HTTP
};

}  // namespace spillway::agent
