// `spillway run`: checks, sets the environment, becomes the command.
//
// One thread. Calls exec, so on success it never returns; the job has our pid, signals, files and
// exit code.
//
// Invariants
//  1. Nothing has started and no variable is changed before every check has passed. Two files are
//  touched:
//     the folder for peaks is made, and a report of an earlier run is removed.
//  2. Nothing of the launcher stays behind in the job: no open file, no changed signal, no child,
//  no driver.
#pragma once

#include <string>
#include <vector>

#include "cli/environment_changes.h"
#include "cli/run_options.h"

namespace spillway::cli {

struct Launch {
  std::string program_path;
  std::vector<std::string> arguments;  // with the program's name as written first
  EnvironmentChanges environment;
  std::string notes;  // for standard error: warnings, and the start line unless quiet
};

// Throws Failure.
Launch PrepareLaunch(const RunOptions& options);
[[noreturn]] void Execute(const Launch& launch);

}  // namespace spillway::cli
