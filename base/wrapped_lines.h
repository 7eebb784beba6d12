// Wraps lines at blanks, so that no number is split.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace spillway::base {

// A path stays whole where it will be copied.
enum class LongWords { kCut, kKeep };

// Lines that continue another begin with `indent`. Columns below twice the indent count as that.
inline std::string WrappedLines(std::string_view text, size_t columns, std::string_view indent,
                                LongWords long_words) {
  const size_t width = std::max(columns, 2 * indent.size() + 2);
  std::string wrapped;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line(text.substr(at, end - at));
    while (line.size() > width) {
      size_t cut = line.rfind(' ', width);
      const bool is_word_long = cut == line.npos || cut <= indent.size();
      if (is_word_long) cut = long_words == LongWords::kCut ? width : line.find(' ', width);
      if (cut == line.npos) break;
      wrapped += line.substr(0, cut) + '\n';
      line = std::string(indent) + line.substr(cut + (line[cut] == ' ' ? 1 : 0));
    }
    wrapped += line + '\n';
    at = end + 1;
  }
  return wrapped;
}

}  // namespace spillway::base
