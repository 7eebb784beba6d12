#include "interposer/record/event_log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/file.h"
#include "scheduler/learn/job_event.h"

namespace spillway::interposer {

EventLog::EventLog(const char* path)
    : file_(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (!file_) fprintf(stderr, "spillway: cannot write events to %s\n", path);
  Print("spillway events 1\n");
}

void EventLog::Print(const char* format, ...) {
  if (!file_) return;
  char line[96];
  va_list parts;
  va_start(parts, format);
  const int length = vsnprintf(line, sizeof line, format, parts);
  va_end(parts);
  unwritten_.append(line, static_cast<std::size_t>(length));
}

void EventLog::AddAlive(const LiveAllocation& allocation) {
  Print("a %" PRIu64 " %" PRId64 "\n", allocation.id, allocation.requested_bytes);
}

void EventLog::Add(const Recorder::Drained& drained) {
  const RecordedEvent& event = drained.event;
  AddThread(drained.thread);
  switch (event.kind) {
    case RecordedKind::kAllocate:
      return Print("a %" PRIu64 " %" PRIu64 "\n", event.allocation, event.value);
    case RecordedKind::kFree:
      return Print("f %" PRIu64 "\n", event.allocation);
    case RecordedKind::kOperation:
      return AddOperation(event.value, drained.touches);
    case RecordedKind::kSynchronize:
      return Print("s\n");
  }
}

void EventLog::AddThread(std::uint32_t thread) {
  if (thread_ != thread) Print("t %" PRIu32 "\n", thread);
  thread_ = thread;
}

void EventLog::AddOperation(std::uint64_t shape, std::span<const RecordedTouch> touches) {
  const std::size_t number = NumberOf(shape);
  Print("o %zu", number);
  for (const RecordedTouch& touch : touches) {
    const char* const only = touch.reads && touch.writes ? "" : touch.reads ? "r" : "w";
    Print(" %" PRIu64 "%s", touch.allocation, only);
  }
  Print("\n");
}

std::size_t EventLog::NumberOf(std::uint64_t shape) {
  const std::uint64_t token = scheduler::TokenOf(scheduler::JobEvent::Operation(shape, {}));
  const auto [found, is_new] = numbers_.emplace(token, numbers_.size());
  if (is_new) Print("i %016" PRIx64 "\n", shape);
  return found->second;
}

void EventLog::Flush() {
  if (file_ && base::WriteAll(file_.get(), unwritten_) != 0) file_ = base::UniqueFd();
  unwritten_.clear();
}

void EventLog::End(const scheduler::IterationPattern& planned) {
  for (const scheduler::PatternEvent& event : planned.events) {
    const auto known = numbers_.find(event.token);
    if (event.operation < 0 || known == numbers_.end()) continue;
    const scheduler::OperationId operation{event.operation};
    Print("d %zu %" PRId64 "\n", known->second, planned.profile.at(operation).duration_ns);
  }
  Flush();
  file_ = base::UniqueFd();
}

}  // namespace spillway::interposer
