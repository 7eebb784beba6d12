// Fits a job's name into a column.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace spillway::base {

// At most `width` bytes. Keeps the end, where names differ (`spillway job` takes it), and splits no
// UTF-8 sequence.
inline std::string CutName(std::string_view name, std::size_t width) {
  if (name.size() <= width) return std::string(name);
  if (width == 0) return "";
  std::size_t begin = name.size() - (width - 1);
  while (begin < name.size() && (static_cast<unsigned char>(name[begin]) & 0xc0) == 0x80) ++begin;
  return "~" + std::string(name.substr(begin));
}

}  // namespace spillway::base
