// Quotes text for pasting into a shell. Pure.
#pragma once

#include <string>

namespace spillway::cli {

// `word` if a POSIX shell reads it unchanged, else in single quotes.
std::string ShellQuoted(const std::string& word);

}  // namespace spillway::cli
