// The state of a job's memory: allocations, residency, enqueued work, and its locks.
//
// Owns its parts, which their own headers describe. A part without an annotation synchronises
// itself or says which functions need the lock.
#pragma once

#include <atomic>

#include "interposer/execute/executor.h"
#include "interposer/execute/residency/host_grant.h"
#include "interposer/execute/residency/residency.h"
#include "interposer/execute/state/all_memory.h"
#include "interposer/execute/state/budget_account.h"
#include "interposer/execute/state/call_counts.h"
#include "interposer/execute/state/captures.h"
#include "interposer/execute/state/counters.h"
#include "interposer/execute/state/deferred_waits.h"
#include "interposer/execute/state/job_locks.h"
#include "interposer/execute/state/launch_effects.h"
#include "interposer/execute/state/plan_walk.h"
#include "interposer/execute/state/pointer_safety.h"
#include "interposer/execute/state/recompute_records.h"
#include "interposer/execute/state/slabs.h"
#include "interposer/execute/state/timeline.h"
#include "interposer/ledger/contents.h"
#include "interposer/ledger/ledger.h"
#include "interposer/ledger/word_scan.h"
#include "interposer/record/job_trace.h"
#include "interposer/record/recorder.h"

namespace spillway::interposer {

struct JobState {
  JobState(CUcontext context, int device, size_t budget_bytes, size_t host_limit_bytes,
           ParkChoice park, LearnChoice learn);

  // Both are null for memory that the program has freed and a record still needs. FindBase is null
  // for any address but an allocation's first.
  Allocation* FindUsable(CUdeviceptr address) SPILLWAY_REQUIRES(kStateLock);
  Allocation* FindBase(CUdeviceptr base) SPILLWAY_REQUIRES(kStateLock);
  // Out of memory, after which frameworks retry, or the context's own error. Lost bytes end it.
  CUresult OutOfMemory() const SPILLWAY_REQUIRES(kStateLock);
  // The context's own error once a fault has ended it. Asks the driver only where work may have
  // failed since.
  CUresult Health() const SPILLWAY_REQUIRES(kStateLock);
  bool Learns() const { return repeats_kernels && recorder.IsRecording(); }
  bool HasPeers() const { return peer_count.load(std::memory_order_relaxed) > 0; }
  bool MustStay() const SPILLWAY_REQUIRES(kStateLock) {
    return pointer_safety.MustStay() || HasPeers();
  }
  WordBounds Bounds() const { return {ledger.lowest(), ledger.highest()}; }

  const CUcontext context;
  const int device;
  const bool has_pageable_access;  // kernels may use any memory of the process
  bool drops_eagerly = false;      // for tests; constant from the first allocation on
  bool repeats_kernels = false;    // also those without documents; likewise
  JobLocks locks;
  CallCounts calls;
  std::atomic<int> peer_count{0};
  Recorder recorder;
  JobTrace trace;
  PlanWalk walk;
  Counters counters SPILLWAY_GUARDED_BY(kStateLock);
  Timeline timeline;                  // state lock, except Known and Issue
  DeferredWaits promises{&timeline};  // state lock, except Concern and unseen work
  Ledger ledger;                      // state lock, except MightBeManaged and Find
  BudgetAccount budget;
  Residency residency SPILLWAY_GUARDED_BY(kStateLock);
  Executor executor{&residency, &timeline, &counters, &trace};  // state lock, except HasPending
  RecomputeRecords recompute_records;                           // state lock, except empty
  LaunchEffects effects;                                        // state lock, except empty
  StreamState* replay_stream SPILLWAY_GUARDED_BY(kStateLock) =
      nullptr;  // ours, for repeated launches
  Slabs slabs SPILLWAY_GUARDED_BY(kStateLock);
  PointerSafety pointer_safety SPILLWAY_GUARDED_BY(kStateLock);
  HostGrant host_grant;
  Contents contents SPILLWAY_GUARDED_BY(kStateLock);
  Contents outside SPILLWAY_GUARDED_BY(kStateLock);
  AllMemory all_memory{&outside};
};

}  // namespace spillway::interposer
