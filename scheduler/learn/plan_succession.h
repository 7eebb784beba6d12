// Decides whether a plan from newer measurements gives way to the one before it.
//
// Newer measurements may be worse: a scan of memory, or the program itself, held the operations up.
// Then the new plan hides copies behind time that is not there.
//
// Called by the pipeline once per settled iteration of the new plan, on one thread. Pure. After an
// answer other than kGoOn, the succession is over.
#pragma once

#include <cstdint>

namespace spillway::scheduler {

class PlanSuccession {
 public:
  enum class Answer : uint8_t { kGoOn, kStays, kGoesBack };

  // `former_ns`: an iteration with the plan before.
  explicit PlanSuccession(int64_t former_ns) : former_ns_(former_ns) {}

  Answer Add(int64_t duration_ns) {
    sum_ns_ += duration_ns;
    if (++iterations_ < kCompared) return Answer::kGoOn;
    const int64_t allowed_ns = former_ns_ / 100 * (100 + kSlowerPercent);
    return sum_ns_ / iterations_ > allowed_ns ? Answer::kGoesBack : Answer::kStays;
  }

 private:
  static constexpr int64_t kCompared = 4;
  static constexpr int64_t kSlowerPercent = 3;

  const int64_t former_ns_;
  int64_t iterations_ = 0;
  int64_t sum_ns_ = 0;
};

}  // namespace spillway::scheduler
