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

namespace {

bool IsWorkspaceOf(const IterationPattern& pattern, const PatternEvent& event,
                   const PatternTouch& touch) {
  const OperationId operation{event.operation};
  const auto is_local = [&](const PatternTouch& of) {
    return LivesFor(pattern.profile.at(BufferId{of.buffer}), operation);
  };
  const std::span<const PatternTouch> touches = pattern.TouchesOf(event);
  return is_local(touch) &&
         std::any_of(touches.begin(), touches.end(),
                     [&](const PatternTouch& other) { return other.writes && !is_local(other); });
}

void SetUsesOf(const PatternEvent& event, const std::vector<bool>& has_content,
               IterationPattern* pattern) {
  Operation& operation = pattern->profile.operations[At(event.operation)];
  operation.reads.clear();
  operation.writes.clear();
  operation.presumed_reads.clear();
  for (const PatternTouch& touch : pattern->TouchesOf(event)) {
    const bool writes = touch.writes || IsScratch(touch);
    if (IsWorkspaceOf(*pattern, event, touch))
      pattern->profile.buffers[At(touch.buffer)].movable = false;
    else
      AddTouch(operation, {touch.buffer}, touch.reads, writes, has_content[At(touch.buffer)]);
    if (touch.presumed) operation.presumed_reads.push_back({touch.buffer});
  }
}

void MarkWorkspaces(IterationPattern* pattern) {
  enum class Uses : uint8_t { kNone, kScratch, kOther };
  std::vector<Uses> uses(pattern->buffers.size(), Uses::kNone);
  for (const PatternTouch& touch : pattern->touches) {
    Uses& use = uses[At(touch.buffer)];
    use = IsScratch(touch) && use != Uses::kOther ? Uses::kScratch : Uses::kOther;
  }
  for (size_t i = 0; i < uses.size(); ++i) {
    Buffer& buffer = pattern->profile.buffers[i];
    if (buffer.kind != BufferKind::kWorkspace && buffer.kind != BufferKind::kOther) continue;
    const bool is_workspace = uses[i] == Uses::kScratch && !buffer.handed_on;
    buffer.kind = is_workspace ? BufferKind::kWorkspace : BufferKind::kOther;
  }
}

}  // namespace

void SetUses(IterationPattern* pattern) {
  std::vector<bool> has_content;
  for (const PatternBuffer& buffer : pattern->buffers) has_content.push_back(buffer.persistent);
  for (const PatternEvent& event : pattern->events) {
    if (event.kind != JobEventKind::kOperation) continue;
    SetUsesOf(event, has_content, pattern);
    for (const PatternTouch& touch : pattern->TouchesOf(event))
      has_content[At(touch.buffer)] = true;
  }
  MarkWorkspaces(pattern);
}

void RefineTouches(IterationPattern* pattern,
                   base::FunctionRef<TouchRoles(uint64_t token)> roles_of) {
  for (const PatternEvent& event : pattern->events) {
    if (event.kind != JobEventKind::kOperation) continue;
    const TouchRoles roles = roles_of(event.token);
    if (roles.size() != At(event.touch_count)) continue;
    for (size_t i = 0; i < roles.size(); ++i) {
      PatternTouch& touch = pattern->touches[At(event.first_touch) + i];
      if (!touch.writes || !touch.reads) continue;
      touch.writes = roles[i].writes;
      touch.reads = roles[i].reads;
      touch.presumed = !touch.writes;
    }
  }
  SetUses(pattern);
}

int64_t KnownTouchCount(const IterationPattern& pattern) {
  return std::count_if(pattern.touches.begin(), pattern.touches.end(),
                       [](const PatternTouch& touch) { return !touch.writes || !touch.reads; });
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
    for (const PatternTouch& touch : pattern.TouchesOf(event)) mix(touch.buffer);
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
