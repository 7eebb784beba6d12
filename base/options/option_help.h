// The parts of a command's `--help` that list its options. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/options/option.h"

namespace spillway::base {

// One entry per option, its description wrapped behind it at 120 columns.
std::string OptionsHelp(const std::vector<Option>& options);

// For the usage line: "[--json] [--socket PATH]", without --help.
std::string OptionsUsage(const std::vector<Option>& options);

}  // namespace spillway::base
