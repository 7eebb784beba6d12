// A token bucket that holds at most one second's tokens.
#pragma once

#include <algorithm>
#include <cstdint>

namespace spillway::agent {

class Rate {
 public:
  bool Take(int64_t now_ns, int64_t per_second) {
    if (last_ns_ != kNever) {
      const int64_t passed_ns = std::clamp<int64_t>(now_ns - last_ns_, 0, kSecondNs);
      level_ = std::min(per_second * kSecondNs, level_ + passed_ns * per_second);
    } else {
      level_ = per_second * kSecondNs;
    }
    last_ns_ = now_ns;
    if (level_ < kSecondNs) return false;
    level_ -= kSecondNs;
    return true;
  }
  int64_t last_ns() const { return last_ns_; }

 private:
  static constexpr int64_t kSecondNs = 1'000'000'000;
  static constexpr int64_t kNever = INT64_MIN;
  int64_t level_ = 0;  // in billionths of a token
  int64_t last_ns_ = kNever;
};

}  // namespace spillway::agent
