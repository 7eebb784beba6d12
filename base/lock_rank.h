// The order of Spillway's locks: a thread may only take a lock of a higher rank than all it holds.
//
// Each rank states what the lock protects and what its holder must not do. The holder of a "leaf"
// only reads and writes the protected data.
#pragma once

namespace spillway::base {

enum class LockRank {
  kJobs,           // creating and retiring a job (runtime.cpp); no application calls
  kPlannerThread,  // learning, planning, following the agent (planning/); no application calls
  kSpilling,       // what the spill thread is to do (planning/spill_thread.h); no waits for disks
  kOwnMappings,    // the program's own virtual memory (own_mappings.h); no application calls
  kMaking,         // the right to make memory resident; no application calls (launches, copies)
  kState,          // ledger, residency, timeline, pools; no device waits, no application calls
  kPlan,           // the position in the plan (plan_walk.h); leaf
  kStream,         // one stream's events (timeline.h); no device waits, no application calls
  kPools,          // the attributes that memory pools report (ledger/pools.h); leaf
  kGraphs,         // the memory that instantiated graphs name (graphs.h); leaf
  kExports,        // exported memory (export_service.h); no device waits
  kImports,        // imported memory (imports.h); no application calls
  kPeers,          // peer access between devices (peer_table.h); leaf
  kRecorder,       // what was live when recording began (recorder.h); leaf
  kTrace,          // operations in flight for the trace (job_trace.h); no device waits
  kDescriptors,    // what was set in cuDNN's descriptors (dnn/backend_descriptors.h); leaf
  kHostSlabs,      // slabs lent by the agent (host_slabs.h); leaf
  kRemotePlans     // requests to the agent's planner (remote_planner.h); leaf
};

}  // namespace spillway::base
