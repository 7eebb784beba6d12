#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iterator>

#include "agent/http/families.h"
#include "base/clock.h"
#include "base/file.h"

namespace spillway::agent {
namespace {

constexpr double kNsPerSecond = 1e9;

// This process's start in seconds since 1970. The kernel gives it in ticks since boot.
double StartTimeSeconds() {
  const std::string stat = base::ReadFile("/proc/self/stat").value_or("");
  constexpr char kSkippedFields[] =
      "%*d (%*[^)]) %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
      "%llu";
  unsigned long long started_ticks = 0;
  if (std::sscanf(stat.c_str(), kSkippedFields, &started_ticks) != 1) return 0;
  return static_cast<double>(base::RealtimeNs() - base::NowNs(CLOCK_BOOTTIME)) / kNsPerSecond +
         static_cast<double>(started_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double OpenFiles() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  return error ? 0 : static_cast<double>(std::distance(begin(files), end(files)));
}

}  // namespace

void AddProcess(Families& out) {
  static const double start_time_s = StartTimeSeconds();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + time.tv_usec / 1e6;
  };
  out.BeginCounter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.");
  out.Add({}, seconds(used.ru_utime) + seconds(used.ru_stime));
  long pages = 0, resident_pages = 0;
  const std::string statm = base::ReadFile("/proc/self/statm").value_or("");
  if (std::sscanf(statm.c_str(), "%ld %ld", &pages, &resident_pages) != 2) resident_pages = 0;
  out.Gauge("process_resident_memory_bytes", "Resident memory size in bytes.",
            static_cast<double>(resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  out.Gauge("process_open_fds", "Number of open file descriptors.", OpenFiles());
  out.Gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
            start_time_s);
}

}  // namespace spillway::agent
