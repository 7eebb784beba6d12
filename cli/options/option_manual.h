// A command's options as a list of a manual page, in mdoc(7).
//
// A description's words get their macro from their form: --option, $VARIABLE, a
// NAME_WITH_UNDERSCORE, /path or ~/path, and `literal`.
#pragma once

#include <string>
#include <vector>

#include "cli/options/option.h"

namespace spillway::cli {

std::string OptionsManual(const std::vector<Option>& options);

}  // namespace spillway::cli
