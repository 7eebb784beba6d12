// The agent's pages over HTTP: /metrics for Prometheus, /healthz and /readyz for probes,
// /api/v1/status as JSON.
//
// Its two threads see only the last report that the loop published. One serves all clients and
// never blocks; the other makes the slow pages. One request a connection, GET and HEAD.
//
// Invariants
//  1. /healthz and /readyz wait for no other client or page.
//  2. A crowd of clients keeps out only itself: Note [A crowd of clients].
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "agent/device/used_memory.h"
#include "agent/node/node_report.h"
#include "base/result.h"

namespace spillway::agent {

// A report never changes once it is set.
class LatestReport {
 public:
  void Set(std::shared_ptr<const NodeReport> report) {
    const std::lock_guard lock(mutex_);
    report_ = std::move(report);
  }
  std::shared_ptr<const NodeReport> Get() const {
    const std::lock_guard lock(mutex_);
    return report_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const NodeReport> report_;
};

class HttpServer {
 public:
  // `address`: "127.0.0.1:9477", "[::1]:9477"; port 0 takes a free one. `latest` and `used` (may be
  // null) outlive the server.
  HttpServer(std::string address, const LatestReport* latest, UsedMemory* used = nullptr);
  ~HttpServer();
  base::Status Start();
  int port() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::agent
