// An option of a program as data, from constant tables, and the texts derived from it.
//
// Invariants
//  1. A description begins in lower case and has no final period. It may continue with sentences.
//  2. `{values}` in a description stands for the option's words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::base {

enum class Need : uint8_t { kNever, kAlways, kMaybe };  // an option's value; kMaybe: --name=VALUE

// What a shell completes a value or operand with.
enum class Kind : uint8_t { kNothing, kText, kFile, kFolder, kWords, kJob, kProgram };

struct OptionValue {
  Need need = Need::kNever;
  std::string_view name;
  Kind kind = Kind::kNothing;
  std::string_view words;                 // for kWords, separated by spaces
  std::string (*more_words)() = nullptr;  // before them: words that are no constants
};

constexpr OptionValue Value(std::string_view name, Kind kind = Kind::kText,
                            std::string_view words = {}) {
  return {Need::kAlways, name, kind, words};
}
constexpr OptionValue ValueIfAny(std::string_view name, Kind kind = Kind::kText,
                                 std::string_view words = {}) {
  return {Need::kMaybe, name, kind, words};
}

struct Option {
  std::string_view name;  // without dashes
  char letter = 0;        // 0: none
  OptionValue value;
  std::string_view description;
};

inline constexpr OptionValue kNoValue{};
// Options of several programs.
inline constexpr Option kHelpOption{"help", 'h', kNoValue, "print this help"};
inline constexpr Option kJsonOption{"json", 0, kNoValue, "for scripts"};

std::vector<std::string> WordsOf(const Option& option);
std::string DescriptionOf(const Option& option);
// For a line of completions.
std::string FirstClauseOf(const Option& option);

std::string Joined(const std::vector<std::string>& words, std::string_view separator = " ");

}  // namespace spillway::base
