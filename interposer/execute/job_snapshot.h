// A copy of what a job holds, has moved and has waited for, for the report and the agent.
#pragma once

#include <cstddef>

#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/state/counters.h"
#include "interposer/execute/state/pointer_safety.h"

namespace spillway::interposer {

struct JobSnapshot {
  Counters counters;
  size_t held_bytes, held_peak_bytes, pinned_bytes, pinned_peak_bytes, slab_peak_bytes;
  size_t ordinary_bytes, ordinary_peak_bytes;  // evicted data that is not pinned
  size_t spilled_bytes;                        // evicted data in the job's file
  size_t resident_twice_bytes;                 // on the device, with a host copy
  std::uint64_t spill_serial;                  // of the file; 0: none
  size_t spill_file_bytes;
  size_t idle_workspace_bytes;
  size_t host_need_bytes;  // peak, if the budget were zero
  driver::MappingCalls
      iteration_calls;  // of the last iteration that matched its plan event for event
  bool follows_plan;
  bool in_call;  // waits in a call, for memory or the device, however long
  size_t held_addresses;
  UnsafeReason unsafe_reason;
  Standing standing;
};

}  // namespace spillway::interposer
