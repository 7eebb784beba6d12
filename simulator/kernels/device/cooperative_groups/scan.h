// See cooperative_groups.h beside this folder.
#pragma once

#include "simulator/kernels/device/cooperative_groups.h"

namespace cooperative_groups {

template <typename Group, typename T, typename Combine>
static inline T inclusive_scan(const Group& group, T value, Combine combine) {
  const unsigned own = static_cast<unsigned>(group.thread_rank());
  T result = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); ++rank) {
    const T other = group.shfl(value, static_cast<int>(rank));
    if (rank <= own) result = combine(result, other);
  }
  return result;
}
template <typename Group, typename T>
static inline T inclusive_scan(const Group& group, T value) {
  return inclusive_scan(group, value, plus<T>());
}

// The first rank's result is zero.
template <typename Group, typename T, typename Combine>
static inline T exclusive_scan(const Group& group, T value, Combine combine) {
  const unsigned own = static_cast<unsigned>(group.thread_rank());
  T result = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); ++rank) {
    const T other = group.shfl(value, static_cast<int>(rank));
    if (rank < own) result = combine(result, other);
  }
  return own == 0 ? T{} : result;
}
template <typename Group, typename T>
static inline T exclusive_scan(const Group& group, T value) {
  return exclusive_scan(group, value, plus<T>());
}

}  // namespace cooperative_groups
