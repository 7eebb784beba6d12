#include "scheduler/learn/drift_monitor.h"

#include <algorithm>

namespace spillway::scheduler {
namespace {

constexpr int64_t kOffTimePercent = 10;
constexpr int64_t kOffTimeIterations = 8;
constexpr int64_t kMissesPercent = 5;
constexpr int64_t kOffPlanIterations = 3;

}  // namespace

DriftMonitor::DriftMonitor(int64_t events, int64_t predicted_ns)
    : events_(std::max<int64_t>(events, 1)), predicted_ns_(std::max<int64_t>(predicted_ns, 1)) {}

DriftVerdict DriftMonitor::Add(int64_t measured_ns, int64_t misses) {
  const bool off_plan = misses > events_ * kMissesPercent / 100;
  off_plan_in_a_row_ = off_plan ? off_plan_in_a_row_ + 1 : 0;
  if (off_plan_in_a_row_ >= kOffPlanIterations) return Begin(DriftVerdict::kRelearn);
  // The duration of an off-plan iteration says nothing about the prediction.
  if (off_plan) return DriftVerdict::kKeep;
  const int64_t off_ns =
      std::max(measured_ns, predicted_ns_) - std::min(measured_ns, predicted_ns_);
  off_time_in_a_row_ = off_ns > predicted_ns_ / 100 * kOffTimePercent ? off_time_in_a_row_ + 1 : 0;
  return off_time_in_a_row_ >= kOffTimeIterations ? Begin(DriftVerdict::kReplan)
                                                  : DriftVerdict::kKeep;
}

DriftVerdict DriftMonitor::Begin(DriftVerdict verdict) {
  off_time_in_a_row_ = off_plan_in_a_row_ = 0;
  return verdict;
}

}  // namespace spillway::scheduler
