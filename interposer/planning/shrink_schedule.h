// When a device's memory is to be emptied for a budget that became less: at once, and again while
// more is held than that.
//
// A value of the agent's session, guarded by its lock; pure.
//
// Invariants
//  1. A budget that comes while memory is being emptied is met by another turn.
//  2. What could not leave, as its work went on or waited for the program, is tried again: no call
//  of the program's need ever make room.
//     After kFirstPauseNs, then twice as long each time, up to kLongestPauseNs; a new budget begins
//     anew.
#pragma once

#include <algorithm>
#include <cstdint>

namespace spillway::interposer {

class ShrinkSchedule {
 public:
  static constexpr std::uint64_t kFirstPauseNs = 1'000'000'000, kLongestPauseNs = 32'000'000'000;

  // The budget may be less than what is held.
  void Changed() {
    *this = {};
    is_due_ = true;
  }
  bool IsDue(std::uint64_t now_ns) const { return is_due_ && now_ns >= from_ns_; }
  // A turn begins, and ends with more held than the budget, or not.
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
