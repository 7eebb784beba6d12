// When to evict for a lowered budget: at once, and again while more than the budget is held.
//
// Invariants
//  1. A budget that arrives while memory is being emptied causes another turn.
//  2. Memory that could not leave is tried again, because its work still ran or waited for the
//     program. So no call of the program is needed to free it. The first pause is kFirstPauseNs and
//     doubles up to kLongestPauseNs. A new budget starts over.
#pragma once

#include <algorithm>
#include <cstdint>

namespace spillway::interposer {

class ShrinkSchedule {
 public:
  static constexpr std::uint64_t kFirstPauseNs = 1'000'000'000, kLongestPauseNs = 32'000'000'000;

  void Changed() {
    *this = {};
    is_due_ = true;
  }
  bool IsDue(std::uint64_t now_ns) const { return is_due_ && now_ns >= from_ns_; }
  // Begin and End enclose one turn. `is_met`: the job holds no more than the budget.
  void Begin() { is_due_ = false; }
  void End(bool is_met, std::uint64_t now_ns) {
    if (is_met || is_due_) return;
    is_due_ = true;
    from_ns_ = now_ns + pause_ns_;
    pause_ns_ = std::min(2 * pause_ns_, kLongestPauseNs);
  }

 private:
  bool is_due_ = false;
  std::uint64_t from_ns_ = 0;
  std::uint64_t pause_ns_ = kFirstPauseNs;
};

}  // namespace spillway::interposer
