// A job's events: allocations, frees, and operations with their touches.
//
// Without raw addresses: allocations have numbers, which are never reused.
//
// Invariants (checked by CheckTrace)
//  1. An allocation is allocated once, before any touch, and freed at most once, after its last
//     touch.
//  2. Sizes are positive; times and durations are not negative; start times never decrease.
//  3. Every identity is an index into the trace's list.
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
  bool writes = true;  // both true if the role is unknown

  bool operator==(const TraceTouch&) const = default;
};

struct Event {
  EventKind kind = EventKind::kOperation;
  int64_t start_ns = 0;
  int32_t allocation = -1;
  int64_t size_bytes = 0;
  // Of an operation's function and shape: an index into EventTrace::identities.
  int32_t identity = -1;
  int32_t stream = 0;
  int64_t duration_ns = 0;
  std::vector<TraceTouch> touches = {};
  int32_t thread = 0;

  bool operator==(const Event&) const = default;
};

struct EventTrace {
  std::string name;
  std::vector<std::string> identities;
  std::vector<Event> events;

  bool operator==(const EventTrace&) const = default;
};

base::Status CheckTrace(const EventTrace& trace);

// [from, until), clamped. Allocations alive at `from` are allocated at the cut's start.
EventTrace CutTrace(const EventTrace& trace, size_t from, size_t until);

// Allocations alive at both ends become persistent. No operation becomes replayable: a trace cannot
// prove that.
IterationProfile ProfileFromTrace(const EventTrace& trace);

}  // namespace spillway::scheduler
