// Text that can be pasted into a shell.
#pragma once

#include <string>

namespace spillway::cli {

// `word` itself where a POSIX shell would read it unchanged, else in single quotes.
std::string ShellQuoted(const std::string& word);

}  // namespace spillway::cli
