#include "scheduler/plan/timetable.h"

#include <algorithm>

#include "base/units.h"

namespace spillway::scheduler {
namespace {

int64_t CopyNs(int64_t size_bytes, int64_t bytes_per_second, const DeviceModel& device) {
  const int64_t rate = base::scale(bytes_per_second, device.link_share_permille, 1000);
  return base::transfer_ns(size_bytes, rate) + device.copy_latency_ns;
}

const WorkspaceChoice* ChosenWorkspace(const Operation& operation, size_t index,
                                       const std::vector<int32_t>& workspaces) {
  if (operation.workspaces.empty()) return nullptr;
  return &operation.workspaces[workspaces.empty() ? 0 : static_cast<size_t>(workspaces[index])];
}

}  // namespace

Timetable::Timetable(const Problem& problem, const std::vector<int32_t>& workspaces) {
  const IterationProfile& profile = problem.iteration();
  starts_ns_.push_back(0);
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    const WorkspaceChoice* chosen = ChosenWorkspace(profile.operations[i], i, workspaces);
    starts_ns_.push_back(starts_ns_.back() +
                         (chosen ? chosen->duration_ns : profile.operations[i].duration_ns));
  }
  MeasureBuffers(problem);
  MeasureLoad(problem, workspaces);
}

Timetable Timetable::Stretched(const std::vector<int64_t>& extra_ns) const {
  Timetable stretched = *this;
  int64_t sum_ns = 0;
  for (size_t i = 0; i < extra_ns.size(); ++i) {
    sum_ns += extra_ns[i];
    stretched.starts_ns_[i + 1] += sum_ns;
  }
  return stretched;
}

void Timetable::MeasureBuffers(const Problem& problem) {
  const DeviceModel& device = problem.device;
  for (const Buffer& buffer : problem.iteration().buffers) {
    const bool small = buffer.size_bytes < problem.min_movable_bytes;
    footprints_bytes_.push_back(
        base::round_up(buffer.size_bytes, small ? device.slab_unit_bytes : device.chunk_bytes));
    to_host_ns_.push_back(CopyNs(buffer.size_bytes, device.to_host_bytes_per_second, device));
    to_device_ns_.push_back(CopyNs(buffer.size_bytes, device.to_device_bytes_per_second, device));
  }
}

void Timetable::MeasureLoad(const Problem& problem, const std::vector<int32_t>& workspaces) {
  const IterationProfile& profile = problem.iteration();
  std::vector<int64_t> changes(profile.operations.size() + 1, 0);
  for (size_t i = 0; i < profile.buffers.size(); ++i) {
    const Buffer& buffer = profile.buffers[i];
    changes[buffer.persistent ? 0 : static_cast<size_t>(buffer.born.index)] += footprints_bytes_[i];
    if (!buffer.persistent)
      changes[static_cast<size_t>(buffer.dies.index) + 1] -= footprints_bytes_[i];
  }
  int64_t live_bytes = 0;
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    live_bytes += changes[i];
    const WorkspaceChoice* chosen = ChosenWorkspace(profile.operations[i], i, workspaces);
    load_bytes_.push_back(live_bytes + (chosen ? chosen->size_bytes : 0));
    peak_bytes_ = std::max(peak_bytes_, load_bytes_.back());
  }
}

int32_t Timetable::FirstStartingFrom(int64_t when_ns) const {
  const int64_t period = when_ns / std::max<int64_t>(1, iteration_ns());
  const auto at =
      std::lower_bound(starts_ns_.begin(), starts_ns_.end(), when_ns - period * iteration_ns());
  return static_cast<int32_t>(at - starts_ns_.begin()) +
         static_cast<int32_t>(period) * operation_count();
}

int32_t Timetable::FirstEndingAfter(int64_t when_ns) const {
  const int64_t period = when_ns / std::max<int64_t>(1, iteration_ns());
  const auto at =
      std::upper_bound(starts_ns_.begin() + 1, starts_ns_.end(), when_ns - period * iteration_ns());
  return static_cast<int32_t>(at - starts_ns_.begin()) - 1 +
         static_cast<int32_t>(period) * operation_count();
}

}  // namespace spillway::scheduler
