// The job's budget of device memory, and how much memory the program wants.
//
// The wanted bytes are in Counters.
//
// A budget is held while the next one is near: a call that needs more waits for it (Await).
//
// Invariants
//  1. The budget is a multiple of a granule.
//  2. It is written with the state lock held, and read without.
// Never: moves memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/function_ref.h"
#include "interposer/execute/state/call_counts.h"
#include "interposer/execute/state/counters.h"
#include "interposer/execute/state/job_locks.h"

namespace spillway::interposer {

class BudgetAccount {
 public:
  BudgetAccount(size_t budget_bytes, JobLocks* locks, Counters* counters, CallCounts* calls);

  size_t bytes() const { return bytes_.load(); }
  // The largest so far. What it was before the first Set does not count once there was one.
  size_t largest_bytes() const { return largest_bytes_.load(std::memory_order_relaxed); }
  // `held_until_ns` (MonotonicNs): the next budget arrives by then. 0: this budget stays.
  void Set(size_t bytes, std::uint64_t held_until_ns) SPILLWAY_REQUIRES(kStateLock);
  bool IsHeld() const;
  // `fits` is called with the state lock held.
  void Await(base::FunctionRef<bool()> fits) SPILLWAY_EXCLUDES(kStateLock);

  // A larger budget will follow by then, in parts. For memory that is of no use in parts.
  void ExpectReturn(std::uint64_t until_ns) { returns_until_ns_ = until_ns; }
  void AwaitReturn(base::FunctionRef<bool()> fits) SPILLWAY_EXCLUDES(kStateLock);

  void Want(size_t bytes) SPILLWAY_REQUIRES(kStateLock);
  // The job has once wanted more than its budget. Any thread.
  bool WasExceeded() const { return was_exceeded_.load(std::memory_order_relaxed); }

 private:
  void AwaitWhile(bool (BudgetAccount::*is_expected)() const, base::FunctionRef<bool()> fits)
      SPILLWAY_EXCLUDES(kStateLock);
  bool IsReturning() const;

  JobLocks* const locks_;
  Counters* const counters_ SPILLWAY_PT_GUARDED_BY(kStateLock);
  CallCounts* const calls_;
  std::atomic<size_t> bytes_;
  std::atomic<size_t> largest_bytes_;
  bool was_set_ = false;
  std::atomic<bool> was_exceeded_{false};
  std::atomic<std::uint64_t> held_until_ns_{0}, returns_until_ns_{0};
};

}  // namespace spillway::interposer
