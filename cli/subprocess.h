// Runs a small command and collects what it says; for the doctor's experiments.
#pragma once

#include <string>
#include <vector>

#include "cli/environment_changes.h"

namespace spillway::cli {

struct SubprocessResult {
  int exit_code = -1;  // -1: it could not be started, or a signal ended it
  std::string output;  // standard output and error together
};

SubprocessResult RunSubprocess(const std::vector<std::string>& command,
                               const EnvironmentChanges& changes);

}  // namespace spillway::cli
