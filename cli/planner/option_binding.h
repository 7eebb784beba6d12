// Binds the options of a command's table to variables, in a parser of CLI11. The variables outlive
// the parser.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cli/options/planner_options.h"

namespace spillway::cli {

class OptionBinding {
 public:
  OptionBinding(CLI::App& app, std::string_view command)
      : app_(app), stated_(PlannerOptionList(command)) {}

  // Throws std::out_of_range for an option that the table does not state.
  template <class T>
  CLI::Option* Bind(std::string_view name, T& variable) const {
    const Option& option = Stated(name);
    if constexpr (std::is_same_v<T, bool>)
      return app_.add_flag(Spellings(option), variable, DescriptionOf(option));
    else
      return app_.add_option(Spellings(option), variable, DescriptionOf(option))
          ->type_name(std::string(option.value.name));
  }

 private:
  const Option& Stated(std::string_view name) const {
    size_t index = 0;
    while (index < stated_.size() && stated_[index].name != name) ++index;
    return stated_.at(index);
  }

  static std::string Spellings(const Option& option) {
    const std::string letter = option.letter == 0 ? "" : std::string("-") + option.letter + ',';
    return letter + "--" + std::string(option.name);
  }

  CLI::App& app_;
  const std::vector<Option> stated_;
};

}  // namespace spillway::cli
