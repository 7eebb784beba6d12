#include "simulator/driver/engine/timeline_file.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "base/environment.h"

namespace spillway::simulator {
namespace {

// Never closed: the C library flushes it at exit.
std::FILE* TheFile() {
  static std::FILE* const file = [] {
    const char* const path = std::getenv(environment::kSimTimeline);
    std::FILE* const opened = path == nullptr || *path == '\0' ? nullptr : std::fopen(path, "we");
    if (opened != nullptr)
      std::fputs("lane,asked_ns,ready_ns,start_ns,end_ns,bytes,name\n", opened);
    return opened;
  }();
  return file;
}

const char* LaneOf(const Operation& operation) {
  switch (operation.resource) {
    case Resource::kCompute:
      return "compute";
    case Resource::kHostToDevice:
      return "h2d";
    case Resource::kDeviceToHost:
      return "d2h";
    default:
      return nullptr;
  }
}

}  // namespace

void NoteInTimeline(const Operation& operation) {
  const char* const lane = LaneOf(operation);
  if (lane == nullptr || TheFile() == nullptr) return;
  std::fprintf(TheFile(), "%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRIu64 ",%s %s\n",
               lane, operation.asked_ns, operation.ready_ns, operation.start_ns, operation.end_ns,
               operation.link_bytes, operation.name, operation.subject);
}

void NoteHostTime(Nanos begin_ns, Nanos end_ns) {
  if (TheFile() == nullptr) return;
  std::fprintf(TheFile(), "host,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",0,driver call\n",
               begin_ns, begin_ns, begin_ns, end_ns);
}

}  // namespace spillway::simulator
