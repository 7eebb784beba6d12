// The machine's boot, for files of what ends with it.
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"

namespace spillway::agent {

inline constexpr size_t kBootBytes = 40;

// Empty: the kernel does not tell.
inline std::string BootId() {
  char text[kBootBytes - 1];
  const std::string_view line = base::ReadInto("/proc/sys/kernel/random/boot_id", text);
  return std::string(line.substr(0, line.find('\n')));
}

}  // namespace spillway::agent
