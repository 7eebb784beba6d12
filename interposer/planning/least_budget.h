// The least that a job could have planned with in its last two iterations: what cannot move (slabs
// of small allocations) grows and shrinks within an iteration, and a plan is for all of it.
//
// Used by the pipeline, one thread at a time. A plain value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace spillway::interposer {

class LeastBudget {
 public:
  // `budget_bytes`: the job's; `plannable_bytes`: what is left of it for what may move, now.
  void Note(std::int64_t budget_bytes, std::int64_t plannable_bytes) {
    const std::int64_t change_bytes = budget_bytes - budget_bytes_;
    if (budget_bytes_ != 0 && last_bytes_ != kNone) last_bytes_ += change_bytes;
    if (budget_bytes_ != 0 && least_bytes_ != kNone) least_bytes_ += change_bytes;
    budget_bytes_ = budget_bytes;
    least_bytes_ = std::min(least_bytes_, plannable_bytes);
  }
  void IterationEnded() {
    last_bytes_ = least_bytes_;
    least_bytes_ = kNone;
  }
  // After the first Note; what does not fit any more may be negative.
  std::int64_t bytes() const { return std::min(last_bytes_, least_bytes_); }
  std::int64_t budget_bytes() const { return budget_bytes_; }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  std::int64_t budget_bytes_ = 0;
  std::int64_t last_bytes_ = kNone;   // of the iteration before
  std::int64_t least_bytes_ = kNone;  // of this one
};

}  // namespace spillway::interposer
