// Splits a text into lines, and takes blanks off their ends.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

namespace spillway::base {

// Without its newline; nullopt at the end.
inline std::optional<std::string_view> TakeLine(std::string_view& rest) {
  if (rest.empty()) return std::nullopt;
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

// Without any of `blanks` at either end.
inline std::string_view Trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace spillway::base
