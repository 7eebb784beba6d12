// The least memory that was left for a plan during the last two iterations. Unmovable slabs grow
// and shrink within an iteration, but a plan must fit at every moment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace spillway::interposer {

class LeastBudget {
 public:
  // `plannable_bytes`: the part of the budget that movable memory may use now.
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
  // Valid after the first Note. Negative if unmovable memory exceeds the budget.
  std::int64_t bytes() const { return std::min(last_bytes_, least_bytes_); }
  std::int64_t budget_bytes() const { return budget_bytes_; }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  std::int64_t budget_bytes_ = 0;
  std::int64_t last_bytes_ = kNone;
  std::int64_t least_bytes_ = kNone;
};

}  // namespace spillway::interposer
