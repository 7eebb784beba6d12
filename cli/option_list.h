// getopt_long over a vector of strings, with our own messages. One thread: getopt has global state.
#pragma once

#include <getopt.h>

#include <functional>
#include <string>
#include <vector>

namespace spillway::cli {

struct OptionList {
  const char* letters;
  const option* options;
};

// Calls `take(letter, value)` for each option before the first operand or "--"; `value` may be
// empty. Returns the operands. `options` ends with a zero entry; its `val`s are letters. Throws
// Failure (2) with the name `subcommand`.
std::vector<std::string> ForEachOption(
    const std::vector<std::string>& arguments, const std::string& subcommand, const char* letters,
    const option* options, const std::function<void(int letter, const std::string& value)>& take);

}  // namespace spillway::cli
