// The one order in which Spillway's locks may be taken: a thread may take a lock only of a higher
// rank than those it holds. Checked where SPILLWAY_CHECK_LOCKS is defined (the sanitized preset).
//
// | rank       | protects                                   | not done while holding it |
// |------------|--------------------------------------------|-----------------------------------------------|
// | kJobs      | making and retiring a job (runtime.cpp)    | application calls | | kPlannerThread
// | who learns, plans, follows the agent (planning/) | application calls | | kMaking    | the right
// to make memory resident          | application calls (launches, copies)          | | kState     |
// ledger, residency, timeline, pools         | waiting for the device, application calls     | |
// kPlan      | the place in the plan (plan_walk.h)        | anything | | kStream    | one stream's
// events (timeline.h)           | waiting for the device, application calls     | | kPools     |
// what memory pools show (ledger/pools.h)    | anything                                      | |
// kOwnMappings | the program's own VMM (own_mappings.h)   | waiting for the device | | kGraphs    |
// what instantiated graphs name (graphs.h)   | anything                                      | |
// kExports   | memory with handles (export_service.h)     | waiting for the device | | kPeers     |
// who may use whose memory (peer_table.h)    | anything                                      | |
// kImports   | opened memory (imports.h)                  | application calls | | kRecorder  | what
// was live when recording began (recorder.h) | anything                                 | | kTrace
// | what is under way for the trace (job_trace.h) | waiting for the device                     | |
// kHostSlabs | slabs that the agent has lent (host_slabs.h) | anything | | kRemotePlans | what the
// agent was asked for (remote_planner.h) | anything                                 |
#pragma once

namespace spillway::base {

enum class LockRank {
  kJobs,
  kPlannerThread,
  kMaking,
  kState,
  kPlan,
  kStream,
  kPools,
  kOwnMappings,
  kGraphs,
  kExports,
  kImports,
  kPeers,
  kRecorder,
  kTrace,
  kHostSlabs,
  kRemotePlans
};

}  // namespace spillway::base
