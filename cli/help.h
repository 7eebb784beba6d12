// The command's help: teaches by example, fits a screen.
#pragma once

#include <string>

#include "cli/failure.h"

namespace spillway::cli {

// `topic` is "" or a subcommand of this executable; throws Failure (2) for anything else.
std::string HelpText(const std::string& topic);
std::string VersionText();

Failure UnexpectedOperand(const std::string& subcommand, const std::string& operand);

}  // namespace spillway::cli
