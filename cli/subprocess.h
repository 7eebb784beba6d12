// Runs a command and collects its output; for the doctor.
#pragma once

#include <string>
#include <vector>

#include "cli/environment_changes.h"

namespace spillway::cli {

struct SubprocessResult {
  int exit_code = -1;  // -1: not started, or ended by a signal
  std::string output;
};

SubprocessResult RunSubprocess(const std::vector<std::string>& command,
                               const EnvironmentChanges& changes);

}  // namespace spillway::cli
