// The time after a start in which processes of an earlier agent return with what they hold. Pure.
//
// Invariants
//  1. Time in which the agent served nobody (it was stopped, the clock jumped) does not count: a
//     step counts at most kMostCountedNs.
#pragma once

#include <algorithm>
#include <cstdint>

namespace spillway::agent {

class ResumePeriod {
 public:
  ResumePeriod(int64_t length_ns, int64_t now_ns)
      : left_ns_(length_ns), last_ns_(now_ns), is_on_(length_ns > 0) {}

  // True once: the period ends now.
  bool Pass(int64_t now_ns) {
    if (is_on_) left_ns_ -= std::clamp<int64_t>(now_ns - last_ns_, 0, kMostCountedNs);
    last_ns_ = now_ns;
    if (!is_on_ || left_ns_ > 0) return false;
    is_on_ = false;
    return true;
  }
  bool is_on() const { return is_on_; }
  int64_t NextWake() const {
    return is_on_ ? last_ns_ + std::min(left_ns_, kMostCountedNs) : INT64_MAX;
  }

 private:
  static constexpr int64_t kMostCountedNs = 250'000'000;

  int64_t left_ns_;
  int64_t last_ns_;
  bool is_on_;
};

}  // namespace spillway::agent
