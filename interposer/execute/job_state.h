// What is known of a job's memory: what is allocated, where its bytes are, what is enqueued, and
// the locks that guard all that.
//
// Made by JobMemory, used by the classes behind it on any thread. Owns its parts, each of which
// says what it does in its own header; what is not marked synchronises itself, or says which of its
// functions need the state lock.
#pragma once

#include <atomic>

#include "interposer/execute/all_memory.h"
#include "interposer/execute/budget_account.h"
#include "interposer/execute/call_counts.h"
#include "interposer/execute/captures.h"
#include "interposer/execute/counters.h"
#include "interposer/execute/deferred_waits.h"
#include "interposer/execute/executor.h"
#include "interposer/execute/host_grant.h"
#include "interposer/execute/job_locks.h"
#include "interposer/execute/plan_walk.h"
#include "interposer/execute/pointer_safety.h"
#include "interposer/execute/recompute_records.h"
#include "interposer/execute/residency.h"
#include "interposer/execute/slabs.h"
#include "interposer/execute/timeline.h"
#include "interposer/ledger/contents.h"
#include "interposer/ledger/ledger.h"
#include "interposer/ledger/word_scan.h"
#include "interposer/record/job_trace.h"
#include "interposer/record/recorder.h"

namespace spillway::interposer {

struct JobState {
  JobState(CUcontext context, int device, size_t budget_bytes, size_t host_limit_bytes,
           ParkChoice park, LearnChoice learn);

  // Null, too, for memory that the program has freed and a record still needs. FindBase: null for
  // any other address than its first.
  Allocation* FindUsable(CUdeviceptr address) SPILLWAY_REQUIRES(kStateLock);
  Allocation* FindBase(CUdeviceptr base) SPILLWAY_REQUIRES(kStateLock);
  // Out of memory, or the context's own error: frameworks retry after the one, and are to learn of
  // the other.
  CUresult OutOfMemory() const SPILLWAY_REQUIRES(kStateLock);
  CUresult Health() SPILLWAY_EXCLUDES(kStateLock);
  // Other devices use the job's memory.
  bool HasPeers() const { return peer_count.load(std::memory_order_relaxed) > 0; }
  // Nothing that is on the device may leave it.
  bool MustStay() const SPILLWAY_REQUIRES(kStateLock) {
    return pointer_safety.MustStay() || HasPeers();
  }
  WordBounds Bounds() const { return {ledger.lowest(), ledger.highest()}; }

  const CUcontext context;
  const int device;
  bool drops_eagerly = false;  // for tests; constant from the first allocation on
  JobLocks locks;
  CallCounts calls;
  std::atomic<int> peer_count{0};
  Recorder recorder;
  JobTrace trace;
  PlanWalk walk;
  Counters counters SPILLWAY_GUARDED_BY(kStateLock);
  Timeline timeline;                  // but for Known and Issue
  DeferredWaits promises{&timeline};  // but for Concern and TakeUnseenWork
  Ledger ledger;                      // but for MightBeManaged and Find
  BudgetAccount budget;
  Residency residency SPILLWAY_GUARDED_BY(kStateLock);
  Executor executor{&residency, &timeline,
                    &counters};        // guarded by the state lock, but for HasPending
  RecomputeRecords recompute_records;  // likewise, but for empty
  StreamState* replay_stream SPILLWAY_GUARDED_BY(kStateLock) =
      nullptr;  // ours, for launches made again
  Slabs slabs SPILLWAY_GUARDED_BY(kStateLock);
  PointerSafety pointer_safety SPILLWAY_GUARDED_BY(kStateLock);
  HostGrant host_grant;
  Contents contents SPILLWAY_GUARDED_BY(kStateLock);  // addresses that managed memory holds
  Contents outside
      SPILLWAY_GUARDED_BY(kStateLock);  // those that device variables and other memory holds
  AllMemory all_memory{&outside};
};

}  // namespace spillway::interposer
