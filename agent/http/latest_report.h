// The newest report: set by the loop once a second, read by the threads of the HTTP server.
//
// Invariants
//  1. A report never changes once it is set.
//  2. file() is readable after a Set, until Drain.
#pragma once

#include <sys/eventfd.h>

#include <memory>
#include <mutex>

#include "agent/node/node_report.h"
#include "base/unique_fd.h"

namespace spillway::agent {

class LatestReport {
 public:
  void Set(std::shared_ptr<const NodeReport> report) {
    {
      const std::lock_guard lock(mutex_);
      report_ = std::move(report);
    }
    eventfd_write(notifier_.get(), 1);
  }
  std::shared_ptr<const NodeReport> Get() const {
    const std::lock_guard lock(mutex_);
    return report_;
  }

  int file() const { return notifier_.get(); }
  void Drain() const {
    eventfd_t ignored = 0;
    eventfd_read(notifier_.get(), &ignored);
  }

 private:
  const base::UniqueFd notifier_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  mutable std::mutex mutex_;
  std::shared_ptr<const NodeReport> report_;  // guarded by mutex_
};

}  // namespace spillway::agent
