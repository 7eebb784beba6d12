// The environment that the launcher gave to the job, whatever the job's processes have made of
// theirs since.
//
// Made and asked by config on one thread, when the process first needs its settings; a plain value.
//
// The launcher becomes the job's first process (docs/decisions/0004) and names it in
// SPILLWAY_JOB_PID. That process' and its ancestors' environments are as they were when each was
// started: /proc/<pid>/environ does not change with setenv.
//
// Invariants
//  1. Where this process or an ancestor is a job's first process, only that one's environment
//  counts; the nearest one's.
//     Else, as when somebody preloads the library by hand, getenv does.
//  2. It changes nothing.
// It cannot hold settings that the first process itself loses by replacing itself with another
// environment.
#pragma once

#include <optional>
#include <string>

namespace spillway::interposer {

class JobEnvironment {
 public:
  JobEnvironment();
  // The variable's value, or null.
  const char* Value(const char* name) const;

 private:
  std::optional<std::string> job_;  // the first process' environment block
};

}  // namespace spillway::interposer
