// What a job holds, moved and waited for at one moment: a copy, for the report and for the agent.
#pragma once

#include <cstddef>

#include "interposer/driver/mapping_calls.h"
#include "interposer/execute/counters.h"
#include "interposer/execute/pointer_safety.h"

namespace spillway::interposer {

struct JobSnapshot {
  Counters counters;
  size_t held_bytes, held_peak_bytes, pinned_bytes, pinned_peak_bytes, slab_peak_bytes;
  size_t ordinary_bytes, ordinary_peak_bytes;  // host memory that is not pinned, for what is away
  size_t host_need_bytes;                      // were the budget nothing, at its peak
  driver::MappingCalls
      iteration_calls;  // of the last iteration that was its plan's event for event
  bool follows_plan;
  bool in_call;  // the program waits in a call, for memory or for the device, however long
  size_t held_addresses;
  UnsafeReason unsafe_reason;
  Standing standing;
};

}  // namespace spillway::interposer
