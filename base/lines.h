// Splits a text into lines.
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

}  // namespace spillway::base
