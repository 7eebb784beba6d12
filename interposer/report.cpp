#include "interposer/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <string>

#include "interposer/config.h"

namespace spillway::interposer {
namespace {

constinit std::atomic<JobMemory*> reported{nullptr};
constinit std::atomic<pid_t> reporting_pid{0};  // a forked child has nothing to report
constinit std::atomic<bool> progress_shown{false};

// "1.50 GiB": enough to read, never more than nine characters.
struct Readable {
  char text[16];
  explicit Readable(uint64_t bytes) {
    const double gib = static_cast<double>(bytes) / (1 << 30);
    if (gib >= 1) {
      snprintf(text, sizeof text, "%.2f GiB", gib);
    } else {
      snprintf(text, sizeof text, "%.1f MiB", gib * 1024);
    }
  }
};

std::string ReadCommand() {
  std::string command;
  FILE* file = fopen("/proc/self/cmdline", "r");
  if (!file) return command;
  for (int c = fgetc(file); c != EOF && command.size() < 4096; c = fgetc(file)) {
    command += c ? static_cast<char>(c) : ' ';
  }
  fclose(file);
  if (!command.empty()) command.pop_back();
  return command;
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool WriteWhole(const std::string& path, const std::string& text) {
  const std::string beside = path + ".tmp" + std::to_string(getpid());
  FILE* file = fopen(beside.c_str(), "w");
  if (!file) return false;
  const bool written = fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = fclose(file) == 0;
  if (written && closed && rename(beside.c_str(), path.c_str()) == 0) return true;
  unlink(beside.c_str());
  return false;
}

std::string Json(const JobMemory& job, const JobMemory::Snapshot& now) {
  const Counters& c = now.counters;
  std::string out = "{\n  \"schema\": 1,\n  \"pid\": " + std::to_string(getpid()) +
                    ",\n  \"command\": " + Quoted(ReadCommand());
  const auto add = [&out](const char* name, uint64_t value) {
    out += ",\n  \"" + std::string(name) + "\": " + std::to_string(value);
  };
  add("budget_bytes", job.budget_bytes());
  add("wanted_peak_bytes", c.wanted_peak_bytes);
  add("resident_peak_bytes", now.held_peak_bytes);
  add("host_peak_bytes", now.pinned_peak_bytes);
  add("offloaded_bytes", c.offloaded_bytes);
  add("restored_bytes", c.restored_bytes);
  add("dropped_bytes", c.dropped_bytes);
  add("evictions", c.evictions);
  add("cancelled_evictions", c.cancelled_evictions);
  add("demand_fetches", c.demand_fetches);
  add("served_from_host", c.served_from_host);
  add("stall_ns", c.stall_ns);
  add("launches", c.launches);
  add("allocations", c.allocations);
  add("frees", c.frees);
  add("reused_ranges", c.reused_ranges);
  add("passed_through", c.passed_through);
  add("refused_allocations", c.refused_allocations);
  return out + "\n}\n";
}

// The launched process has the name that was asked for; its children's reports stand beside it.
std::string OwnPath(const std::string& path) {
  const Config& config = ProcessConfig();
  const bool is_child = config.job_pid && *config.job_pid != getpid();
  return is_child ? path + "." + std::to_string(getpid()) : path;
}

void WriteReport(const JobMemory& job, const JobMemory::Snapshot& now) {
  const std::string& path = ProcessConfig().report_path;
  if (path.empty() || WriteWhole(OwnPath(path), Json(job, now))) return;
  fprintf(stderr, "spillway: the report could not be written to %s: %s\n", path.c_str(), strerror(errno));
}

void RememberPeak(const JobMemory::Snapshot& now) {
  const Config& config = ProcessConfig();
  if (config.peak_path.empty() || (config.job_pid && *config.job_pid != getpid())) return;
  WriteWhole(config.peak_path, std::to_string(now.counters.wanted_peak_bytes) + "\n");
}

void WriteSummary(const JobMemory& job, const JobMemory::Snapshot& now) {
  if (!ProcessConfig().shows_summary) return;
  const Counters& c = now.counters;
  fprintf(stderr,
          "spillway: wanted %s, budget %s, held at most %s; moved out %s, back %s; %" PRIu64
          " evictions, waited %.3f s for memory\n",
          Readable(c.wanted_peak_bytes).text, Readable(job.budget_bytes()).text,
          Readable(now.held_peak_bytes).text, Readable(c.offloaded_bytes).text,
          Readable(c.restored_bytes).text, c.evictions, static_cast<double>(c.stall_ns) * 1e-9);
}

void Report() {
  JobMemory* job = reported.load();
  if (!job || reporting_pid != getpid()) return;
  const JobMemory::Snapshot now = job->Read();
  if (progress_shown.load()) fputs("\r\033[K", stderr);
  WriteReport(*job, now);
  RememberPeak(now);
  WriteSummary(*job, now);
}

}  // namespace

void ReportAtExit(JobMemory* job) {
  reporting_pid = getpid();
  if (!reported.exchange(job)) atexit(&Report);
}

void ShowProgress(JobMemory* job) {
  if (!ProcessConfig().shows_progress) return;
  static std::atomic<time_t> last{0};
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  time_t before = last.load(std::memory_order_relaxed);
  if (now.tv_sec <= before || !last.compare_exchange_strong(before, now.tv_sec)) return;
  const JobMemory::Snapshot snapshot = job->Read();
  const Counters& c = snapshot.counters;
  fprintf(stderr, "\r\033[Kspillway: on the device %s of %s; wanted %s; moved out %s, back %s",
          Readable(snapshot.held_bytes).text, Readable(job->budget_bytes()).text,
          Readable(c.wanted_bytes).text, Readable(c.offloaded_bytes).text, Readable(c.restored_bytes).text);
  progress_shown = true;
}

}  // namespace spillway::interposer
