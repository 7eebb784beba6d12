// One planning process, as the desk sees it: started with two files, known by a file of its own,
// ended or killed.
//
// Owned by the desk, on its thread: the process ends with that thread. Errors are values.
//
// Start waits for nothing: what the child does until it is the command's program may take as long
// as it likes (a process can be stopped anywhere), and is ended by Kill like the rest. posix_spawn
// would wait.
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
  // `command`: the program and its arguments, to which the limits are added. Nothing: errno says
  // why there is no process; one whose program cannot be run ends with kNotStarted.
  static std::optional<WorkerProcess> Start(const std::vector<std::string>& command,
                                            const WorkerLimits& limits, int request, int answer);
  WorkerProcess(WorkerProcess&& other) noexcept = default;
  WorkerProcess& operator=(WorkerProcess&& other) noexcept = default;

  // To be polled; readable when it has ended.
  int file() const { return file_.get(); }
  void Kill() const;
  // Waits for it, who has ended or been killed; once. Its exit code, or minus the signal that ended
  // it.
  int Reap() const;

 private:
  WorkerProcess(pid_t pid, base::UniqueFd file) : pid_(pid), file_(std::move(file)) {}

  pid_t pid_;
  base::UniqueFd file_;
};

}  // namespace spillway::agent
