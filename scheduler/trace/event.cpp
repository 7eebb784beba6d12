#include "scheduler/trace/event.h"

#include <algorithm>
#include <map>

namespace spillway::scheduler {
namespace {

using base::Error;
using base::Ok;
using base::Status;

struct Life {
  int64_t size_bytes = 0;
  bool freed = false;
};

class Checker {
 public:
  explicit Checker(const EventTrace& trace) : trace_(trace) {}

  Status Check() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (Status checked = CheckEvent(event); !checked.ok())
        return std::move(checked).Annotate("event " + std::to_string(i));
      last_start_ns_ = event.start_ns;
    }
    return Ok();
  }

 private:
  Status CheckEvent(const Event& event) {
    if (event.start_ns < last_start_ns_ || event.start_ns > kMostNanos)
      return Error{"its time runs backwards or is too large"};
    if (event.duration_ns < 0 || event.duration_ns > kMostNanos)
      return Error{"its duration is negative or too large"};
    switch (event.kind) {
      case EventKind::kAllocate:
        return Allocate(event);
      case EventKind::kFree:
        return Free(event);
      case EventKind::kOperation:
        return Operate(event);
      case EventKind::kSynchronize:
        return Ok();
    }
    return Error{"its kind is unknown"};
  }

  Status Allocate(const Event& event) {
    if (event.allocation < 0) return Error{"an allocation has a negative number"};
    if (event.size_bytes <= 0 || event.size_bytes > kMostBytes)
      return Error{"an allocation has no possible size"};
    if (!lives_.emplace(event.allocation, Life{event.size_bytes}).second)
      return Error{"an allocation is made twice"};
    return Ok();
  }

  Status Free(const Event& event) {
    const auto life = lives_.find(event.allocation);
    if (life == lives_.end()) return Error{"what was never allocated is freed"};
    if (life->second.freed) return Error{"an allocation is freed twice"};
    life->second.freed = true;
    return Ok();
  }

  Status Operate(const Event& event) const {
    if (event.identity < 0 || static_cast<size_t>(event.identity) >= trace_.identities.size())
      return Error{"its identity is not in the list"};
    for (const TraceTouch& touch : event.touches) {
      const auto life = lives_.find(touch.allocation);
      if (life == lives_.end()) return Error{"it touches what was never allocated"};
      if (life->second.freed) return Error{"it touches what was freed"};
    }
    return Ok();
  }

  const EventTrace& trace_;
  std::map<int32_t, Life> lives_;
  int64_t last_start_ns_ = 0;
};

class ProfileMaker {
 public:
  explicit ProfileMaker(const EventTrace& trace) : trace_(trace) { profile_.name = trace.name; }

  IterationProfile Make() {
    for (const Event& event : trace_.events) {
      if (event.kind == EventKind::kAllocate) Allocate(event);
      if (event.kind == EventKind::kFree) Free(event);
      if (event.kind == EventKind::kOperation) Operate(event);
    }
    Close();
    return std::move(profile_);
  }

 private:
  int32_t next_operation() const { return static_cast<int32_t>(profile_.operations.size()); }

  void Allocate(const Event& event) {
    ids_[event.allocation] = {static_cast<int32_t>(profile_.buffers.size())};
    Buffer buffer;
    buffer.name = "a" + std::to_string(event.allocation);
    buffer.size_bytes = event.size_bytes;
    buffer.born = {next_operation()};
    buffer.persistent = next_operation() == 0;  // alive at the start of the cut; Free() clears this
    profile_.buffers.push_back(std::move(buffer));
    written_.push_back(false);
  }

  void Free(const Event& event) {
    Buffer& buffer = profile_.buffers[static_cast<size_t>(ids_[event.allocation].index)];
    buffer.persistent = false;
    buffer.dies = {std::max(buffer.born.index, next_operation() - 1)};
  }

  void Operate(const Event& event) {
    Operation operation;
    operation.name = trace_.identities[static_cast<size_t>(event.identity)];
    operation.duration_ns = event.duration_ns;
    for (const TraceTouch& touch : event.touches) AppendTouch(operation, touch);
    profile_.operations.push_back(std::move(operation));
  }

  void AppendTouch(Operation& operation, const TraceTouch& touch) {
    const BufferId id = ids_[touch.allocation];
    const auto at = static_cast<size_t>(id.index);
    AddTouch(operation, id, touch.reads, touch.writes,
             written_[at] || profile_.buffers[at].persistent);
    written_[at] = true;
  }

  // Those outside every operation get a life of one operation.
  void Close() {
    const int32_t last = std::max(0, next_operation() - 1);
    for (Buffer& buffer : profile_.buffers) {
      buffer.born.index = std::min(buffer.born.index, last);
      if (!buffer.persistent && buffer.dies.index < 0) buffer.dies = {last};
      buffer.dies.index = std::min(buffer.dies.index, last);
    }
    RepairFirstReads();
  }

  // A buffer alive at the start counted as persistent until its later free. If an operation reads
  // it before the first write, it carries content into the iteration and is persistent after all.
  void RepairFirstReads() {
    std::vector<bool> written(profile_.buffers.size(), false);
    for (const Operation& operation : profile_.operations) {
      for (BufferId id : operation.reads) {
        Buffer& buffer = profile_.buffers[static_cast<size_t>(id.index)];
        if (!buffer.persistent && !written[static_cast<size_t>(id.index)]) buffer.persistent = true;
      }
      for (BufferId id : operation.writes) written[static_cast<size_t>(id.index)] = true;
    }
  }

  const EventTrace& trace_;
  IterationProfile profile_;
  std::map<int32_t, BufferId> ids_;
  std::vector<bool> written_;  // by buffer
};

}  // namespace

base::Status CheckTrace(const EventTrace& trace) { return Checker(trace).Check(); }

EventTrace CutTrace(const EventTrace& trace, size_t from, size_t until) {
  until = std::min(until, trace.events.size());
  from = std::min(from, until);
  std::map<int32_t, Event> alive;
  for (size_t i = 0; i < from; ++i) {
    const Event& event = trace.events[i];
    if (event.kind == EventKind::kAllocate) alive[event.allocation] = event;
    if (event.kind == EventKind::kFree) alive.erase(event.allocation);
  }
  EventTrace cut{trace.name, trace.identities, {}};
  for (auto& [number, event] : alive) {
    event.start_ns = from < trace.events.size() ? trace.events[from].start_ns : event.start_ns;
    cut.events.push_back(event);
  }
  cut.events.insert(cut.events.end(), trace.events.begin() + static_cast<ptrdiff_t>(from),
                    trace.events.begin() + static_cast<ptrdiff_t>(until));
  return cut;
}

IterationProfile ProfileFromTrace(const EventTrace& trace) { return ProfileMaker(trace).Make(); }

}  // namespace spillway::scheduler
