// How often a verdict must come before it is believed: ever more often, each time it proved wrong.
//
// Called by the pipeline, on one thread. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace spillway::scheduler {

class Patience {
 public:
  // For each verdict: whether it is believed.
  bool Ends() {
    if (++verdicts_ < needed_) return false;
    verdicts_ = 0;
    return true;
  }
  void Double() {
    needed_ = std::min(2 * needed_, kMost);
    verdicts_ = 0;
  }

 private:
  static constexpr uint32_t kMost = 64;

  uint32_t needed_ = 1;
  uint32_t verdicts_ = 0;
};

}  // namespace spillway::scheduler
