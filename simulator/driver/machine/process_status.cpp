#include "simulator/driver/machine/process_status.h"

#include <dirent.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/file.h"

namespace spillway::simulator {
namespace {

struct Stat {
  char state = 0;  // 0: no such process
  std::uint64_t started_ticks = 0;
};

// proc(5): the bracketed name may hold any character; the state is field 3, the start time 22.
Stat ReadStat(const char* path) {
  char text[1024];
  text[base::ReadInto(path, std::span(text).first(sizeof text - 1)).size()] = '\0';
  const char* field = std::strrchr(text, ')');
  if (field == nullptr || field[1] == '\0') return {};
  Stat stat;
  stat.state = field[2];
  for (int number = 2; number < 22 && field != nullptr; ++number)
    field = std::strchr(field + 1, ' ');
  if (field != nullptr) stat.started_ticks = std::strtoull(field, nullptr, 10);
  return stat;
}

Stat StatOfProcess(pid_t pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  return ReadStat(path);
}

bool IsBusy(const char* thread) {
  char path[320];
  std::snprintf(path, sizeof path, "/proc/self/task/%s/stat", thread);
  const char state = ReadStat(path).state;
  return state == 'R' || state == 'D';
}

}  // namespace

std::uint64_t StartedTicks(pid_t pid) { return StatOfProcess(pid).started_ticks; }

ProcessStatus StatusOf(pid_t pid, std::uint64_t started_ticks) {
  const Stat stat = StatOfProcess(pid);
  if (stat.state == 0 || stat.started_ticks != started_ticks) return ProcessStatus::kGone;
  if (stat.state == 'Z' || stat.state == 'X') return ProcessStatus::kGone;
  return stat.state == 'T' || stat.state == 't' ? ProcessStatus::kStopped : ProcessStatus::kAlive;
}

bool AnotherThreadIsBusy() {
  DIR* const threads = opendir("/proc/self/task");
  if (threads == nullptr) return false;
  char own[16];
  std::snprintf(own, sizeof own, "%d", gettid());
  bool busy = false;
  while (const dirent* entry = readdir(threads)) {
    if (entry->d_name[0] == '.' || std::strcmp(entry->d_name, own) == 0) continue;
    busy = busy || IsBusy(entry->d_name);
  }
  closedir(threads);
  return busy;
}

}  // namespace spillway::simulator
