// Parses a command line by the command's table. Throws Failure (2).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/options/option_parser.h"
#include "cli/options/option.h"

namespace spillway::cli {

using base::HelpRow;
using base::JsonRow;
using base::OptionRow;
using base::OptionsIn;

template <class Target>
constexpr OptionRow<Target> SocketRow() {
  return {kSocketOption, [](Target& target, const std::string& value) { target.socket = value; }};
}

// As base::TakeEachOption; `arguments` begin with the command.
std::vector<std::string> ForEachOption(
    const std::vector<std::string>& arguments, const std::vector<Option>& options,
    const std::function<void(size_t index, const std::string& value)>& take);

// Options may also stand behind operands.
std::vector<std::string> ForEachOptionAnywhere(
    std::vector<std::string> arguments, const std::vector<Option>& options,
    const std::function<void(size_t index, const std::string& value)>& take);

template <class Target, class Rows>
std::vector<std::string> ParseOptions(const std::vector<std::string>& arguments, const Rows& rows,
                                      Target& target) {
  return ForEachOption(arguments, OptionsIn(rows), [&](size_t index, const std::string& value) {
    rows[index].store(target, value);
  });
}

template <class Target, class Rows>
std::vector<std::string> ParseOptionsAnywhere(const std::vector<std::string>& arguments,
                                              const Rows& rows, Target& target) {
  return ForEachOptionAnywhere(
      arguments, OptionsIn(rows),
      [&](size_t index, const std::string& value) { rows[index].store(target, value); });
}

}  // namespace spillway::cli
