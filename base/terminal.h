// The width of the terminal behind a file.
#pragma once

#include <sys/ioctl.h>

#include <cstddef>
#include <cstdint>

namespace spillway::base {

// SIZE_MAX, as without a limit, where the file is no terminal or its width is not known.
inline std::size_t TerminalColumns(int file) {
  winsize size{};
  return ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : SIZE_MAX;
}

}  // namespace spillway::base
