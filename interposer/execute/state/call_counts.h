// The program's calls in progress, except those that take no lock (calls.h).
#pragma once

#include <atomic>

#include "base/scoped_count.h"
#include "interposer/execute/state/calls.h"
#include "interposer/execute/state/job_locks.h"

namespace spillway::interposer {

struct CallCounts {
  std::atomic<int> for_memory{0};  // waiting for memory, or making it resident
  int locked SPILLWAY_GUARDED_BY(kStateLock) =
      0;  // begun with the state lock, between Begin and End
  inline static constinit std::atomic<int> blocked_threads{0};

  bool AnyInside() const SPILLWAY_REQUIRES(kStateLock) {
    return locked > 0 || for_memory.load(std::memory_order_relaxed) > 0 ||
           calls::OthersInProgress();
  }
  // A call counts however long the program's thread waits in it.
  bool AnyInProgress() const SPILLWAY_REQUIRES(kStateLock) {
    return AnyInside() || blocked_threads.load(std::memory_order_relaxed) > 0;
  }
};

// The process is not idle while one exists.
class BlockedThread {
  const base::ScopedCount blocked_{&CallCounts::blocked_threads};
};

}  // namespace spillway::interposer
