// Quotes text for pasting into a shell.
#pragma once

#include <string>

namespace spillway::cli {

std::string ShellQuoted(const std::string& word);

}  // namespace spillway::cli
