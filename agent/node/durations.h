// A histogram of durations: counts by upper bounds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace spillway::agent {

template <const auto& kBounds>
struct Durations {
  std::array<int64_t, kBounds.size() + 1> counts = {};  // the last: longer ones
  int64_t sum_ns = 0;

  void Add(int64_t duration_ns) {
    size_t at = 0;
    while (at < kBounds.size() && static_cast<double>(duration_ns) > kBounds[at] * 1e9) ++at;
    ++counts[at];
    sum_ns += duration_ns;
  }
};

inline constexpr std::array<double, 9> kWaitSeconds = {0.01, 0.1,  1,    10,   60,
                                                       300,  1800, 7200, 28800};
inline constexpr std::array<double, 7> kAnswerSeconds = {0.0001, 0.0003, 0.001, 0.003,
                                                         0.01,   0.1,    1};

}  // namespace spillway::agent
