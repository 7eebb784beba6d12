// Host memory as granted: how much the job may have for what is away from the device, and how much
// it needs.
//
// Called by the classes behind JobMemory on any thread. The limit is what the agent grants, never
// more than the launcher allows; the pool's own limits (host_pool.h) follow from it and from what
// the program has been given.
//
// Beyond the budget there must be host memory for what is away, for the range that is on its way
// back, and for the last one that leaves for it, each of them at most as large as the largest.
//
// Invariants
//  1. What has been granted to the program may move: a limit that became less than that does not
//  make its calls fail.
// Never: asks the driver for memory; waits with the state lock held.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "interposer/execute/budget_account.h"
#include "interposer/execute/host_pool.h"
#include "interposer/execute/pointer_safety.h"

namespace spillway::interposer {

class HostGrant {
 public:
  // What it reads: all are the job's.
  struct Parts {
    JobLocks* locks;
    Counters* counters;
    CallCounts* calls;
    const BudgetAccount* budget;
    HostPool* pool;
    const PointerSafety* pointer_safety;
  };
  HostGrant(size_t own_limit_bytes, const Parts& parts)
      : own_limit_bytes_(own_limit_bytes), parts_(parts), limit_bytes_(own_limit_bytes) {}

  size_t own_limit_bytes() const { return own_limit_bytes_; }
  void SetLimit(size_t bytes) SPILLWAY_REQUIRES(kStateLock);
  // After a change of anything that the pool's limits follow from. `more_bytes`: of an allocation
  // that is about to be known.
  void UpdateLimits(size_t more_bytes = 0) SPILLWAY_REQUIRES(kStateLock);
  // For the agent, which knows best what the budget will be: the most there was need of, were the
  // budget nothing.
  size_t need_bytes() const SPILLWAY_REQUIRES(kStateLock) { return need_bytes_; }
  // The largest range that has been granted to the program.
  size_t largest_bytes() const SPILLWAY_REQUIRES(kStateLock) { return largest_bytes_; }
  void NoteLargest(size_t bytes) SPILLWAY_REQUIRES(kStateLock) {
    largest_bytes_ = std::max(largest_bytes_, bytes);
  }

  // Whether there is host memory for one more allocation.
  bool HasRoomFor(size_t size_bytes) SPILLWAY_REQUIRES(kStateLock);
  size_t MayHoldBytes() SPILLWAY_REQUIRES(kStateLock);
  // For one more allocation the launcher allows enough, and the agent does not yet.
  bool Lacks(size_t size_bytes) SPILLWAY_REQUIRES(kStateLock);
  // Until the agent has granted it, or it is clear that it does not.
  void Await(size_t size_bytes) SPILLWAY_EXCLUDES(kStateLock);

 private:
  size_t BytesFor(size_t wanted_bytes, size_t largest_bytes) const SPILLWAY_REQUIRES(kStateLock);
  bool MayHold(size_t bytes) SPILLWAY_REQUIRES(kStateLock);
  void NoteNeed(size_t wanted_bytes, size_t largest_bytes) SPILLWAY_REQUIRES(kStateLock);

  // Constant after construction.
  const size_t own_limit_bytes_;
  const Parts parts_;
  // Guarded by the state lock.
  size_t limit_bytes_ SPILLWAY_GUARDED_BY(kStateLock);
  size_t largest_bytes_ SPILLWAY_GUARDED_BY(kStateLock) = 0;
  size_t need_bytes_ SPILLWAY_GUARDED_BY(kStateLock) = 0;
  std::uint64_t refused_ns_ SPILLWAY_GUARDED_BY(kStateLock) =
      0;  // when the agent last had no more for us
};

}  // namespace spillway::interposer
