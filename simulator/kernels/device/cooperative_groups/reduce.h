// See cooperative_groups.h beside this folder.
#pragma once

#include "simulator/kernels/device/cooperative_groups.h"

namespace cooperative_groups {

// Pairs of ranks one, two, four ... apart, as a GPU's shuffles combine them.
template <unsigned kSize, typename Parent, typename T, typename Combine>
static inline T reduce(const thread_block_tile<kSize, Parent, true>& tile, T value,
                       Combine combine) {
  for (unsigned distance = kSize / 2; distance > 0; distance /= 2)
    value = combine(value, tile.shfl_xor(value, static_cast<int>(distance)));
  return value;
}

template <typename Group, typename T, typename Combine>
static inline T reduce(const Group& group, T value, Combine combine) {
  T result = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); ++rank)
    result = combine(result, group.shfl(value, static_cast<int>(rank)));
  return result;
}

template <typename Group, typename T, typename Combine>
static inline void reduce_store_async(const Group& group, T* to, T value, Combine combine) {
  const T result = reduce(group, value, combine);
  if (group.thread_rank() == 0) *to = result;
}

}  // namespace cooperative_groups
