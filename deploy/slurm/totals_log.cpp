#include "deploy/slurm/totals_log.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace spillway::slurm {

std::string TotalsLine(const EndedJob& ended) {
  std::string line = "job=" + std::to_string(ended.job) + " uid=" + std::to_string(ended.user);
  const auto add = [&line](const char* key, int64_t value) {
    line += std::string(" ") + key + "=" + std::to_string(value);
  };
  add("peak_bytes", ended.totals.peak_bytes);
  add("allocated_bytes", ended.totals.allocated_bytes);
  add("to_host_bytes", ended.totals.to_host_bytes);
  add("to_device_bytes", ended.totals.to_device_bytes);
  add("stall_ns", ended.totals.stall_ns);
  add("refused_allocations", ended.totals.refused_allocations);
  return line;
}

base::Status AppendToLog(const std::string& path, const std::string& line, int64_t now_s) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  const base::UniqueFd file(open(path.c_str(), kFlags, 0644));
  if (!file) return base::ErrnoError(path);
  const time_t seconds = now_s;
  tm parts{};
  char time[32];
  strftime(time, sizeof time, "time=%Y-%m-%dT%H:%M:%SZ ", gmtime_r(&seconds, &parts));
  const std::string whole = time + line + "\n";
  const ssize_t written = write(file.get(), whole.data(), whole.size());
  if (written == static_cast<ssize_t>(whole.size())) return base::Ok();
  return written < 0 ? base::ErrnoError(path) : base::Error{path + " took a part of the line"};
}

}  // namespace spillway::slurm
