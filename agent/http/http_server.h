// The agent's pages over HTTP: /metrics for Prometheus, /healthz and /readyz for whoever restarts
// it, /api/v1/status as JSON.
//
// Started by the agent; serves on two threads of its own, which see only the last report that the
// loop has published: one talks to all clients and never blocks, the other makes the pages that
// take time. One request a connection, GET and HEAD.
//
// Invariants
//  1. /healthz and /readyz wait for no other client and for no other page.
//  2. At most 256 clients are kept; a further one takes the place of the one that has been silent
//  for longest.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "agent/device/used_memory.h"
#include "agent/node/node_report.h"
#include "base/result.h"

namespace spillway::agent {

// Set by the loop, read by the server's threads; a report never changes once it is set.
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
  // `address`: "127.0.0.1:9477", "[::1]:9477"; port 0 takes a free one.
  // `latest` and `used`, which may be null, outlive it.
  HttpServer(std::string address, const LatestReport* latest, UsedMemory* used = nullptr);
  ~HttpServer();
  // An error: why it cannot serve.
  base::Status Start();
  int port() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spillway::agent
