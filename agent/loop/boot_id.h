// The machine's boot, for files of what ends with it. Any thread.
#pragma once

#include <string>

#include "base/file.h"

namespace spillway::agent {

inline constexpr size_t kBootBytes = 40;

// Empty: the kernel does not tell.
inline std::string BootId() {
  char text[kBootBytes - 1];
  return std::string(base::ReadInto("/proc/sys/kernel/random/boot_id", text));
}

}  // namespace spillway::agent
