// When mappings may change: what is evicted is parked while kernels may reach it unseen. See Note
// [Pointer safety] in pointer_safety.h.
//
// Called by the classes behind JobMemory on the program's threads. Owns what is asked once in each
// time in which one thread makes memory (from the first PrepareToMove to EndMoving), and the flags
// that launches read without a lock.
//
// Invariants
//  1. While the job parks, mappings change only while the device is idle and no call begins, and a
//  range that anybody may reach is mapped.
//  2. EndMoving follows every time of making memory, with the making lock still held.
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

  // Before the first step that takes memory away from a range or a mapping from the device. False
  // when none may be made.
  bool PrepareToMove() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  // What was brought back is there, and calls may begin.
  void EndMoving() SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  bool MustPrepare() const SPILLWAY_REQUIRES(kStateLock) { return !prepared_; }
  bool MayMoveNow() const SPILLWAY_REQUIRES(kStateLock) {
    return !waits_in_vain_ && !state_.MustStay();
  }
  void AwaitRestores() SPILLWAY_EXCLUDES(kStateLock);
  // What is granted beyond the budget could not be used if the first full scan says that nothing
  // may leave: it comes before.
  void AskBeforeGranting(size_t size_bytes) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);

  // Follows what is known by now of the job's pointers.
  void UpdateParking() SPILLWAY_REQUIRES(kStateLock);
  bool MayPark() SPILLWAY_EXCLUDES(kStateLock);
  // A new range, which kernels may reach before any call names it, is mapped, where it must be.
  bool IsParkedAnew(Range* range) SPILLWAY_REQUIRES(kStateLock);
  // Within the budget there is memory for a new range, at the latest when the work of what was
  // freed is done.
  bool AwaitsFreed(const Range& range) const SPILLWAY_REQUIRES(kStateLock);
  // Parking is to begin before the next new call is made.
  bool is_due() const SPILLWAY_REQUIRES(kStateLock) { return is_due_; }
  void NoteDue(bool is_due) SPILLWAY_REQUIRES(kStateLock) { is_due_ |= is_due; }
  bool waits_in_vain() const SPILLWAY_REQUIRES(kStateLock) { return waits_in_vain_; }

  // Any thread: kernels allocate memory of their own, in which nobody can look for addresses.
  static void HeapIsUsed() { heap_is_used.store(true, std::memory_order_relaxed); }
  // Any thread: new kernels' work is looked at; something may have left, so launches look through
  // memory of the host's.
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
  // Written with the state lock held.
  std::atomic<bool> scans_{false};
  std::atomic<bool> reads_host_;
  // Guarded by the state lock.
  bool is_due_ SPILLWAY_GUARDED_BY(kStateLock) = false;
  bool prepared_ SPILLWAY_GUARDED_BY(kStateLock) =
      false;  // the thread that makes memory has asked whether it must wait
  bool waits_in_vain_ SPILLWAY_GUARDED_BY(kStateLock) =
      false;  // the device does not become idle, and nothing may move
  VainWaits vain_waits_ SPILLWAY_GUARDED_BY(kStateLock);
};

}  // namespace spillway::interposer
