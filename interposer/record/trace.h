// The trace of this process, which `spillway run --trace FILE` asks for: a queue, and a thread that
// writes what is in it.
//
// TraceIsOn and PutTrace are called on any thread, StartTrace when a job's memory is made. The
// thread blocks all signals, calls neither the driver nor the program, and ends when the process
// exits; a forked child has none.
//
// Invariants
//  1. While no trace was asked for, TraceIsOn is one relaxed load of false, and nothing else is
//  done.
//  2. PutTrace does not wait: what finds no room is counted, and the file says so.
//  3. A file that cannot be written (any more) is said once; the program goes on.
//  4. What happened up to a few hundredths of a second before a process is killed is in its file.
#pragma once

#include <atomic>

#include "interposer/record/trace_event.h"

namespace spillway::interposer {

class JobTrace;

namespace internal {
inline constinit std::atomic<bool> trace_is_on{false};
}
inline bool TraceIsOn() { return internal::trace_is_on.load(std::memory_order_relaxed); }

// Once the launcher asked for a trace; any number of times.
void StartTrace();
void PutTrace(const TraceEvent& event);

// What a job's trace knows and has not put yet is put when the process exits.
void AddJobToTrace(JobTrace* job);
void RemoveJobFromTrace(JobTrace* job);

}  // namespace spillway::interposer
