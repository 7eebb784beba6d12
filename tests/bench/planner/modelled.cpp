#include "tests/bench/planner/modelled.h"

#include <utility>

#include "scheduler/plan/lower_bound.h"

namespace spillway::papers {

using namespace scheduler;

namespace {

constexpr int64_t kUnlimitedBytes = int64_t{1} << 50;

DeviceModel InChunks(DeviceModel device) {
  device.chunk_bytes = 2 << 20;
  device.slab_unit_bytes = 512;
  return device;
}

}  // namespace

Modelled::Modelled(std::string_view network, std::string_view device, int64_t batch_size)
    : Modelled(ProfileOf(network, device, batch_size), InChunks(DeviceOf(device))) {}

Modelled::Modelled(IterationProfile profile, const DeviceModel& device)
    : profile_(std::move(profile)), device_(device), peak_bytes_(scheduler::PeakBytes(profile_)) {
  for (const Buffer& buffer : profile_.buffers) total_bytes_ += buffer.size_bytes;
  const LowerBound unlimited = FindLowerBound(WithBudget(kUnlimitedBytes));
  least_bytes_ = unlimited.memory_bytes;
  fastest_ns_ = unlimited.iteration_ns;
}

Problem Modelled::WithBudget(int64_t budget_bytes) const {
  Problem problem;
  problem.profile = &profile_;
  problem.device = device_;
  problem.budget_bytes = budget_bytes;
  return problem;
}

double Modelled::SlowDownPercent(int64_t iteration_ns) const {
  return 100.0 * static_cast<double>(iteration_ns) / static_cast<double>(fastest_ns_) - 100;
}

}  // namespace spillway::papers
