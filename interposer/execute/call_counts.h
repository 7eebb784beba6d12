// The program's calls that are in progress, other than those that take no lock (calls.h).
//
// Counted on any thread by the classes behind JobMemory; one object for each job.
#pragma once

#include <atomic>

#include "base/scoped_count.h"
#include "interposer/execute/calls.h"
#include "interposer/execute/job_locks.h"

namespace spillway::interposer {

struct CallCounts {
  std::atomic<int> for_memory{0};  // they wait for memory, or make it resident
  int locked SPILLWAY_GUARDED_BY(kStateLock) =
      0;  // begun with the state lock, between Begin and End
  inline static constinit std::atomic<int> blocked_threads{0};

  // However long the program's thread waits in it.
  bool AnyInProgress() const SPILLWAY_REQUIRES(kStateLock) {
    return locked > 0 || for_memory.load(std::memory_order_relaxed) > 0 ||
           blocked_threads.load(std::memory_order_relaxed) > 0 || calls::OthersInProgress();
  }
};

// While one lives the calling thread waits in a call for what was enqueued on the device: the
// process is not idle.
class BlockedThread {
  const base::ScopedCount blocked_{&CallCounts::blocked_threads};
};

}  // namespace spillway::interposer
