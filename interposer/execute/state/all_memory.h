// A range that stands for all of a job's memory. Closing its fast path makes all calls lock.
//
// Calls without a lock name it (Note [Fast path] in calls.h).
//
// Invariants
//  1. The fast path is closed while the device must stay idle. It is also closed while `outside`
//     holds addresses, because launches follow these.
#pragma once

#include "interposer/execute/state/calls.h"
#include "interposer/execute/state/job_locks.h"
#include "interposer/execute/state/range.h"
#include "interposer/ledger/contents.h"

namespace spillway::interposer {

class AllMemory {
 public:
  // `outside`: the addresses that unmanaged memory holds.
  explicit AllMemory(const Contents* outside) : outside_(outside) { range_.fast_path.OpenForAll(); }

  Range* range() { return &range_; }
  bool IsNamed() const { return calls::Names(&range_); }

  // It must stay so: no call begins.
  bool device_is_idle() const SPILLWAY_REQUIRES(kStateLock) { return device_is_idle_; }
  void SetDeviceIdle(bool is_idle) SPILLWAY_REQUIRES(kStateLock) {
    device_is_idle_ = is_idle;
    Update();
  }
  void Update() SPILLWAY_REQUIRES(kStateLock) {
    device_is_idle_ || !outside_->empty() ? range_.fast_path.Close()
                                          : range_.fast_path.OpenForAll();
  }

 private:
  const Contents* const outside_;
  Range range_;
  bool device_is_idle_ SPILLWAY_GUARDED_BY(kStateLock) = false;
};

}  // namespace spillway::interposer
