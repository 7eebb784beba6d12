// The parts of a command's `--help` that list its options.
#pragma once

#include <string>
#include <vector>

#include "base/options/option.h"

namespace spillway::base {

std::string OptionsHelp(const std::vector<Option>& options);

// For the usage line: "[--json] [--socket PATH]", without --help.
std::string OptionsUsage(const std::vector<Option>& options);

}  // namespace spillway::base
