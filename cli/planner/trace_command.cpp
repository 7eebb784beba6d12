#include "cli/planner/trace_command.h"

#include <cinttypes>
#include <cstdio>

#include "base/size_text.h"
#include "cli/failure.h"
#include "cli/planner/profile_json.h"
#include "cli/planner/profile_source.h"
#include "scheduler/trace/file/trace_file.h"

namespace spillway::cli {
namespace {

using namespace scheduler;

bool IsTraceFile(const std::string& source) {
  return !source.starts_with("network:") && IsTrace(ReadBytes(source));
}

std::string Names(const IterationProfile& profile, const std::vector<BufferId>& ids) {
  std::string text;
  for (BufferId id : ids) text += (text.empty() ? "" : " ") + profile.at(id).name;
  return text;
}

int PrintProfile(const IterationProfile& profile) {
  std::printf("%s: %zu operations, %zu buffers, batch %" PRId64 ", %.3f ms, peak %s\n",
              profile.name.c_str(), profile.operations.size(), profile.buffers.size(),
              profile.batch_size, static_cast<double>(BusyNs(profile)) / 1e6,
              base::FormatBytes(static_cast<uint64_t>(PeakBytes(profile))).c_str());
  const std::vector<int64_t> live = LiveBytesByOperation(profile);
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    const Operation& operation = profile.operations[i];
    std::printf("%6zu %-28s %10.3f ms  live %10s  reads %s  writes %s\n", i, operation.name.c_str(),
                static_cast<double>(operation.duration_ns) / 1e6,
                base::FormatBytes(static_cast<uint64_t>(live[i])).c_str(),
                Names(profile, operation.reads).c_str(), Names(profile, operation.writes).c_str());
  }
  return 0;
}

int PrintEvents(const EventTrace& trace) {
  std::printf("%s: %zu events, %zu identities\n", trace.name.c_str(), trace.events.size(),
              trace.identities.size());
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    std::printf("%8zu %14" PRId64 " ns  ", i, event.start_ns);
    switch (event.kind) {
      case EventKind::kAllocate:
        std::printf("allocate a%d, %" PRId64 " bytes", event.allocation, event.size_bytes);
        break;
      case EventKind::kFree:
        std::printf("free a%d", event.allocation);
        break;
      case EventKind::kSynchronize:
        std::printf("synchronize stream %d", event.stream);
        break;
      case EventKind::kOperation:
        std::printf("%s, stream %d, %" PRId64 " ns",
                    trace.identities[static_cast<size_t>(event.identity)].c_str(), event.stream,
                    event.duration_ns);
        for (const TraceTouch& touch : event.touches)
          std::printf(" a%d:%s%s", touch.allocation, touch.reads ? "r" : "",
                      touch.writes ? "w" : "");
        break;
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace

int PrintTrace(const std::string& source, const std::string& device) {
  if (IsTraceFile(source)) return PrintEvents(LoadTrace(source));
  return PrintProfile(LoadProfile(source, LoadDevice(device)).profile);
}

int ConvertTrace(const std::string& source, const std::string& output, const std::string& device,
                 bool as_profile) {
  const bool json = output.ends_with(".json");
  if (IsTraceFile(source) && !as_profile) {
    const EventTrace trace = LoadTrace(source);
    if (json)
      WriteText(output, TraceToJson(trace));
    else
      WriteBytes(output, WriteTrace(trace));
    return 0;
  }
  const IterationProfile profile = LoadProfile(source, LoadDevice(device)).profile;
  if (json)
    WriteText(output, ProfileToJson(profile));
  else
    WriteBytes(output, WriteProfile(profile));
  return 0;
}

int TrimTrace(const std::string& source, const std::string& output, uint64_t from, uint64_t until) {
  const EventTrace trace = LoadTrace(source);
  if (from >= until || from >= trace.events.size())
    throw Failure(
        kExitUsage,
        "nothing lies between events " + std::to_string(from) + " and " + std::to_string(until),
        "the trace has " + std::to_string(trace.events.size()) + " events",
        "see: spillway trace print " + source);
  WriteBytes(output, WriteTrace(CutTrace(trace, from, until)));
  return 0;
}

}  // namespace spillway::cli
