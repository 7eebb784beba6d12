// getopt_long over a vector of strings, with our own messages.
//
// One thread: getopt keeps its state in globals.
#pragma once

#include <getopt.h>

#include <functional>
#include <string>
#include <vector>

namespace spillway::cli {

// What a subcommand takes: getopt's letters, and long options up to an entry of zeros.
struct OptionList {
  const char* letters;
  const option* options;
};

// Calls `take(letter, value)` for each option before the first operand or "--" (`value` is empty
// when there is none) and returns the operands. `options` ends with an entry of zeros; its `val`s
// are letters. Throws Failure (2) naming the command `subcommand`.
std::vector<std::string> ForEachOption(
    const std::vector<std::string>& arguments, const std::string& subcommand, const char* letters,
    const option* options, const std::function<void(int letter, const std::string& value)>& take);

}  // namespace spillway::cli
