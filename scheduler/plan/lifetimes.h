// The buffers that are born and die at each operation of an iteration. Pure.
#pragma once

#include <vector>

#include "scheduler/trace/profile.h"

namespace spillway::scheduler {

// By operation; without persistent buffers.
struct Lifetimes {
  std::vector<std::vector<BufferId>> born_at, dies_at;

  explicit Lifetimes(const IterationProfile& profile)
      : born_at(profile.operations.size()), dies_at(profile.operations.size()) {
    for (size_t i = 0; i < profile.buffers.size(); ++i) {
      const Buffer& buffer = profile.buffers[i];
      if (buffer.persistent) continue;
      born_at[At(buffer.born)].push_back({static_cast<int32_t>(i)});
      dies_at[At(buffer.dies)].push_back({static_cast<int32_t>(i)});
    }
  }
};

}  // namespace spillway::scheduler
