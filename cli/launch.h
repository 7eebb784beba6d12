// `spillway run`: checks, sets the environment, and becomes the command: the job has our pid,
// signals, files and exit code.
//
// Invariants
//  1. Nothing starts, and no variable changes, before every check has passed. Only two files are
//     touched: the peaks' folder is made, and an earlier run's report is removed.
//  2. The launcher leaves nothing in the job: no open file, changed signal, child or driver.
#pragma once

#include <string>
#include <vector>

#include "cli/environment_changes.h"
#include "cli/run_options.h"

namespace spillway::cli {

struct Launch {
  std::string program_path;
  std::vector<std::string> arguments;  // argv[0] is the name as written
  EnvironmentChanges environment;
  std::string notes;
};

Launch PrepareLaunch(const RunOptions& options);
[[noreturn]] void Execute(const Launch& launch);

}  // namespace spillway::cli
