// Host memory as granted: how much the job may have for evicted memory, and how much it needs.
//
// Called by the classes behind JobMemory on any thread. The limit is the agent's grant, at most
// what the launcher allows. The pool's limits (host_pool.h) follow from it.
//
// Beyond the budget the host must hold the evicted bytes and two ranges in transit. One is being
// restored, the other is evicted for it; each may be as large as the largest.
//
// Invariants
//  1. Granted memory can move: calls do not fail because the limit shrank.
// Never: asks the driver for memory; waits with the state lock held.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "interposer/execute/state/budget_account.h"
#include "interposer/execute/state/host_pool.h"
#include "interposer/execute/state/pointer_safety.h"

namespace spillway::interposer {

class HostGrant {
 public:
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
  // Call it after any change of what the pool's limits follow from. `more_bytes`: the size of an
  // allocation that is about to be registered.
  void UpdateLimits(size_t more_bytes = 0) SPILLWAY_REQUIRES(kStateLock);
  // Whether all memory may have to leave, and quickly: the job takes turns or is idle.
  void ExpectAllToLeave(bool may_leave) SPILLWAY_REQUIRES(kStateLock);
  bool expects_all_to_leave() const SPILLWAY_REQUIRES(kStateLock) { return all_may_leave_; }
  // The peak need if the budget were zero. For the agent, which knows best what the budget will be.
  size_t need_bytes() const SPILLWAY_REQUIRES(kStateLock) { return need_bytes_; }
  size_t largest_bytes() const SPILLWAY_REQUIRES(kStateLock) { return largest_bytes_; }
  void NoteLargest(size_t bytes) SPILLWAY_REQUIRES(kStateLock) {
    largest_bytes_ = std::max(largest_bytes_, bytes);
  }

  // `moves_bytes`: how much of the memory moves as one.
  bool HasRoomFor(size_t size_bytes, size_t moves_bytes) SPILLWAY_REQUIRES(kStateLock);
  bool HasRoomFor(size_t size_bytes) SPILLWAY_REQUIRES(kStateLock) {
    return HasRoomFor(size_bytes, size_bytes);
  }
  size_t MayHoldBytes() SPILLWAY_REQUIRES(kStateLock);
  // For one more allocation the launcher allows enough, but the agent has not granted it yet.
  bool Lacks(size_t size_bytes) SPILLWAY_REQUIRES(kStateLock);
  // Waits until the agent has granted it, or evidently does not.
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
  bool all_may_leave_ SPILLWAY_GUARDED_BY(kStateLock) = false;
  std::uint64_t refused_ns_ SPILLWAY_GUARDED_BY(kStateLock) = 0;  // when the agent last had no more
};

}  // namespace spillway::interposer
