// This process's trace (`spillway run --trace FILE`): a queue, and a thread that empties it.
//
// Any thread calls TraceIsOn and PutTrace. The trace thread blocks all signals, and calls neither
// driver nor program. A forked child has none.
// Invariants
//  1. Without a trace TraceIsOn is one relaxed load of false, and nothing else happens.
//  2. PutTrace does not wait: entries without room are counted, and the file says so.
//  3. A file that cannot be written is reported once; the program continues.
//  4. When a process is killed, the file has all but the last few hundredths of a second.
#pragma once

#include <atomic>

#include "interposer/record/trace_event.h"

namespace spillway::interposer {

class JobTrace;

namespace internal {
inline constinit std::atomic<bool> trace_is_on{false};
}
inline bool TraceIsOn() { return internal::trace_is_on.load(std::memory_order_relaxed); }

void StartTrace();
void PutTrace(const TraceEvent& event);

void AddJobToTrace(JobTrace* job);
void RemoveJobFromTrace(JobTrace* job);

}  // namespace spillway::interposer
