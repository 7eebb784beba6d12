// The command's help: examples first, fits one screen.
#pragma once

#include <string>

#include "cli/failure.h"

namespace spillway::cli {

// `topic`: "" or a subcommand of this executable; throws Failure (2) otherwise.
std::string HelpText(const std::string& topic);
std::string VersionText();

Failure UnexpectedOperand(const std::string& subcommand, const std::string& operand);

}  // namespace spillway::cli
