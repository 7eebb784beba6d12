#include "scheduler/trace/event_text.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/lines.h"

namespace spillway::scheduler {
namespace {

using base::Error;

template <class Number>
std::optional<Number> NumberIn(std::string_view text, int base = 10) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::string_view TakeWord(std::string_view* line) {
  const size_t end = std::min(line->find(' '), line->size());
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(std::min(end + 1, line->size()));
  return word;
}

// "12", "12r" or "12w": reads and writes, only reads, overwrites.
std::optional<TraceTouch> TouchIn(std::string_view word) {
  const bool only_reads = word.ends_with('r'), only_writes = word.ends_with('w');
  if (only_reads || only_writes) word.remove_suffix(1);
  const auto allocation = NumberIn<int32_t>(word);
  if (!allocation) return std::nullopt;
  return TraceTouch{*allocation, !only_writes, !only_reads};
}

class Reader {
 public:
  bool Add(std::string_view line) {
    const std::string_view kind = TakeWord(&line);
    if (kind == "a") return Allocate(line);
    if (kind == "f") return Free(line);
    if (kind == "o") return Operate(line);
    if (kind == "s") return Add({.kind = EventKind::kSynchronize}, line.empty());
    if (kind == "t") return Take(&line, &thread_) && line.empty();
    if (kind == "i") return Identify(line);
    if (kind == "d") return Measure(line);
    return false;
  }

  EventTrace Finish() {
    int64_t now_ns = 0;
    for (Event& event : trace_.events) {
      event.start_ns = now_ns;
      if (event.kind == EventKind::kOperation && event.identity >= 0 &&
          At(event.identity) < times_.size())
        event.duration_ns = times_[At(event.identity)].Mean();
      now_ns += event.duration_ns;
    }
    return std::move(trace_);
  }

 private:
  struct Times {
    int64_t sum_ns = 0, count = 0;
    int64_t Mean() const { return count == 0 ? 0 : sum_ns / count; }
  };

  template <class Number>
  static bool Take(std::string_view* line, Number* number) {
    const auto found = NumberIn<Number>(TakeWord(line));
    *number = found.value_or(0);
    return found.has_value();
  }

  bool Add(Event event, bool is_whole) {
    event.thread = thread_;
    trace_.events.push_back(std::move(event));
    return is_whole;
  }

  bool Allocate(std::string_view line) {
    Event event{.kind = EventKind::kAllocate};
    const bool is_whole = Take(&line, &event.allocation) && Take(&line, &event.size_bytes);
    return Add(std::move(event), is_whole && line.empty());
  }

  bool Free(std::string_view line) {
    Event event{.kind = EventKind::kFree};
    const bool is_whole = Take(&line, &event.allocation);
    return Add(std::move(event), is_whole && line.empty());
  }

  bool Operate(std::string_view line) {
    Event event{.kind = EventKind::kOperation};
    if (!Take(&line, &event.identity)) return false;
    while (!line.empty()) {
      const auto touch = TouchIn(TakeWord(&line));
      if (!touch) return false;
      event.touches.push_back(*touch);
    }
    return Add(std::move(event), true);
  }

  bool Identify(std::string_view line) {
    trace_.identities.emplace_back(line);
    times_.emplace_back();
    return NumberIn<uint64_t>(line, 16).has_value();
  }

  bool Measure(std::string_view line) {
    size_t identity = 0;
    int64_t duration_ns = 0;
    if (!Take(&line, &identity) || !Take(&line, &duration_ns) || !line.empty()) return false;
    if (identity >= times_.size() || duration_ns < 0 || duration_ns > kMostNanos) return false;
    Times& times = times_[identity];
    if (times.sum_ns > kMostNanos) return false;
    times.sum_ns += duration_ns;
    ++times.count;
    return true;
  }

  EventTrace trace_;
  std::vector<Times> times_;
  int32_t thread_ = 0;
};

}  // namespace

base::Result<EventTrace> ReadEventText(std::string_view text) {
  if (!text.starts_with(kEventTextHead)) return Error{"these are no events as text"};
  text.remove_prefix(kEventTextHead.size());
  Reader reader;
  size_t number = 1;
  while (const auto line = base::TakeLine(text)) {
    ++number;
    if (!reader.Add(*line)) return Error{"line " + std::to_string(number) + " is not understood"};
  }
  EventTrace trace = reader.Finish();
  if (base::Status checked = CheckTrace(trace); !checked.ok()) return std::move(checked).error();
  return trace;
}

uint64_t ShapeOf(const std::string& identity) {
  return NumberIn<uint64_t>(identity, 16).value_or(0);
}

}  // namespace spillway::scheduler
