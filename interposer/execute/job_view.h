// What the program, the report and the agent see of a job's memory. Changes only a counter.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "interposer/execute/deferred_frees.h"
#include "interposer/execute/free_memory.h"
#include "interposer/execute/job_snapshot.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/plan_follower.h"
#include "interposer/execute/replay_checks.h"
#include "interposer/execute/spilling.h"
#include "interposer/execute/waits.h"

namespace spillway::interposer {

class JobView {
 public:
  JobView(JobState& state, Waits& waits, DeferredFrees& frees, ReplayChecks& checks,
          PlanFollower& plan, const Spilling& spilling)
      : state_(state),
        waits_(waits),
        frees_(frees),
        checks_(checks),
        plan_(plan),
        spilling_(spilling) {}

  // Addresses of ours: all of them; those without an allocation.
  bool Owns(CUdeviceptr address) SPILLWAY_EXCLUDES(kStateLock);
  bool IsFreed(CUdeviceptr address);
  std::vector<CUdeviceptr> LiveBases();
  std::optional<Allocation> Describe(CUdeviceptr address);
  bool IsEvicted(CUdeviceptr address);
  // Reads from the host copy. False when the allocation is not evicted.
  bool ReadEvicted(CUdeviceptr source, void* destination, size_t bytes);

  // What the program is told is free. The device's own figures cover all its users.
  size_t ShownFreeBytes(size_t device_free_bytes, size_t device_bytes)
      SPILLWAY_EXCLUDES(kStateLock);
  size_t FreeBytes();

  // Any thread, without a lock: whether a replay was wrong, or evicted memory is lost, for good.
  // And of which kernel it was.
  bool IsWrong() const { return checks_.IsWrong() || spilling_.IsLost(); }
  bool IsLost() const { return spilling_.IsLost(); }
  std::string NameOfWrong() { return checks_.NameOfWrong(); }

  JobSnapshot Read();
  // For signal handlers: nothing when the lock is not free soon.
  std::optional<JobSnapshot> TryRead();
  // Whether a call of the program is between its begin and its end, or waits for memory. Threads
  // that only wait for the device do not count.
  bool AnyCallInside() SPILLWAY_EXCLUDES(kStateLock);
  // Whether the device works for the program and is not waiting for it. Does not wait.
  bool HasWork() SPILLWAY_EXCLUDES(kStateLock);

 private:
  size_t ResidentTwiceBytes() SPILLWAY_REQUIRES(kStateLock);
  size_t UsedBytes() const SPILLWAY_REQUIRES(kStateLock);
  GivenMemory Given() SPILLWAY_REQUIRES(kStateLock);
  JobSnapshot ReadLocked() SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  Waits& waits_;
  DeferredFrees& frees_;
  ReplayChecks& checks_;
  PlanFollower& plan_;
  const Spilling& spilling_;
};

}  // namespace spillway::interposer
