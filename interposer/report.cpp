#include "interposer/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>

#include "interposer/config.h"
#include "interposer/driver/unknown_functions.h"

namespace spillway::interposer {
namespace {

struct Reported {
  JobMemory* job;
  Reported* next;
};
constinit std::atomic<Reported*> reported{nullptr};  // newest first
constinit std::atomic<pid_t> reporting_pid{0};       // a forked child has nothing to report
constinit std::atomic<bool> progress_shown{false};

// Text in a place of its own; what does not fit is left out.
class Text {
 public:
  __attribute__((format(printf, 2, 3))) void Add(const char* format, ...) {
    va_list rest;
    va_start(rest, format);
    const int added = vsnprintf(bytes_ + size_, sizeof bytes_ - size_, format, rest);
    va_end(rest);
    if (added > 0) size_ = std::min(sizeof bytes_ - 1, size_ + static_cast<size_t>(added));
  }
  bool WriteTo(int file) const {
    for (size_t done = 0; done < size_;) {
      const ssize_t written = write(file, bytes_ + done, size_ - done);
      if (written < 0 && errno != EINTR) return false;
      if (written > 0) done += static_cast<size_t>(written);
    }
    return true;
  }

 private:
  char bytes_[65536] = {};  // a command of 4096 bytes, each escaped, names and the figures
  size_t size_ = 0;
};

// Not on the stack: a signal handler's may be small. Each is written by the one thread that exits.
constinit char command[4096];
constinit Text json, peak, summary;

void Say(const Text& text) { static_cast<void>(text.WriteTo(STDERR_FILENO)); }

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

// What the process' jobs did together, one after the other.
struct Figures {
  size_t budget_bytes = 0;  // the last one's
  Counters sums;
  size_t wanted_peak_bytes = 0, held_peak_bytes = 0, pinned_peak_bytes = 0;
};

struct Sum {
  const char* name;
  uint64_t Counters::*counter;
};
constexpr Sum kSums[] = {
    {"offloaded_bytes", &Counters::offloaded_bytes},
    {"restored_bytes", &Counters::restored_bytes},
    {"dropped_bytes", &Counters::dropped_bytes},
    {"evictions", &Counters::evictions},
    {"cancelled_evictions", &Counters::cancelled_evictions},
    {"demand_fetches", &Counters::demand_fetches},
    {"served_from_host", &Counters::served_from_host},
    {"stall_ns", &Counters::stall_ns},
    {"launches", &Counters::launches},
    {"allocations", &Counters::allocations},
    {"frees", &Counters::frees},
    {"reused_ranges", &Counters::reused_ranges},
    {"passed_through", &Counters::passed_through},
    {"refused_allocations", &Counters::refused_allocations},
};

void Include(const JobMemory::Snapshot& life, Figures* all) {
  for (const Sum& sum : kSums) all->sums.*sum.counter += life.counters.*sum.counter;
  for (size_t i = 0; i < life.counters.unmovable.size(); ++i) {
    size_t& peak_bytes = all->sums.unmovable[i].peak_bytes;
    peak_bytes = std::max(peak_bytes, life.counters.unmovable[i].peak_bytes);
  }
  all->wanted_peak_bytes = std::max(all->wanted_peak_bytes, life.counters.wanted_peak_bytes);
  all->held_peak_bytes = std::max(all->held_peak_bytes, life.held_peak_bytes);
  all->pinned_peak_bytes = std::max(all->pinned_peak_bytes, life.pinned_peak_bytes);
}

// False when a job's lock is held for good: by the very thread that exits now, interrupted in a call.
bool ReadAll(Figures* all) {
  const Reported* const newest = reported.load();
  all->budget_bytes = newest->job->budget_bytes();
  for (const Reported* at = newest; at; at = at->next) {
    JobMemory::Snapshot life;
    if (!at->job->TryRead(&life)) return false;
    Include(life, all);
  }
  return true;
}

size_t ReadCommand() {
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t bytes = read(file, command, sizeof command);
  close(file);
  return bytes > 0 ? static_cast<size_t>(bytes) - 1 : 0;  // without the last argument's end
}

// The length of the well-formed UTF-8 sequence that begins here, or 0. (RFC 3629, section 4)
size_t SequenceBytes(const unsigned char* text, size_t left_bytes) {
  const unsigned char first = text[0];
  if (first < 0x80) return 1;
  const size_t bytes = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (bytes == 0 || bytes > left_bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((text[i] & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = text[1];
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool no_character = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || no_character ? 0 : bytes;
}

// Arguments are bytes; JSON is Unicode: a byte that is part of no character becomes the character of its number.
void AddQuoted(const char* text, size_t size_bytes, Text* out) {
  out->Add("\"");
  for (size_t at = 0; at < size_bytes;) {
    const auto* here = reinterpret_cast<const unsigned char*>(text + at);
    const size_t bytes = SequenceBytes(here, size_bytes - at);
    if (*here == 0) {
      out->Add(" ");
    } else if (*here == '"' || *here == '\\') {
      out->Add("\\%c", *here);
    } else if (*here < 0x20 || bytes == 0) {
      out->Add("\\u%04x", static_cast<unsigned>(*here));
    } else {
      out->Add("%.*s", static_cast<int>(bytes), text + at);
    }
    at += std::max<size_t>(bytes, 1);
  }
  out->Add("\"");
}

void AddUnknownFunctions(Text* out) {
  out->Add(",\n  \"unknown_functions\": %zu,\n  \"unknown_function_names\": [",
           driver::UnknownFunctionCount());
  for (size_t i = 0; const char* const name = driver::UnknownFunctionName(i); ++i) {
    out->Add(i == 0 ? "" : ", ");
    AddQuoted(name, strlen(name), out);
  }
  out->Add("]");
}

void AddUnmovable(const Counters& sums, Text* out) {
  out->Add(",\n  \"unmovable_peak_bytes\": {");
  for (size_t i = 1; i < sums.unmovable.size(); ++i) {
    out->Add("%s\"%s\": %zu", i == 1 ? "" : ", ", kUnmovableNames[i], sums.unmovable[i].peak_bytes);
  }
  out->Add("}");
}

void AddJson(const Figures& all, Text* out) {
  out->Add("{\n  \"schema\": 1,\n  \"pid\": %d,\n  \"command\": ", static_cast<int>(getpid()));
  const size_t command_bytes = ReadCommand();
  AddQuoted(command, command_bytes, out);
  const auto add = [out](const char* name, uint64_t value) {
    out->Add(",\n  \"%s\": %" PRIu64, name, value);
  };
  add("budget_bytes", all.budget_bytes);
  add("wanted_peak_bytes", all.wanted_peak_bytes);
  add("resident_peak_bytes", all.held_peak_bytes);
  add("host_peak_bytes", all.pinned_peak_bytes);
  for (const Sum& sum : kSums) add(sum.name, all.sums.*sum.counter);
  AddUnmovable(all.sums, out);
  AddUnknownFunctions(out);
  out->Add("\n}\n");
}

bool IsSameFile(const struct stat& status, int file) {
  struct stat other;
  return fstat(file, &other) == 0 && other.st_dev == status.st_dev && other.st_ino == status.st_ino;
}

// Not to be replaced: a pipe, a device, and the log that standard output or error goes to (/dev/stderr).
bool StaysInPlace(const char* path) {
  struct stat status;
  if (stat(path, &status) != 0) return false;
  return !S_ISREG(status.st_mode) || IsSameFile(status, STDOUT_FILENO) || IsSameFile(status, STDERR_FILENO);
}

// A pipe that nobody reads, or that is full, is an error and no wait.
bool WriteInPlace(const char* path, const Text& text) {
  const int file = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return false;
  const bool written = text.WriteTo(file);
  return close(file) == 0 && written;
}

bool WriteBesideAndRename(const char* path, const Text& text) {
  char beside[PATH_MAX + 32];
  snprintf(beside, sizeof beside, "%s.tmp%d", path, static_cast<int>(getpid()));
  const int file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return false;
  const bool written = text.WriteTo(file);
  const bool closed = close(file) == 0;
  if (written && closed && rename(beside, path) == 0) return true;
  const int error = errno;
  unlink(beside);
  errno = error;
  return false;
}

// The launched process writes the file that was asked for, behind a link where that is one; its children's reports
// stand beside, except where nothing can.
bool Write(const char* path, bool is_childs, const Text& text) {
  if (StaysInPlace(path)) return WriteInPlace(path, text);
  char target[PATH_MAX + 16];
  if (is_childs) {
    snprintf(target, sizeof target, "%s.%d", path, static_cast<int>(getpid()));
  } else if (!realpath(path, target)) {
    snprintf(target, sizeof target, "%s", path);
  }
  return WriteBesideAndRename(target, text);
}

bool IsChild() {
  const Config& config = ProcessConfig();
  return config.job_pid && *config.job_pid != getpid();
}

void WriteReport(const Figures& all) {
  const char* const path = ProcessConfig().report_path.c_str();
  if (!*path) return;
  AddJson(all, &json);
  if (Write(path, IsChild(), json)) return;
  summary.Add("spillway: the report could not be written to %s: %s\n", path, strerrordesc_np(errno));
}

void RememberPeak(const Figures& all) {
  const char* const path = ProcessConfig().peak_path.c_str();
  if (!*path || IsChild()) return;
  peak.Add("%zu\n", all.wanted_peak_bytes);
  Write(path, false, peak);
}

void AddSummary(const Figures& all) {
  if (!ProcessConfig().shows_summary) return;
  const Counters& c = all.sums;
  summary.Add("spillway: wanted %s, budget %s, held at most %s; moved out %s, back %s; %" PRIu64
              " evictions, waited %.3f s for memory\n",
              Readable(all.wanted_peak_bytes).text, Readable(all.budget_bytes).text,
              Readable(all.held_peak_bytes).text, Readable(c.offloaded_bytes).text,
              Readable(c.restored_bytes).text, c.evictions, static_cast<double>(c.stall_ns) * 1e-9);
}

void Report() {
  const Config& config = ProcessConfig();
  const bool asked = config.shows_summary || !config.report_path.empty();
  if (reporting_pid != getpid() || (!asked && config.peak_path.empty() && !progress_shown)) return;
  if (progress_shown) summary.Add("\r\033[K");
  Figures all;
  if (ReadAll(&all)) {
    WriteReport(all);
    RememberPeak(all);
    AddSummary(all);
  } else if (asked) {
    summary.Add("spillway: no figures of this run: it ended in the middle of a call\n");
  }
  Say(summary);
}

}  // namespace

void ReportAtExit(JobMemory* job) {
  reporting_pid = getpid();
  auto* const added = new Reported{job, reported.load()};
  while (!reported.compare_exchange_weak(added->next, added)) {
  }
  if (!added->next) atexit(&Report);
}

void ShowProgress() {
  const Reported* const newest = reported.load();
  if (!ProcessConfig().shows_progress || !newest) return;
  static std::atomic<time_t> last{0};
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  time_t before = last.load(std::memory_order_relaxed);
  if (now.tv_sec <= before || !last.compare_exchange_strong(before, now.tv_sec)) return;
  JobMemory* const job = newest->job;
  const JobMemory::Snapshot snapshot = job->Read();
  const Counters& c = snapshot.counters;
  fprintf(stderr, "\r\033[Kspillway: on the device %s of %s; wanted %s; moved out %s, back %s",
          Readable(snapshot.held_bytes).text, Readable(job->budget_bytes()).text,
          Readable(c.wanted_bytes).text, Readable(c.offloaded_bytes).text, Readable(c.restored_bytes).text);
  progress_shown = true;
}

}  // namespace spillway::interposer
