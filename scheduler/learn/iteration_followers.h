// Follows a job through the few iterations that it is known to have: training and evaluation,
// inputs of some lengths.
//
// Asked like an iteration follower, which it has one of for each pattern. Observe allocates
// nothing.
//
// One pattern is active. Where it meets strangers, the others are asked whether they know the
// place: at the begin of an iteration at once, so that the first few events choose the pattern,
// else after a few strangers.
//
// Invariants
//   1. At most kMost patterns are kept; a new one takes the place of the one that was followed
//   longest ago.
//   2. No two have the same fingerprint: a pattern that was learned anew takes the old one's place.
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
    int32_t slot = -1;  // the active pattern's; -1: none is known
    Followed followed;
    bool changed_pattern = false;  // with this event
  };

  // The pattern's slot. It becomes the active one; `next` is the event that comes next, -1 where
  // that is not known.
  int32_t Add(std::shared_ptr<const IterationPattern> pattern, int32_t next = -1);
  Step Observe(const JobEvent& event);

  int32_t active() const { return active_; }
  // Null: the slot is free.
  const IterationFollower* at(int32_t slot) const {
    const auto& follower = slots_[static_cast<size_t>(slot)].follower;
    return follower ? &*follower : nullptr;
  }
  // What the widest pattern touches in every iteration, of those that are followed and of which an
  // iteration of so many events would have two or more; -1: there is none.
  int64_t WidestPartBytes(int64_t events) const;
  // In the order in which they were followed last, the latest first.
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
  Step AskTheOthers(const JobEvent& event, Step stranger);

  std::array<Slot, kMost> slots_;
  TokenContext context_;
  int32_t active_ = -1;
  int64_t events_ = 0;
};

}  // namespace spillway::scheduler
