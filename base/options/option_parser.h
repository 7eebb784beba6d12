// Parses a command line by the program's table, with getopt_long and our own messages. One thread:
// getopt has global state.
//
// A row of the table is an option and the function that stores its value:
//
//   constexpr OptionRow<DoctorOptions> kRows[] = {
//       {{"json", 0, kNoValue, "for scripts"},
//        [](DoctorOptions& options, const std::string&) { options.json = true; }},
//   };
//   DoctorOptions options;
//   const auto operands = TakeOptions(arguments, kRows, options);  // or an error
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "base/options/option.h"
#include "base/result.h"

namespace spillway::base {

template <class Target>
struct OptionRow {
  Option option;
  void (*store)(Target& target, const std::string& value);  // an absent value is empty
};

// Rows of several programs, for targets with these fields.
template <class Target>
constexpr OptionRow<Target> HelpRow() {
  return {kHelpOption, [](Target& target, const std::string&) { target.help = true; }};
}
template <class Target>
constexpr OptionRow<Target> JsonRow(std::string_view description = kJsonOption.description) {
  Option option = kJsonOption;
  option.description = description;
  return {option, [](Target& target, const std::string&) { target.json = true; }};
}
template <class Rows>
std::vector<Option> OptionsIn(const Rows& rows) {
  std::vector<Option> options;
  options.reserve(std::size(rows));
  for (const auto& row : rows) options.push_back(row.option);
  return options;
}

// Calls `take(index, value)` for each option before the first operand or "--". Returns the
// operands. `arguments` begin with the program or its command.
Result<std::vector<std::string>> TakeEachOption(
    const std::vector<std::string>& arguments, const std::vector<Option>& options,
    const std::function<void(size_t index, const std::string& value)>& take);

template <class Target, class Rows>
Result<std::vector<std::string>> TakeOptions(const std::vector<std::string>& arguments,
                                             const Rows& rows, Target& target) {
  return TakeEachOption(arguments, OptionsIn(rows), [&](size_t index, const std::string& value) {
    rows[index].store(target, value);
  });
}

}  // namespace spillway::base
