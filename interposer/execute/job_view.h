// What others are told of a job's memory: where an address leads, what is free, and all that the
// report and the agent show.
//
// Called by the hooks, the report and the planner threads, on any thread. Changes nothing, but
// counts reads that it serves.
#pragma once

#include <cstddef>

#include "interposer/execute/deferred_frees.h"
#include "interposer/execute/free_memory.h"
#include "interposer/execute/job_snapshot.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/plan_follower.h"
#include "interposer/execute/waits.h"

namespace spillway::interposer {

class JobView {
 public:
  JobView(JobState& state, Waits& waits, DeferredFrees& frees, PlanFollower& plan)
      : state_(state), waits_(waits), frees_(frees), plan_(plan) {}

  // An address of ours, whether something lives there or not.
  bool Owns(CUdeviceptr address) SPILLWAY_EXCLUDES(kStateLock);
  // An address of ours at which nothing lives any more.
  bool IsFreed(CUdeviceptr address);
  // The allocation that the address lies in; false when it is not managed.
  bool Describe(CUdeviceptr address, Allocation* out);
  bool IsAway(CUdeviceptr address);
  // Copies `bytes` from an allocation that is away out of its host copy; false when it is not away.
  bool ReadAway(CUdeviceptr source, void* destination, size_t bytes);

  // What the program is told to be free; the device's own figures are those of all that use it.
  size_t ShownFreeBytes(size_t device_free_bytes, size_t device_bytes)
      SPILLWAY_EXCLUDES(kStateLock);
  size_t FreeBytes();  // of the budget

  JobSnapshot Read();
  // For code that may run in a signal handler: false when the lock is not to be had soon.
  bool TryRead(JobSnapshot* out);
  // Whether the device is at something that the program enqueued, and that does not wait for the
  // program. Waits for nothing.
  bool HasWork() SPILLWAY_EXCLUDES(kStateLock);

 private:
  size_t UsedBytes() const SPILLWAY_REQUIRES(kStateLock);
  GivenMemory Given() SPILLWAY_REQUIRES(kStateLock);
  JobSnapshot ReadLocked() SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  Waits& waits_;
  DeferredFrees& frees_;
  PlanFollower& plan_;
};

}  // namespace spillway::interposer
