// Follows a job through its few known iterations: training, evaluation, inputs of several lengths.
//
// Observe allocates nothing. When the active pattern meets unknown events, the others check whether
// they know the position: at the start of an iteration at once, elsewhere after a few unknown
// events.
//
// Invariants
//   1. At most kMost patterns are kept. A new one replaces the one followed longest ago.
//   2. Fingerprints are unique: relearning a pattern replaces the old one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/learn/iteration_follower.h"

namespace spillway::scheduler {

class IterationFollowers {
 public:
  static constexpr int32_t kMost = 8;

  struct Step {
    int32_t slot = -1;  // the active pattern's; -1: no pattern is known
    Followed followed;
    bool changed_pattern = false;
  };

  // `next` is the next event; -1: unknown. Returns the pattern's slot.
  int32_t Add(std::shared_ptr<const IterationPattern> pattern, int32_t next = -1);
  Step Observe(const JobEvent& event);

  int32_t active() const { return active_; }
  const IterationFollower* at(int32_t slot) const {
    const auto& follower = slots_[static_cast<size_t>(slot)].follower;
    return follower ? &*follower : nullptr;
  }
  // The most bytes that any part touches in every iteration; -1: no part is followed. A part is a
  // pattern that fits at least twice into an iteration of `events` events.
  int64_t WidestLoopBytes(int64_t events) const;
  std::vector<std::shared_ptr<const IterationPattern>> Patterns() const;

 private:
  struct Slot {
    std::optional<IterationFollower> follower;
    int64_t last_followed = -1;
    int64_t persistent_bytes = 0;
  };
  IterationFollower* Active() {
    return active_ < 0 ? nullptr : &*slots_[static_cast<size_t>(active_)].follower;
  }
  int32_t SlotFor(uint64_t fingerprint) const;
  int32_t LastFollowed(const std::array<bool, kMost>& is_asked) const;
  Step ResumeInOthers(const JobEvent& event, Step unknown);

  std::array<Slot, kMost> slots_;
  TokenContext context_;
  int32_t active_ = -1;
  int64_t events_ = 0;
};

}  // namespace spillway::scheduler
