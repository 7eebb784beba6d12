#include "scheduler/learn/iteration_pattern.h"

#include <algorithm>

namespace spillway::scheduler {
namespace {

// Uses the job's touches, as the profile shows less of a first touch. Ignores workspaces.
bool OverwritesOneBuffer(const IterationPattern& pattern, const PatternEvent& event) {
  const Operation& operation = pattern.profile.operations[static_cast<size_t>(event.operation)];
  if (operation.writes.size() != 1) return false;
  const std::span<const PatternTouch> touches = pattern.TouchesOf(event);
  return std::all_of(touches.begin(), touches.end(), [&](const PatternTouch& touch) {
    if (touch.buffer == operation.writes[0].index) return touch.writes && !touch.reads;
    const Buffer& buffer = pattern.profile.at(BufferId{touch.buffer});
    return !touch.writes || LivesFor(buffer, {event.operation});
  });
}

}  // namespace

bool LivesFor(const Buffer& buffer, OperationId operation) {
  return !buffer.persistent && !buffer.handed_on && buffer.born == operation &&
         buffer.dies == operation;
}

void SetDurations(IterationPattern* pattern, std::span<const int64_t> duration_ns) {
  std::vector<Operation>& operations = pattern->profile.operations;
  for (size_t i = 0; i < std::min(operations.size(), duration_ns.size()); ++i)
    operations[i].duration_ns = duration_ns[i];
}

void SetReplayable(IterationPattern* pattern, base::FunctionRef<bool(uint64_t token)> may_replay) {
  for (const PatternEvent& event : pattern->events) {
    if (event.kind != JobEventKind::kOperation) continue;
    pattern->profile.operations[static_cast<size_t>(event.operation)].replayable =
        OverwritesOneBuffer(*pattern, event) && may_replay(event.token);
  }
}

int64_t ReplayableCount(const IterationPattern& pattern) {
  const std::vector<Operation>& operations = pattern.profile.operations;
  return std::count_if(operations.begin(), operations.end(),
                       [](const Operation& operation) { return operation.replayable; });
}

bool Contains(const IterationPattern& whole, const IterationPattern& part) {
  const auto is_same = [](const PatternEvent& a, const PatternEvent& b) {
    return a.token == b.token;
  };
  return part.size() < whole.size() &&
         std::search(whole.events.begin(), whole.events.end(), part.events.begin(),
                     part.events.end(), is_same) != whole.events.end();
}

// Excludes when memory is freed, as this varies between iterations.
uint64_t FingerprintOf(const IterationPattern& pattern) {
  uint64_t hash = pattern.events.size();
  const auto mix = [&](auto value) { hash = MixToken(hash, static_cast<uint64_t>(value)); };
  for (const PatternEvent& event : pattern.events) {
    mix(event.token);
    mix(event.buffer);
    for (const PatternTouch& touch : pattern.TouchesOf(event))
      mix(touch.buffer * 4 + touch.reads * 2 + touch.writes);
  }
  for (const PatternBuffer& buffer : pattern.buffers) {
    mix(buffer.size_bytes * 2 + buffer.persistent);
    mix(buffer.born_event);
  }
  return hash;
}

std::vector<int32_t> OperationEvents(const IterationPattern& pattern) {
  std::vector<int32_t> events(pattern.profile.operations.size());
  for (int32_t i = 0; i < pattern.size(); ++i) {
    const PatternEvent& event = pattern.events[static_cast<size_t>(i)];
    if (event.kind == JobEventKind::kOperation) events[static_cast<size_t>(event.operation)] = i;
  }
  return events;
}

}  // namespace spillway::scheduler
