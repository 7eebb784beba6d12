// How a job gets memory when none is free: it frees, evicts and waits, in that order.
//
// Invariants
//  1. Nothing is evicted while it may be used unseen (Parking). Nothing is evicted for a prefetch.
//  2. The wait ends: when there is memory, or when nothing is under way that could free any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/function_ref.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/waits.h"

namespace spillway::interposer {

class Eviction {
 public:
  Eviction(JobState& state, Waits& waits, Parking& parking)
      : state_(state), waits_(waits), parking_(parking) {}

  // True when `take_now` is. `take_now` is called with the state lock held.
  bool MakeRoom(size_t bytes, StallCause cause, base::FunctionRef<bool()> take_now)
      SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  // For several ranges that each make room then: what leaves does so in one go, while the first
  // come. Mappings may change.
  void BeginMakingRoom(size_t bytes) SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  // Evicts nothing.
  bool AwaitFreed(size_t bytes, StallCause cause, base::FunctionRef<bool()> take_now)
      SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  // Gives the plan's prefetches their memory before any later request.
  void AwaitPrefetches(StallCause cause) SPILLWAY_EXCLUDES(kStateLock);

  // Memory that cannot leave waits for a budget on its way that has room for it, too.
  void AwaitReturnFor(size_t bytes) SPILLWAY_EXCLUDES(kStateLock);
  CUresult AddSlab(size_t bytes) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  CUresult AddSlabWhileMaking(size_t bytes) SPILLWAY_REQUIRES(kMakingLock)
      SPILLWAY_EXCLUDES(kStateLock);

  void ReturnFreedMemory() SPILLWAY_EXCLUDES(kStateLock);
  void GiveBackSpare() SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // Whether a new range is to wait for memory under way: for what the layout has for it, or because
  // the driver's free would have waited, and much memory would be created beside freed, busy one.
  // For the layout it waits but a while.
  bool MustAwaitFreed(size_t size_bytes) SPILLWAY_REQUIRES(kStateLock);
  void AwaitFreedFor(size_t size_bytes) SPILLWAY_EXCLUDES(kStateLock);

 private:
  bool MustAwaitSpare(size_t size_bytes) SPILLWAY_REQUIRES(kStateLock);
  bool MustAwaitLaidOut(size_t size_bytes) SPILLWAY_REQUIRES(kStateLock);
  std::int64_t WishNs() SPILLWAY_REQUIRES(kStateLock);
  void AwaitOneOf(const Waits::Awaited& awaited, StallCause cause, std::int64_t wish_ns)
      SPILLWAY_EXCLUDES(kStateLock);
  bool OthersMayEnd(std::uint64_t deadline_ns) SPILLWAY_REQUIRES(kStateLock);
  bool StartMakingRoom(size_t bytes) SPILLWAY_REQUIRES(kStateLock);
  Waits::Awaited NextToFree() SPILLWAY_REQUIRES(kStateLock);
  void GiveBackEmptySlabs() SPILLWAY_REQUIRES(kStateLock);
  void GiveBackSpareSlabs() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);

  JobState& state_;
  Waits& waits_;
  Parking& parking_;
  bool gives_back_ = false;
};

}  // namespace spillway::interposer
