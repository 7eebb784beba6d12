// The environment that the launcher gave to the job, whatever its processes changed since.
//
// The launcher becomes the job's first process (docs/decisions/0004), named in SPILLWAY_JOB_PID.
// /proc/<pid>/environ shows the environment at a process's start; setenv does not change it.
// Invariants
//  1. If this process or an ancestor is a job's first process, only the environment of the nearest
//     one counts. Otherwise, as when a user preloads the library by hand, getenv answers.
// Limit: settings are lost if the first process replaces itself with another environment.
#pragma once

#include <optional>
#include <string>

namespace spillway::interposer {

class JobEnvironment {
 public:
  JobEnvironment();
  const char* Value(const char* name) const;

 private:
  std::optional<std::string> job_;
};

}  // namespace spillway::interposer
