#include "interposer/execute/state/deferred_waits.h"

#include <algorithm>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {

// A single stream is in order with itself. With only one, a free records no event.
void DeferredWaits::Add(const UseList& busy) {
  Timeline::AllKnownDone(&open_);
  bool any_new = false;
  for (Use use : busy.items()) {
    if (use.stream->foreign || IsOpen(use)) continue;
    if (timeline_->HasSeveralStreams()) timeline_->EventFor(use);
    open_.Add(use);
    any_new = true;
  }
  if (!any_new) return;
  is_open_.store(true, std::memory_order_relaxed);
  const std::uint64_t count = count_.load(std::memory_order_relaxed) + 1;
  const bool one_alone = open_.items().size() == 1;
  if (one_alone) open_.items().front().stream->promises.store(count, std::memory_order_relaxed);
  count_.store(count, std::memory_order_relaxed);
}

bool DeferredWaits::IsOpen(Use use) const {
  const auto& items = open_.items();
  return std::any_of(items.begin(), items.end(), [use](Use open) {
    return open.stream == use.stream && open.sequence >= use.sequence;
  });
}

void DeferredWaits::BeforeNext(StreamState* stream, bool shows) {
  const std::uint64_t count = count_.load(std::memory_order_relaxed);
  const bool is_behind = stream->promises.exchange(count, std::memory_order_relaxed) == count;
  if (is_behind && !shows) return;
  for (Use use : Open().items()) {
    if (use.stream == stream) {
      if (shows) timeline_->EventFor(use);
    } else if (!is_behind && ordering_rules::kPromisesOrderStreams) {
      timeline_->OrderAfter(stream, use);
    }
  }
}

const UseList& DeferredWaits::Open() {
  if (timeline_->AllDone(&open_)) is_open_.store(false, std::memory_order_relaxed);
  return open_;
}

DeferredWaits::Awaited DeferredWaits::EventsOf(const UseList& uses, CUcontext context) {
  Awaited awaited;
  for (Use use : uses.items()) {
    if (use.stream->foreign || (use.stream->context != context && timeline_->IsHeld(use))) continue;
    awaited.emplace_back(use, timeline_->EventFor(use));
  }
  return awaited;
}

// On a capturing stream, earlier work has its event. Nothing else may be queried.
void DeferredWaits::Await(const Awaited& awaited, bool any_captures) {
  for (const auto& [use, event] : awaited) {
    if (event) {
      driver::Driver().cuEventSynchronize(event);
    } else if (!any_captures) {
      Timeline::WaitFor(use.stream);
    }
  }
}

}  // namespace spillway::interposer
