// Units of the simulated driver's tests.
#pragma once

#include <cstddef>

namespace spillway::simulator {

inline constexpr std::size_t kMebibyte = std::size_t{1} << 20;

}  // namespace spillway::simulator
