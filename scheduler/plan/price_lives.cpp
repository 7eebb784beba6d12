#include "scheduler/plan/price_lives.h"

#include <algorithm>
#include <map>

#include "base/units.h"
#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/least_recompute.h"
#include "scheduler/plan/recompute_chain.h"

namespace spillway::scheduler::prices {
namespace {

bool Has(const std::vector<BufferId>& ids, BufferId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

class Measuring {
 public:
  Measuring(const Problem& problem, const Segments& segments)
      : problem_(problem),
        profile_(problem.iteration()),
        segments_(segments),
        chains_(problem),
        intervals_(IdleIntervals(profile_, std::max<int64_t>(1, problem.min_movable_bytes))) {
    const std::vector<int64_t> recompute_ns = LeastRecomputeNs(problem, chains_, intervals_);
    for (size_t i = 0; i < intervals_.size(); ++i) {
      if (recompute_ns[i] >= 0)
        again_ns_[{intervals_[i].buffer, intervals_[i].from}] =
            static_cast<double>(recompute_ns[i]);
    }
  }

  Lives Run() {
    result_.live_bytes.assign(At(segments_.check_count()), 0);
    const std::vector<std::vector<OperationId>> touches = TouchesByBuffer(profile_);
    for (size_t i = 0; i < touches.size(); ++i) Measure({static_cast<int32_t>(i)}, touches[i]);
    MeasureRooms();
    return std::move(result_);
  }

 private:
  int32_t OperationCount() const { return static_cast<int32_t>(profile_.operations.size()); }
  double FootprintBytes(BufferId id) const {
    return static_cast<double>(FootprintOf(problem_, profile_.at(id).size_bytes));
  }

  void Measure(BufferId id, const std::vector<OperationId>& touches) {
    const Buffer& buffer = profile_.at(id);
    const bool movable = IsMovable(problem_, profile_.at(id));
    if (movable && touches.empty()) return;
    const OperationId born = movable ? touches.front() : buffer.born;
    const OperationId dies = movable ? touches.back() : buffer.dies;
    Hold(buffer.persistent ? 0 : born.index, buffer.persistent ? OperationCount() - 1 : dies.index,
         FootprintBytes(id));
    if (!movable) return;
    Life life = LifeOf(id, touches);
    if (!life.gaps.empty()) result_.lives.push_back(std::move(life));
  }

  void Hold(int32_t from, int32_t until, double bytes) {
    for (int32_t b = 0; b < segments_.check_count(); ++b) {
      if (from <= segments_.check(b) && segments_.check(b) <= until)
        result_.live_bytes[At(b)] += bytes;
    }
  }

  // Starts at a touch after which the state is known: the first, or a persistent buffer's first
  // write.
  Life LifeOf(BufferId id, const std::vector<OperationId>& touches) const {
    Life life;
    const Buffer& buffer = profile_.at(id);
    const bool input = buffer.kind == BufferKind::kInput;
    size_t start = 0;
    if (buffer.persistent) {
      const auto writer = std::find_if(touches.begin(), touches.end(), [&](OperationId touch) {
        return Has(profile_.at(touch).writes, id);
      });
      const bool written = writer != touches.end();
      life.starts_copied = !written && !input;
      start = input     ? touches.size() - 1
              : written ? static_cast<size_t>(writer - touches.begin())
                        : 0;
    }
    const size_t count = buffer.persistent ? touches.size() : touches.size() - 1;
    for (size_t n = 0; n < count; ++n)
      life.gaps.push_back(GapBetween(id, touches[(start + n) % touches.size()],
                                     touches[(start + n + 1) % touches.size()]));
    const auto size = static_cast<double>(buffer.size_bytes);
    life.held_bytes = FootprintBytes(id);
    life.out_work = size + LatencyWork(problem_.device.to_host_bytes_per_second,
                                       problem_.device.to_host_both_bytes_per_second);
    life.in_work = size + LatencyWork(problem_.device.to_device_bytes_per_second,
                                      problem_.device.to_device_both_bytes_per_second);
    return life;
  }

  // What the engine could have copied meanwhile at its lowest rate.
  double LatencyWork(int64_t alone, int64_t both) const {
    const int64_t rate =
        base::scale(std::min(alone, both), problem_.device.link_share_permille, 1000);
    return static_cast<double>(problem_.device.copy_latency_ns) * static_cast<double>(rate) / 1e9;
  }

  Gap GapBetween(BufferId id, OperationId from, OperationId to) const {
    const bool wraps = to <= from;
    const std::vector<BufferId>&reads = profile_.at(to).reads, &writes = profile_.at(to).writes;
    Gap gap;
    gap.first = segments_.After(from.index);
    gap.last = segments_.Before(wraps ? to.index + OperationCount() : to.index);
    gap.starts_in_group = gap.first % 2 == 1;
    gap.write_after = Has(writes, id);
    gap.new_content = wraps && profile_.at(id).kind == BufferKind::kInput;
    gap.dead = Has(writes, id) && !Has(reads, id);
    if (const auto again = again_ns_.find({id, from}); again != again_ns_.end())
      gap.again_ns = again->second;
    return gap;
  }

  void MeasureRooms() {
    std::vector<double> fixed_change(At(OperationCount()) + 1, 0);
    for (size_t i = 0; i < profile_.buffers.size(); ++i) {
      const BufferId id{static_cast<int32_t>(i)};
      const Buffer& buffer = profile_.at(id);
      if (IsMovable(problem_, profile_.at(id))) continue;
      fixed_change[buffer.persistent ? 0 : At(buffer.born.index)] += FootprintBytes(id);
      fixed_change[buffer.persistent ? At(OperationCount()) : At(buffer.dies.index) + 1] -=
          FootprintBytes(id);
    }
    double fixed_bytes = 0;
    for (size_t i = 0; i < profile_.operations.size(); ++i) {
      fixed_bytes += fixed_change[i];
      const Operation& operation = profile_.operations[i];
      const auto touched_bytes = static_cast<double>(TouchedMovableBytes(problem_, operation));
      result_.room_bytes.push_back(static_cast<double>(problem_.budget_bytes) - fixed_bytes -
                                   touched_bytes);
    }
  }

  const Problem& problem_;
  const IterationProfile& profile_;
  const Segments& segments_;
  const RecomputeChains chains_;
  const std::vector<IdleInterval> intervals_;
  // By buffer and the touch before the gap.
  std::map<std::pair<BufferId, OperationId>, double> again_ns_;
  Lives result_;
};

}  // namespace

Segments::Segments(int32_t operations, std::vector<int32_t> checks)
    : checks_(std::move(checks)), groups_(At(operations)) {
  for (int32_t b = 0, k = 0; k < operations; ++k) {
    if (b + 1 < check_count() && check(b + 1) == k) ++b;
    groups_[At(k)] = b;
  }
}

int32_t Segments::GroupOf(int32_t operation) const {
  const auto operations = static_cast<int32_t>(groups_.size());
  return groups_[At(operation % operations)] + operation / operations * check_count();
}

bool Segments::IsCheck(int32_t operation) const {
  const auto operations = static_cast<int32_t>(groups_.size());
  return check(groups_[At(operation % operations)]) == operation % operations;
}

int32_t Segments::After(int32_t operation) const {
  const int32_t group = GroupOf(operation);
  return GroupOf(operation + 1) != group ? 2 * group + 2 : 2 * group + 1;
}

int32_t Segments::Before(int32_t operation) const {
  const int32_t group = GroupOf(operation);
  return IsCheck(operation) ? 2 * group : 2 * group + 2;
}

std::vector<int32_t> ChooseChecks(const IterationProfile& profile, int32_t most) {
  const std::vector<int64_t> live = LiveBytesByOperation(profile);
  const auto count = static_cast<int32_t>(live.size());
  const int32_t stretch = std::max(1, (count + most - 1) / most);
  std::vector<int32_t> checks{0};
  for (int32_t begin = 0; begin < count; begin += stretch) {
    const auto worst =
        std::max_element(live.begin() + begin, live.begin() + std::min(count, begin + stretch));
    if (worst - live.begin() > checks.back())
      checks.push_back(static_cast<int32_t>(worst - live.begin()));
  }
  return checks;
}

Lives MeasureLives(const Problem& problem, const Segments& segments) {
  return Measuring(problem, segments).Run();
}

}  // namespace spillway::scheduler::prices
