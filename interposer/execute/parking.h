// When mappings may change: evicted memory is parked while kernels may reach it without naming it.
// (Note [Pointer safety] in pointer_safety.h)
//
// Owns what is decided from the first PrepareToMove to EndMoving, and flags that launches read
// without a lock.
//
// Invariants
//  1. While the job parks, mappings change only while the device is idle and no call begins. Every
//     range that a kernel may reach is mapped.
//  2. EndMoving ends each time of making memory, with the making lock still held.
// Never: evicts.
#pragma once

#include <atomic>
#include <cstddef>

#include "interposer/execute/job_state.h"
#include "interposer/execute/memory_scan.h"
#include "interposer/execute/vain_waits.h"
#include "interposer/execute/waits.h"

namespace spillway::interposer {

class Parking {
 public:
  Parking(JobState& state, Waits& waits, MemoryScan& scan, ParkChoice choice)
      : state_(state), waits_(waits), scan_(scan), reads_host_(choice == ParkChoice::kOff) {}

  // Before the first step that takes memory or a mapping away. False when none may be made.
  bool PrepareToMove() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  // Waits for restores; then calls may begin.
  void EndMoving() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  bool MustPrepare() const SPILLWAY_REQUIRES(kStateLock) { return !prepared_; }
  bool MayMoveNow() const SPILLWAY_REQUIRES(kStateLock) {
    return !wait_was_futile_ && !state_.MustStay();
  }
  void AwaitRestores() SPILLWAY_EXCLUDES(kStateLock);
  // Makes the first full scan where it must come first (PointerSafety::MustScanBeforeGranting).
  bool MustScanBeforeGranting(size_t size_bytes) SPILLWAY_REQUIRES(kStateLock);
  void ScanBeforeGranting(size_t size_bytes) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);

  void UpdateParking() SPILLWAY_REQUIRES(kStateLock);
  bool MayPark() SPILLWAY_EXCLUDES(kStateLock);
  // Maps the range before any call names it. False when it cannot.
  bool ParkIfNew(Range* range) SPILLWAY_REQUIRES(kStateLock);
  // Within the budget a new range gets memory when the work of freed memory is done.
  bool AwaitsFreed(const Range& range) const SPILLWAY_REQUIRES(kStateLock);
  // Parking must begin before the next new call is made.
  bool is_due() const SPILLWAY_REQUIRES(kStateLock) { return is_due_; }
  void NoteDue(bool is_due) SPILLWAY_REQUIRES(kStateLock) { is_due_ |= is_due; }
  bool wait_was_futile() const SPILLWAY_REQUIRES(kStateLock) { return wait_was_futile_; }

  // Any thread. Memory that kernels allocate themselves cannot be scanned for addresses.
  static void HeapIsUsed() { heap_is_used.store(true, std::memory_order_relaxed); }
  // Any thread. scans: new kernels get a post-launch scan. reads_host: memory may have been
  // evicted, so launches scan host memory.
  bool scans() const { return scans_.load(); }
  void UpdateScans() SPILLWAY_REQUIRES(kStateLock) { scans_ = state_.pointer_safety.WantsScans(); }
  bool reads_host() const { return reads_host_.load(); }

 private:
  bool AwaitIdle() SPILLWAY_EXCLUDES(kStateLock);
  bool IsIdle() SPILLWAY_REQUIRES(kStateLock);

  inline static constinit std::atomic<bool> heap_is_used{false};

  JobState& state_;
  Waits& waits_;
  MemoryScan& scan_;
  std::atomic<bool> scans_{false};
  std::atomic<bool> reads_host_;
  bool is_due_ SPILLWAY_GUARDED_BY(kStateLock) = false;
  bool prepared_ SPILLWAY_GUARDED_BY(kStateLock) = false;
  bool wait_was_futile_ SPILLWAY_GUARDED_BY(kStateLock) =
      false;  // the device does not become idle, and nothing may move
  VainWaits vain_waits_ SPILLWAY_GUARDED_BY(kStateLock);
};

}  // namespace spillway::interposer
