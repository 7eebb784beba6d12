#include "cli/timeline_report/recorded_run.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/failure.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::json;

constexpr int kExitUnreadable = 1;
constexpr double kMostMicroseconds = 100.0 * 24 * 3600 * 1e6;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

class Reader {
 public:
  Reader(std::istream& trace, const std::string& name) : trace_(trace), name_(name) {}

  RecordedRun Read() {
    std::string line, next;
    if (!std::getline(trace_, line) || Trimmed(line) != "[") NoTrace();
    for (bool has_next = GetLine(&line); has_next; line.swap(next)) {
      has_next = GetLine(&next);
      if (line == "]") {
        run_.is_whole = true;
        break;
      }
      TakeLine(line, !has_next);
    }
    if (!has_head_) NoTrace();
    Sort();
    return std::move(run_);
  }

 private:
  static std::string Trimmed(std::string line) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ',' || line.back() == ' '))
      line.pop_back();
    return line;
  }

  bool GetLine(std::string* line) {
    while (std::getline(trace_, *line)) {
      ++read_;
      *line = Trimmed(*line);
      if (!line->empty()) return true;
    }
    line->clear();
    return false;
  }

  [[noreturn]] void NoTrace() const {
    throw Failure(kExitUnreadable, name_ + " is no trace of a job", "it does not begin like one",
                  "write one with: spillway run --trace FILE -- COMMAND");
  }

  [[noreturn]] void Broken(const std::string& why) const {
    throw Failure(kExitUnreadable, name_ + " cannot be read",
                  "near line " + std::to_string(read_) + ": " + why,
                  "write it again with: spillway run --trace FILE -- COMMAND");
  }

  void TakeLine(const std::string& line, bool is_last) {
    const Json event = Json::parse(line, nullptr, false);
    if (!event.is_object()) {
      if (!has_head_) NoTrace();
      if (is_last) return;  // the process was killed in mid-write
      Broken("this is no event");
    }
    Take(event);
  }

  std::int64_t Number(const Json& object, const char* key, std::int64_t most) const {
    const auto at = object.find(key);
    if (at == object.end()) return 0;
    const bool is_fine = at->is_number_integer() &&
                         (!at->is_number_unsigned() || at->get<std::uint64_t>() <= INT64_MAX);
    const std::int64_t value = is_fine ? at->get<std::int64_t>() : -1;
    if (value < 0 || value > most) Broken(std::string(key) + " is no number that can be right");
    return value;
  }

  std::int64_t Time(const Json& event, const char* key, double least) const {
    const auto at = event.find(key);
    const double microseconds = at != event.end() && at->is_number() ? at->get<double>() : NAN;
    if (!(microseconds >= least && microseconds <= kMostMicroseconds))
      Broken(std::string(key) + " is no time that can be right");
    return std::llround(microseconds * 1000);
  }

  static std::string Text(const Json& object, const char* key) {
    const auto at = object.find(key);
    return at != object.end() && at->is_string() ? at->get<std::string>() : "";
  }

  template <class Span>
  Span SpanOf(const Json& event) const {
    Span span;
    span.begin_ns = Time(event, "ts", -kMostMicroseconds);
    span.end_ns = span.begin_ns + Time(event, "dur", 0);
    return span;
  }

  void Take(const Json& event) {
    const Json arguments = event.value("args", Json::object());
    const std::string name = Text(event, "name"), phase = Text(event, "ph"),
                      category = Text(event, "cat");
    if (!arguments.is_object()) Broken("args is no object");
    if (phase == "M") return TakeHead(name, arguments);
    if (!has_head_) NoTrace();
    RecordedDevice& device = run_.devices[static_cast<int>(Number(event, "pid", 1 << 16))];
    if (phase == "C" && name == "memory") return TakeMemory(event, arguments, &device);
    if (phase == "X") return TakeSpan(event, name, category, arguments, &device);
    if (phase == "i") return TakeMoment(event, name, arguments, &device);
  }

  void TakeHead(const std::string& name, const Json& arguments) {
    if (name == "events lost") run_.lost_events = Number(arguments, "count", INT64_MAX);
    if (name != "spillway") return;
    if (Number(arguments, "schema", INT64_MAX) != 1)
      throw Failure(kExitUnreadable, name_ + " is of another version", "its schema is not 1",
                    "read it with the spillway that wrote it");
    has_head_ = true;
    run_.command = Text(arguments, "command");
  }

  void TakeMemory(const Json& event, const Json& arguments, RecordedDevice* device) const {
    device->memory.push_back({.time_ns = Time(event, "ts", -kMostMicroseconds),
                              .resident_bytes = Number(arguments, "resident", kMostBytes),
                              .budget_bytes = Number(arguments, "budget", kMostBytes),
                              .wanted_bytes = Number(arguments, "wanted", kMostBytes),
                              .host_bytes = Number(arguments, "host", kMostBytes)});
  }

  void TakeSpan(const Json& event, const std::string& name, const std::string& category,
                const Json& arguments, RecordedDevice* device) const {
    if (category == "operation") {
      auto operation = SpanOf<RecordedOperation>(event);
      operation.stream = Number(event, "tid", 1 << 30);
      for (const Json& touch : arguments.value("touches", Json::array())) {
        if (touch.is_number_unsigned()) operation.touches.push_back(touch.get<std::uint64_t>());
      }
      device->operations.push_back(std::move(operation));
    } else if (category == "copy") {
      auto copy = SpanOf<RecordedCopy>(event);
      copy.is_out = name == "copy out";
      copy.buffer = static_cast<std::uint64_t>(Number(arguments, "buffer", INT64_MAX));
      copy.size_bytes = Number(arguments, "bytes", kMostBytes);
      copy.cause = Text(arguments, "cause");
      device->copies.push_back(std::move(copy));
    } else if (category == "stall") {
      auto stall = SpanOf<RecordedStall>(event);
      stall.cause = name;
      device->stalls.push_back(std::move(stall));
    } else if (category == "iteration") {
      auto iteration = SpanOf<RecordedIteration>(event);
      iteration.misses = Number(arguments, "misses", INT64_MAX);
      device->iterations.push_back(iteration);
    }
  }

  void TakeMoment(const Json& event, const std::string& name, const Json& arguments,
                  RecordedDevice* device) const {
    const std::int64_t time_ns = Time(event, "ts", -kMostMicroseconds);
    if (name == "plan adopted") {
      device->plans.push_back({.time_ns = time_ns,
                               .strategy = Text(arguments, "strategy"),
                               .predicted_ns = Number(arguments, "predicted_ns", INT64_MAX),
                               .budget_bytes = Number(arguments, "budget", kMostBytes),
                               .actions = Number(arguments, "actions", INT64_MAX),
                               .operations = Number(arguments, "operations", INT64_MAX)});
      return;
    }
    device->moments.push_back(
        {.time_ns = time_ns,
         .name = name,
         .buffer = static_cast<std::uint64_t>(Number(arguments, "buffer", INT64_MAX)),
         .size_bytes = Number(arguments, "bytes", kMostBytes)});
  }

  // Events come in the order of the device's reports to their threads.
  void Sort() {
    const auto by_begin = [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; };
    const auto by_time = [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; };
    for (auto& [number, device] : run_.devices) {
      std::stable_sort(device.operations.begin(), device.operations.end(), by_begin);
      std::stable_sort(device.copies.begin(), device.copies.end(), by_begin);
      std::stable_sort(device.stalls.begin(), device.stalls.end(), by_begin);
      std::stable_sort(device.iterations.begin(), device.iterations.end(), by_begin);
      std::stable_sort(device.memory.begin(), device.memory.end(), by_time);
      std::stable_sort(device.plans.begin(), device.plans.end(), by_time);
      std::stable_sort(device.moments.begin(), device.moments.end(), by_time);
    }
  }

  std::istream& trace_;
  const std::string& name_;
  RecordedRun run_;
  bool has_head_ = false;
  std::int64_t read_ = 1;  // lines
};

}  // namespace

RecordedRun ReadRecordedRun(std::istream& trace, const std::string& name) {
  return Reader(trace, name).Read();
}

}  // namespace spillway::cli
