// Whether larger budgets than the present one are on their way to a job. For memory that is of no
// use in parts: the program's own mappings next to each other (execute/runs.h).
//
// A new job's first budget is what is free; more follows as others give back. A job lends while it
// is idle or waits for its turn. Then it wakes, or its turn comes, and larger budgets follow, until
// it has as much as before. Guarded by its owner's lock.
//
// Invariants
//  1. More is expected for at most kPatienceNs from the last news, and for a new job from its first
//     budget: others may have more right to the memory, and the job goes on with what it has.
#pragma once

#include <cstdint>
#include <optional>

namespace spillway::interposer {

class LentBudget {
 public:
  static constexpr std::uint64_t kPatienceNs = 10'000'000'000;
  static constexpr std::uint64_t kEver = UINT64_MAX, kNothing = 0;

  // All answer until when (MonotonicNs) a return is to be expected; none: as before.
  // `lends`: the job is idle, or waits for its turn.
  std::optional<std::uint64_t> Granted(std::uint64_t bytes, bool lends, std::uint64_t now_ns) {
    if (first_ns_ == 0) first_ns_ = now_ns;
    const std::uint64_t whole_bytes = lent_of_bytes_ > bytes_ ? lent_of_bytes_ : bytes_;
    const bool is_growing = bytes > bytes_;
    bytes_ = bytes;
    const bool is_part = bytes < whole_bytes && (lends || lent_of_bytes_ > 0);
    lent_of_bytes_ = is_part ? whole_bytes : 0;
    is_asleep_ = is_part && lends;
    if (!is_part) return first_ns_ + kPatienceNs;
    if (lends) return kEver;
    return is_growing ? std::optional(now_ns + kPatienceNs) : std::nullopt;
  }
  std::optional<std::uint64_t> Woke(std::uint64_t now_ns) {
    if (!is_asleep_) return std::nullopt;
    is_asleep_ = false;
    return now_ns + kPatienceNs;
  }
  std::optional<std::uint64_t> AgentLost(std::uint64_t now_ns) {
    if (lent_of_bytes_ == 0) return std::nullopt;
    lent_of_bytes_ = 0;
    is_asleep_ = false;
    return now_ns + kPatienceNs;
  }

 private:
  std::uint64_t first_ns_ = 0;  // when it got its first budget
  std::uint64_t bytes_ = 0;
  std::uint64_t lent_of_bytes_ = 0;  // 0: nothing is lent
  bool is_asleep_ = false;
};

}  // namespace spillway::interposer
