// A known network on a known device: its profile and problem.
//
// Pure; one thread each. Memory counts in the chunks that the executor moves.
#pragma once

#include <string_view>

#include "tests/bench/planner/figures.h"

namespace spillway::papers {

class Modelled {
 public:
  Modelled(std::string_view network, std::string_view device, int64_t batch_size);
  Modelled(scheduler::IterationProfile profile, const scheduler::DeviceModel& device);
  Modelled(const Modelled&) = delete;
  Modelled& operator=(const Modelled&) = delete;

  scheduler::Problem WithBudget(int64_t budget_bytes) const;
  const scheduler::IterationProfile& profile() const { return profile_; }
  int64_t peak_bytes() const { return peak_bytes_; }
  int64_t least_bytes() const { return least_bytes_; }
  // As in frameworks without liveness analysis.
  int64_t total_bytes() const { return total_bytes_; }
  // Nothing moves and every workspace is there: no plan is faster.
  int64_t fastest_ns() const { return fastest_ns_; }
  double SlowDownPercent(int64_t iteration_ns) const;

 private:
  scheduler::IterationProfile profile_;
  scheduler::DeviceModel device_;
  int64_t peak_bytes_ = 0, least_bytes_ = 0, total_bytes_ = 0, fastest_ns_ = 0;
};

}  // namespace spillway::papers
