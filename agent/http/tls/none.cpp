#include "agent/http/tls/tls_server.h"

namespace spillway::agent {

base::Result<std::shared_ptr<const TlsServer>> TlsServer::Open(const std::string&,
                                                               const std::string&) {
  return base::Error{"cannot use [http] certificate", "this spillwayd was built without OpenSSL",
                     "build it with libssl-dev, or serve TLS by a proxy before [http] socket"};
}

}  // namespace spillway::agent
