#include "scheduler/plan/oversized_operations.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/units.h"
#include "scheduler/plan/cost_model.h"

namespace spillway::scheduler {
namespace {

class Excess {
 public:
  explicit Excess(const Problem& problem)
      : problem_(problem),
        profile_(problem.iteration()),
        room_bytes_(profile_.operations.size(), problem.budget_bytes),
        touches_(profile_.buffers.size()),
        first_touch_(profile_.buffers.size()) {
    for (const Buffer& buffer : profile_.buffers) TakeRoomIfFixed(buffer);
    for (size_t i = 0; i < profile_.operations.size(); ++i) {
      for (const BufferId id : TouchedBy(profile_.operations[i])) {
        if (touches_[At(id)]++ == 0) first_touch_[At(id)] = {static_cast<int32_t>(i)};
      }
    }
  }

  // Nullopt: nothing to leave out, or not enough.
  std::optional<IterationProfile> LeftOut() {
    std::optional<IterationProfile> less;
    for (size_t i = 0; i < profile_.operations.size(); ++i) {
      const Operation& operation = profile_.operations[i];
      int64_t excess_bytes = MovableBytes(operation) - room_bytes_[i];
      if (excess_bytes <= 0) continue;
      if (!less) less = profile_;
      for (const BufferId id : MayBeLeftOut(operation, {static_cast<int32_t>(i)})) {
        if (excess_bytes <= 0) break;
        excess_bytes -= Footprint(id);
        LeaveOut(id, &less->operations[i]);
      }
      if (excess_bytes > 0) return {};
    }
    return less;
  }

 private:
  static std::vector<BufferId> TouchedBy(const Operation& operation) {
    std::vector<BufferId> touched = operation.reads;
    for (const BufferId id : operation.writes) {
      if (std::find(touched.begin(), touched.end(), id) == touched.end()) touched.push_back(id);
    }
    return touched;
  }

  bool IsMovable(const Buffer& buffer) const {
    return buffer.movable && buffer.size_bytes >= problem_.min_movable_bytes;
  }
  int64_t Footprint(BufferId id) const { return FootprintOf(problem_, profile_.at(id).size_bytes); }

  void TakeRoomIfFixed(const Buffer& buffer) {
    if (IsMovable(buffer)) return;
    const size_t from = buffer.persistent ? 0 : At(buffer.born);
    const size_t until = buffer.persistent ? room_bytes_.size() : At(buffer.dies) + 1;
    for (size_t i = from; i < until; ++i)
      room_bytes_[i] -= FootprintOf(problem_, buffer.size_bytes);
  }

  int64_t MovableBytes(const Operation& operation) const {
    int64_t bytes = 0;
    for (const BufferId id : TouchedBy(operation))
      bytes += IsMovable(profile_.at(id)) ? Footprint(id) : 0;
    return bytes;
  }

  // The first touch of a buffer that the iteration makes stays: it gives the buffer its content.
  std::vector<BufferId> MayBeLeftOut(const Operation& operation, OperationId at) const {
    std::vector<BufferId> ids = TouchedBy(operation);
    std::erase_if(ids, [&](BufferId id) {
      const Buffer& buffer = profile_.at(id);
      return !IsMovable(buffer) || (!buffer.persistent && first_touch_[At(id)] == at);
    });
    const auto rank = [this](BufferId id) {
      return std::pair(touches_[At(id)] > 1, profile_.at(id).size_bytes);
    };
    std::stable_sort(ids.begin(), ids.end(),
                     [&rank](BufferId a, BufferId b) { return rank(a) > rank(b); });
    return ids;
  }

  // The operation reads and writes it over the link, as far as it does.
  void LeaveOut(BufferId id, Operation* operation) const {
    const DeviceModel& device = problem_.device;
    const int64_t bytes = profile_.at(id).size_bytes;
    const auto over_link_ns = [&](int64_t bytes_per_second) {
      const int64_t rate = base::scale(bytes_per_second, device.link_share_permille, 1000);
      return rate > 0 ? base::scale(bytes, 1'000'000'000, rate) : 0;
    };
    if (std::erase(operation->reads, id) > 0)
      operation->duration_ns += over_link_ns(device.to_device_bytes_per_second);
    if (std::erase(operation->writes, id) > 0)
      operation->duration_ns += over_link_ns(device.to_host_bytes_per_second);
    operation->replayable = false;
  }

  const Problem& problem_;
  const IterationProfile& profile_;
  std::vector<int64_t> room_bytes_;  // by operation, for movable buffers
  std::vector<int> touches_;         // operations, by buffer
  std::vector<OperationId> first_touch_;
};

}  // namespace

std::optional<IterationProfile> WithoutExcess(const Problem& problem) {
  return Excess(problem).LeftOut();
}

}  // namespace spillway::scheduler
