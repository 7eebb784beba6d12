// The line that shows a run's progress on a terminal, rewritten in place. A line that is wider than
// the terminal would leave a copy of itself each second.
//
// Invariants
//  1. What does not fit whole is left out, with all that follows.
//  2. No heap, no lock.
#pragma once

#include <stdarg.h>
#include <stdio.h>

#include <cstddef>
#include <cstdint>

namespace spillway::interposer {

class ProgressLine {
 public:
  // The last column stays free: some terminals go to the next line there.
  explicit ProgressLine(size_t columns) : room_(columns - 1) {}

  __attribute__((format(printf, 2, 3))) void Add(const char* format, ...) {
    if (is_full_) return;
    va_list values;
    va_start(values, format);
    const int added = vsnprintf(text_ + size_, sizeof text_ - size_, format, values);
    va_end(values);
    const size_t size = size_ + static_cast<size_t>(added < 0 ? 0 : added);
    is_full_ = added < 0 || size >= sizeof text_ || size > room_;
    if (!is_full_) size_ = size;
    text_[size_] = 0;
  }
  const char* text() const { return text_; }

 private:
  const size_t room_;
  char text_[256] = {};
  size_t size_ = 0;
  bool is_full_ = false;
};

}  // namespace spillway::interposer
