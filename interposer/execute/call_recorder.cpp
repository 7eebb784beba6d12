#include "interposer/execute/call_recorder.h"

#include <algorithm>

#include "interposer/driver/calling_context.h"

namespace spillway::interposer {

namespace {

// In a call that took no lock, the first range stands for all memory.
size_t FirstRange(const TouchSet& set) { return set.at_once ? 1 : 0; }

bool IsRead(Role role) { return role != Role::kOverwrites && !IsScratch(role); }
bool IsWritten(Role role) { return role != Role::kReads && !IsScratch(role); }

}  // namespace

// Memory that the call reaches but does not name is not part of its shape.
CallRecorder::Operation::Operation(const TouchSet& set, Effect effect) {
  std::uint64_t sizes = 0;
  const bool may_write = effect != Effect::kReads;
  const size_t count = set.ranges.size(), named = set.at_once ? count : set.named;
  for (size_t i = FirstRange(set); i < count; ++i) {
    const Range& range = *set.ranges[i];
    if (Touches(range.id)) continue;
    const Role role = PromisedRoleAt(set, i);
    touches_.emplace_back(range.id, may_write && IsWritten(role), IsRead(role));
    if (i < named) sizes = AddSize(sizes, range.size_bytes);
  }
  shape_ = ShapeOnStream(set.shape.Mixed(), set.stream->number, sizes);
}

bool CallRecorder::Operation::Touches(std::uint64_t allocation) const {
  for (const RecordedTouch& touch : touches_) {
    if (touch.allocation == allocation) return true;
  }
  return false;
}

// An event of one context cannot be recorded on another's stream. A small copy queues behind our
// own transfers, which would distort its duration.
void CallRecorder::BeginSample(Effect effect, TouchSet* set) {
  const bool is_small_copy = effect != Effect::kLaunches && set->ranges.size() == FirstRange(*set);
  const bool can = set->stream && !set->recorded && !set->stream->foreign && !is_small_copy;
  if (can && !driver::KnownContexts::HasSeveral())
    state_.recorder.BeforeLaunch(set->stream->handle, &set->sample);
}

// A captured call does nothing yet. Another device's stream has a clock of its own.
void CallRecorder::BeginTraced(TouchSet* set) {
  if (set->stream && !set->recorded && !set->stream->foreign)
    set->traced = state_.trace.Begin(set->stream->handle);
}

void CallRecorder::EndTraced(const TouchSet& set, Effect effect) {
  TraceEvent event{.kind = TraceKind::kOperation, .stream = set.stream->number, .name = set.name};
  const Operation operation(set, effect);
  for (const RecordedTouch& touch : operation.touches()) {
    if (event.touch_count == TraceEvent::kMostTouches) break;
    event.touches[event.touch_count++] = static_cast<std::uint32_t>(touch.allocation);
  }
  state_.trace.End(set.stream->handle, set.traced, event);
}

void CallRecorder::Record(const TouchSet& set, Effect effect) {
  const Operation operation(set, effect);
  state_.recorder.Enqueued(operation.shape(), operation.touches(), set.sample);
}

void CallRecorder::RecordIfOverBudget(size_t more_bytes) {
  if (state_.recorder.Awaits(state_.counters.wanted_bytes + more_bytes > state_.budget.bytes()))
    BeginRecordingLive();
}

void CallRecorder::BeginRecording() {
  const StateLock lock(state_.locks);
  BeginRecordingLive();
}

std::int64_t CallRecorder::PlannableBytes() {
  const StateLock lock(state_.locks);
  const size_t fixed_bytes = state_.counters.UnmovableBytesSoon();
  return std::max<std::int64_t>(
      static_cast<std::int64_t>(state_.budget.bytes()) - static_cast<std::int64_t>(fixed_bytes), 1);
}

void CallRecorder::BeginRecordingLive() {
  std::vector<LiveAllocation> live;
  for (const Range* range : state_.residency.LiveRanges()) {
    if (range->id && !range->free_is_due)
      live.push_back({range->id, static_cast<std::int64_t>(range->requested_bytes)});
  }
  state_.recorder.Begin(std::move(live));
}

}  // namespace spillway::interposer
