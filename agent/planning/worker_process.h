// One planning process, seen from the plan service. It ends with the plan service's thread.
//
// Start never waits: a child can be stopped anywhere before it runs the program, and Kill ends it
// there too. posix_spawn would wait.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "agent/planning/worker_limits.h"
#include "base/unique_fd.h"

namespace spillway::agent {

class WorkerProcess {
 public:
  // Nullopt: errno says why there is no process. If the program cannot be run, the process ends
  // with kNotStarted.
  static std::optional<WorkerProcess> Start(const std::vector<std::string>& command,
                                            const WorkerLimits& limits, int request, int answer);
  WorkerProcess(WorkerProcess&& other) noexcept = default;
  WorkerProcess& operator=(WorkerProcess&& other) noexcept = default;

  int file() const { return file_.get(); }
  void Kill() const;
  // Waits for the ended or killed process; once. Returns its exit code, or minus its signal.
  int Reap() const;

 private:
  WorkerProcess(pid_t pid, base::UniqueFd file) : pid_(pid), file_(std::move(file)) {}

  pid_t pid_;
  base::UniqueFd file_;
};

}  // namespace spillway::agent
