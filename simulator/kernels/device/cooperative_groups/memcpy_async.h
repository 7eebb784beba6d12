// See cooperative_groups.h beside this folder. The group's first thread copies at once; waiting is
// the group's barrier.
#pragma once

#include <cstring>

#include "simulator/kernels/device/cooperative_groups.h"
#include "simulator/kernels/device/cuda/aligned_size.h"

namespace cooperative_groups {

template <typename Group, typename To, typename From, typename Size>
static inline void memcpy_async(const Group& group, To* to, const From* from, const Size& bytes) {
  if (group.thread_rank() == 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}
// Counts are elements here. The smaller one limits the copy.
template <typename Group, typename T, typename ToSize, typename FromSize>
static inline void memcpy_async(const Group& group, T* to, const ToSize& to_count, const T* from,
                                const FromSize& from_count) {
  const auto most = static_cast<std::size_t>(to_count);
  const auto count = static_cast<std::size_t>(from_count);
  memcpy_async(group, to, from, (count < most ? count : most) * sizeof(T));
}

template <typename Group>
static inline void wait(const Group& group) {
  group.sync();
}
template <unsigned kStages, typename Group>
static inline void wait_prior(const Group& group) {
  group.sync();
}

}  // namespace cooperative_groups
