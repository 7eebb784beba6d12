// A range's steps and the program's stalls as events of the trace.
#pragma once

#include "interposer/execute/state/counters.h"
#include "interposer/execute/state/range.h"
#include "interposer/record/job_trace.h"

namespace spillway::interposer {

inline TraceEvent TraceOf(TraceKind kind, const Range* range, TraceCause why) {
  return {.kind = kind,
          .cause = why,
          .allocation = range->id,
          .values = {static_cast<std::int64_t>(range->requested_bytes)}};
}

inline TraceEvent StallEvent(StallCause cause) {
  return {.kind = TraceKind::kStall, .name = kStallNames[static_cast<std::size_t>(cause)]};
}

// `as`: a literal.
inline void TraceDrop(JobTrace* trace, const Range* range, TraceCause why, const char* as) {
  if (!JobTrace::IsOn()) return;
  TraceEvent event = TraceOf(TraceKind::kDropped, range, why);
  event.name = as;
  trace->Now(event);
}

inline void TraceNow(JobTrace* trace, TraceKind kind, const Range* range,
                     TraceCause why = TraceCause::kNone) {
  if (JobTrace::IsOn()) trace->Now(TraceOf(kind, range, why));
}

}  // namespace spillway::interposer
