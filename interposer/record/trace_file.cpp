#include "interposer/record/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>

#include "base/file.h"
#include "base/json_text.h"

namespace spillway::interposer {
namespace {

constexpr std::size_t kMostNameBytes = 400;

// The format's threads: the rows of the picture.
constexpr int kIterationRow = 1, kPlanRow = 2, kStallRow = 3, kCopyOutRow = 4, kCopyInRow = 5,
              kStreamRow = 10;

const char* NameOfInstant(TraceKind kind) {
  switch (kind) {
    case TraceKind::kDropped:
      return "dropped";
    case TraceKind::kLeft:
      return "left";
    case TraceKind::kAllocated:
      return "allocated";
    case TraceKind::kFreed:
      return "freed";
    case TraceKind::kPrefetchAsked:
      return "prefetch asked";
    case TraceKind::kPrefetchHit:
      return "prefetch hit";
    default:
      return "prefetch unused";
  }
}

}  // namespace

bool TraceFile::Open(const char* path, const TraceHead& head) {
  Close();
  file_ = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
  error_ = file_ < 0 ? errno : 0;
  whole_bytes_ = 0;
  used_bytes_ = 0;
  is_first_ = true;
  tracks_ = {};
  if (file_ < 0) return false;
  AddHead(head);
  Flush();
  return file_ >= 0;
}

void TraceFile::AddHead(const TraceHead& head) {
  BeginEvent();
  Put("\"name\": \"spillway\", \"ph\": \"M\", \"pid\": 0, \"tid\": 0, \"args\": {\"schema\": 1, "
      "\"process\": "
      "%d, "
      "\"command\": ",
      head.pid);
  PutQuoted(head.command);
  Put("}");
  EndEvent();
}

void TraceFile::NameThread(int device, int thread, const char* name) {
  BeginEvent();
  Put("\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": %d, \"tid\": %d, \"args\": {\"name\": ",
      device, thread);
  PutQuoted(name);
  Put("}");
  EndEvent();
}

void TraceFile::NameTracks(const TraceEvent& event) {
  Track& track = tracks_[static_cast<std::size_t>(event.device) % tracks_.size()];
  if (!track.is_named) {
    track.is_named = true;
    BeginEvent();
    Put("\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d, \"tid\": 0, \"args\": {\"name\": "
        "\"device "
        "%d\"}",
        event.device, event.device);
    EndEvent();
    NameThread(event.device, kIterationRow, "iterations");
    NameThread(event.device, kPlanRow, "plan");
    NameThread(event.device, kStallRow, "program waits for memory");
    NameThread(event.device, kCopyOutRow, "copies out");
    NameThread(event.device, kCopyInRow, "copies in");
  }
  if (event.kind != TraceKind::kOperation || event.stream >= kMostStreams) return;
  const std::uint64_t bit = std::uint64_t{1} << event.stream;
  if (track.named_streams & bit) return;
  track.named_streams |= bit;
  char name[32];
  snprintf(name, sizeof name, "stream %" PRIu32, event.stream);
  NameThread(event.device, kStreamRow + static_cast<int>(event.stream), name);
}

void TraceFile::Add(const TraceEvent& event) {
  if (file_ < 0) return;
  NameTracks(event);
  switch (event.kind) {
    case TraceKind::kOperation:
      return AddSpan(event, "operation", kStreamRow + static_cast<int>(event.stream % 1000),
                     event.name ? event.name : "operation");
    case TraceKind::kRecompute:
      return AddSpan(event, "recompute", kStreamRow + static_cast<int>(event.stream % 1000),
                     "recompute");
    case TraceKind::kCopyOut:
      return AddSpan(event, "copy", kCopyOutRow, "copy out");
    case TraceKind::kCopyIn:
      return AddSpan(event, "copy", kCopyInRow, "copy in");
    case TraceKind::kStall:
      return AddSpan(event, "stall", kStallRow, event.name ? event.name : "stall");
    case TraceKind::kMemory:
      return AddMemory(event);
    case TraceKind::kIteration:
      return AddIteration(event);
    case TraceKind::kPlanAdopted:
      return AddPlan(event);
    case TraceKind::kPlanDropped:
      return AddDroppedPlan(event);
    case TraceKind::kExperiment:
      return AddExperiment(event);
    default:
      return AddInstant(event, NameOfInstant(event.kind));
  }
}

void TraceFile::AddSpan(const TraceEvent& event, const char* category, int thread,
                        const char* name) {
  BeginEvent();
  Put("\"name\": ");
  PutQuoted(name);
  Put(", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": %d, \"tid\": %d", category, event.device, thread);
  PutTime("ts", event.begin_ns);
  PutTime("dur", std::max<std::int64_t>(event.end_ns - event.begin_ns, 0));
  AddDetails(event);
  EndEvent();
}

void TraceFile::AddInstant(const TraceEvent& event, const char* name) {
  BeginEvent();
  Put("\"name\": \"%s\", \"cat\": \"plan\", \"ph\": \"i\", \"s\": \"t\", \"pid\": %d, \"tid\": %d",
      name, event.device, kPlanRow);
  PutTime("ts", event.begin_ns);
  AddDetails(event);
  EndEvent();
}

void TraceFile::AddDetails(const TraceEvent& event) {
  const char* between = "";
  Put(", \"args\": {");
  if (event.allocation) {
    Put("\"buffer\": %" PRIu64 ", \"bytes\": %" PRId64, event.allocation, event.values[0]);
    between = ", ";
  }
  if (event.kind == TraceKind::kDropped && event.name) {
    Put("%s\"as\": \"%s\"", between, event.name);
    between = ", ";
  }
  if (event.cause != TraceCause::kNone) {
    Put("%s\"cause\": \"%s\"", between, NameOf(event.cause));
    between = ", ";
  }
  if (event.touch_count) {
    Put("%s\"touches\": [", between);
    for (std::uint32_t i = 0; i < event.touch_count; ++i)
      Put("%s%" PRIu32, i ? ", " : "", event.touches[i]);
    Put("]");
    between = ", ";
  }
  if (event.is_host_time) Put("%s\"clock\": \"host\"", between);
  Put("}");
}

// An iteration is written when the next one begins.
void TraceFile::AddIteration(const TraceEvent& event) {
  Track& track = tracks_[static_cast<std::size_t>(event.device) % tracks_.size()];
  if (track.iteration_begin_ns >= 0) {
    BeginEvent();
    Put("\"name\": \"iteration %" PRIu64
        "\", \"cat\": \"iteration\", \"ph\": \"X\", \"pid\": %d, \"tid\": %d",
        track.iteration, event.device, kIterationRow);
    PutTime("ts", track.iteration_begin_ns);
    PutTime("dur", std::max<std::int64_t>(event.begin_ns - track.iteration_begin_ns, 0));
    Put(", \"args\": {\"misses\": %" PRId64 "}", event.values[0]);
    EndEvent();
  }
  ++track.iteration;
  track.iteration_begin_ns = event.begin_ns;
}

void TraceFile::AddMemory(const TraceEvent& event) {
  BeginEvent();
  Put("\"name\": \"memory\", \"ph\": \"C\", \"pid\": %d, \"tid\": 0", event.device);
  PutTime("ts", event.begin_ns);
  Put(", \"args\": {\"resident\": %" PRId64 ", \"budget\": %" PRId64 ", \"wanted\": %" PRId64
      ", \"host\": %" PRId64 "}",
      event.values[0], event.values[1], event.values[2], event.values[3]);
  EndEvent();
}

void TraceFile::AddPlan(const TraceEvent& event) {
  BeginEvent();
  Put("\"name\": \"plan adopted\", \"cat\": \"plan\", \"ph\": \"i\", \"s\": \"p\", \"pid\": %d, "
      "\"tid\": %d",
      event.device, kPlanRow);
  PutTime("ts", event.begin_ns);
  Put(", \"args\": {\"strategy\": ");
  PutQuoted(event.name ? event.name : "");
  Put(", \"predicted_ns\": %" PRId64 ", \"budget\": %" PRId64 ", \"actions\": %" PRId64
      ", \"operations\": %" PRId64 "}",
      event.values[0], event.values[1], event.values[2], event.values[3]);
  EndEvent();
}

void TraceFile::AddDroppedPlan(const TraceEvent& event) {
  BeginEvent();
  Put("\"name\": \"plan dropped\", \"cat\": \"plan\", \"ph\": \"i\", \"s\": \"p\", \"pid\": %d, "
      "\"tid\": %d",
      event.device, kPlanRow);
  PutTime("ts", event.begin_ns);
  Put(", \"args\": {\"planned_ns\": %" PRId64 ", \"without_ns\": %" PRId64 "}", event.values[0],
      event.values[1]);
  EndEvent();
}

void TraceFile::AddExperiment(const TraceEvent& event) {
  BeginEvent();
  Put("\"name\": \"experiment\", \"cat\": \"experiment\", \"ph\": \"i\", \"s\": \"t\", \"pid\": "
      "%d, "
      "\"tid\": %d",
      event.device, kPlanRow);
  PutTime("ts", event.begin_ns);
  Put(", \"args\": {\"kernel\": ");
  PutQuoted(event.name ? event.name : "kernel");
  Put(", \"result\": \"%s\"}", kExperimentResultNames[static_cast<std::size_t>(event.values[0])]);
  EndEvent();
}

void TraceFile::AddLost(std::uint64_t lost) {
  if (file_ < 0) return;
  BeginEvent();
  Put("\"name\": \"events lost\", \"ph\": \"M\", \"pid\": 0, \"tid\": 0, \"args\": {\"count\": "
      "%" PRIu64 "}",
      lost);
  EndEvent();
}

void TraceFile::BeginEvent() {
  if (used_bytes_ + kMostEventBytes > kBufferBytes) Write();
  Put(is_first_ ? "[\n{" : ",\n{");
  is_first_ = false;
}

void TraceFile::EndEvent() { Put("}"); }

// An event always fits kMostEventBytes: its names are cut.
void TraceFile::Put(const char* format, ...) {
  va_list rest;
  va_start(rest, format);
  const int added = vsnprintf(buffer_ + used_bytes_, kBufferBytes - used_bytes_, format, rest);
  va_end(rest);
  if (added > 0)
    used_bytes_ = std::min(kBufferBytes - 1, used_bytes_ + static_cast<std::size_t>(added));
}

void TraceFile::PutTime(const char* key, std::int64_t time_ns) {
  const bool is_before = time_ns < 0;
  const std::int64_t whole = is_before ? -time_ns : time_ns;
  Put(", \"%s\": %s%" PRId64 ".%03" PRId64, key, is_before ? "-" : "", whole / 1000, whole % 1000);
}

void TraceFile::PutQuoted(const char* text) {
  Put("\"");
  base::EscapeJson({text, strnlen(text, kMostNameBytes)}, [this](std::string_view piece) {
    Put("%.*s", static_cast<int>(piece.size()), piece.data());
  });
  Put("\"");
}

void TraceFile::Flush() {
  if (used_bytes_) Write();
}

void TraceFile::Write() {
  const int error = file_ >= 0 ? base::WriteAll(file_, {buffer_, used_bytes_}) : 0;
  if (error != 0) Fail(error);
  whole_bytes_ += static_cast<std::int64_t>(used_bytes_);
  used_bytes_ = 0;
}

void TraceFile::Fail(int error) {
  error_ = error;
  static_cast<void>(!ftruncate(file_, whole_bytes_));
  Close();
}

void TraceFile::Finish() {
  if (file_ < 0) return;
  Put("\n]\n");
  Flush();
  Close();
}

void TraceFile::Close() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

}  // namespace spillway::interposer
