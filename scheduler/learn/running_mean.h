// The running mean of times, over about eight of them.
#pragma once

#include <cstdint>

namespace spillway::scheduler {

// `mean`: of those before; 0: there are none.
inline uint64_t RunningMean(uint64_t mean, int64_t value) {
  const auto next = static_cast<uint64_t>(value);
  return mean == 0 ? next : mean - mean / 8 + next / 8;
}

}  // namespace spillway::scheduler
