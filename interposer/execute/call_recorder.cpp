#include "interposer/execute/call_recorder.h"

#include <algorithm>

#include "interposer/driver/calling_context.h"

namespace spillway::interposer {

// In a call that took no lock, the first range stands for all memory.
std::span<Range* const> CallRecorder::RangesOf(const TouchSet& set) {
  return std::span<Range* const>(set.ranges.begin(), set.ranges.size())
      .subspan(set.at_once ? 1 : 0);
}

base::InlineVector<RecordedTouch, 32> CallRecorder::TouchesOf(const TouchSet& set, Effect effect) {
  base::InlineVector<RecordedTouch, 32> touches;
  for (size_t i = set.at_once ? 1 : 0; i < set.ranges.size(); ++i) {
    const std::uint64_t id = set.ranges[i]->id;
    const bool known =
        std::any_of(touches.begin(), touches.end(),
                    [id](const RecordedTouch& touch) { return touch.allocation == id; });
    if (!known)
      touches.push_back({id, MayWrite(set, i, effect), RoleAt(set, i) != Role::kOverwrites});
  }
  return touches;
}

// Memory that the call reaches but does not name is not part of its shape.
Shape CallRecorder::ShapeOf(const TouchSet& set) {
  Shape shape = ShapeOnStream(set.shape, set.stream->number);
  const auto ranges = RangesOf(set);
  const auto named = set.at_once ? ranges : ranges.first(set.named);
  for (size_t i = 0; i < named.size(); ++i) {
    const bool is_first =
        std::find(named.begin(), named.begin() + i, named[i]) == named.begin() + i;
    if (is_first) shape = MixShape(shape, named[i]->size_bytes);
  }
  return shape;
}

// An event of one context cannot be recorded on another's stream. A small copy queues behind our
// own transfers, which would distort its duration.
void CallRecorder::BeginSample(Effect effect, TouchSet* set) {
  const bool is_small_copy = effect != Effect::kLaunches && RangesOf(*set).empty();
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
  for (const RecordedTouch& touch : TouchesOf(set, effect)) {
    if (event.touch_count == TraceEvent::kMostTouches) break;
    event.touches[event.touch_count++] = static_cast<std::uint32_t>(touch.allocation);
  }
  state_.trace.End(set.stream->handle, set.traced, event);
}

void CallRecorder::Record(const TouchSet& set, Effect effect) {
  const auto touches = TouchesOf(set, effect);
  state_.recorder.Enqueued(ShapeOf(set), {touches.begin(), touches.size()}, set.sample);
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
  size_t fixed_bytes = 0;
  for (const UnmovableBytes& reason : state_.counters.unmovable) fixed_bytes += reason.bytes;
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
