// Builds text without heap or lock, for the report at exit.
#pragma once

#include <stdarg.h>
#include <stdio.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace spillway::interposer {

// Text in a buffer of its own. Text that does not fit is dropped.
class Text {
 public:
  __attribute__((format(printf, 2, 3))) void Add(const char* format, ...) {
    va_list rest;
    va_start(rest, format);
    const int added = vsnprintf(bytes_ + size_, sizeof bytes_ - size_, format, rest);
    va_end(rest);
    if (added > 0) size_ = std::min(sizeof bytes_ - 1, size_ + static_cast<size_t>(added));
  }
  void Clear() { size_ = 0; }
  std::string_view view() const { return {bytes_, size_}; }

 private:
  char bytes_[65536] = {};  // room for a fully escaped command of 4096 bytes, names and figures
  size_t size_ = 0;
};

}  // namespace spillway::interposer
