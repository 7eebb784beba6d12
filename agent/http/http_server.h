// The agent's pages over HTTP: the live page (routes.h has all paths), /metrics for Prometheus,
// /healthz and /readyz for probes, /api/v1 as JSON and as a stream of events.
//
// Its three threads see only the last report that the loop published. One serves all clients and
// never blocks; the others make the slow pages: one those that ask NVML, one the rest. One request
// a connection, GET and HEAD.
//
// Invariants
//  1. /healthz and /readyz wait for no other client or page.
//  2. A crowd of clients keeps out only itself: Note [A crowd of clients].
//  3. At most kMostStreams clients watch events. All share the bytes of one event.
//  4. A plan shows the shape of its job's network, so it takes a token or the socket's rights.
//  5. On a loopback address without token and TLS, a client gets only /healthz and /readyz by a
//  name that DNS may give: Note [Names of loopback].
//  6. Without the token, where there is one, a client of the address gets only what IsPublic says.
//  A stream that the next token does not admit ends when that token is set.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "agent/device/used_memory.h"
#include "agent/http/access.h"
#include "agent/http/latest_report.h"
#include "agent/http/page_source.h"
#include "base/result.h"

namespace spillway::agent {

struct HttpPlaces {
  std::string address;      // "127.0.0.1:9477", "[::1]:9477"; port 0 takes a free one; empty: none
  std::string socket = {};  // a path; whoever may connect there needs no token; empty: none
  mode_t socket_mode = 0660;
};

class HttpServer {
 public:
  // `latest` and `used` (may be null) outlive the server. `plans`: page_source.h.
  HttpServer(HttpPlaces places, std::shared_ptr<const HttpAccess> access,
             const LatestReport* latest, UsedMemory* used, PlanPage plans);
  ~HttpServer();
  base::Status Start();
  int port() const;
  // Holds for later requests. Any thread.
  void SetAccess(std::shared_ptr<const HttpAccess> access);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::agent
