// What a job did, as a list of events: allocations, frees, operations with what they touch.
//
// Written by the recorder, read by the learner, the command line and the tests, on any thread.
// Plain values. Allocations are named by a number that is never used twice in a trace; raw
// addresses do not appear.
//
// Invariants, which CheckTrace() verifies:
//   1. An allocation is allocated once, before it is touched, and freed once at most, after its
//   last touch.
//   2. Sizes are positive, times and durations not negative, starts never run backwards.
//   3. Identities lie in the trace's list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/trace/profile.h"

namespace spillway::scheduler {

enum class EventKind : uint8_t { kAllocate, kFree, kOperation, kSynchronize };

struct TraceTouch {
  int32_t allocation = -1;
  bool reads = true;
  bool writes = true;  // both where the role is not known

  bool operator==(const TraceTouch&) const = default;
};

struct Event {
  EventKind kind = EventKind::kOperation;
  int64_t start_ns = 0;
  int32_t allocation = -1;  // kAllocate, kFree
  int64_t size_bytes = 0;   // kAllocate
  // kOperation: function and shape, as an index into EventTrace::identities.
  int32_t identity = -1;
  int32_t stream = 0;
  int64_t duration_ns = 0;
  std::vector<TraceTouch> touches;

  bool operator==(const Event&) const = default;
};

struct EventTrace {
  std::string name;
  std::vector<std::string> identities;
  std::vector<Event> events;

  bool operator==(const EventTrace&) const = default;
};

// The first broken invariant as a sentence, or nothing.
base::Status CheckTrace(const EventTrace& trace);

// The events [from, until); what is alive at `from` is allocated by events at the cut's begin.
// Clamped to the trace.
EventTrace CutTrace(const EventTrace& trace, size_t from, size_t until);

// One iteration's events as a profile: what is alive at both ends persists. Nothing is replayable:
// a trace does not prove it. Durations of zero are left as they are.
IterationProfile ProfileFromTrace(const EventTrace& trace);

}  // namespace spillway::scheduler
