// Random iterations with every feature of profiles, and random decisions for them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "scheduler/plan/decisions.h"
#include "tests/unit/scheduler/make_profile.h"

namespace spillway::scheduler::testing {

// Straight from the generator, because standard distributions differ between libraries.
class Dice {
 public:
  explicit Dice(uint64_t seed) : bits_(seed) {}
  int64_t Roll(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int percent) { return Roll(1, 100) <= percent; }

 private:
  std::mt19937_64 bits_;
};

// Programs free some buffers some time after their last use. Some buffers continue into the next
// iteration.
inline void DelaySomeDeaths(Dice& dice, IterationProfile& profile) {
  const auto last = static_cast<int32_t>(profile.operations.size()) - 1;
  for (Buffer& buffer : profile.buffers) {
    if (buffer.persistent || dice.Chance(70)) continue;
    buffer.dies.index = static_cast<int32_t>(dice.Roll(buffer.dies.index, last));
    buffer.handed_on = buffer.dies.index == last && dice.Chance(30);
  }
}

// A random operation writes each buffer first; later ones use existing buffers.
inline IterationProfile RandomProfile(Dice& dice) {
  const auto operation_count = static_cast<int32_t>(dice.Roll(2, 30));
  const auto persistent_count = static_cast<int32_t>(dice.Roll(0, 4));
  std::vector<Buffer> buffers;
  for (int32_t i = 0; i < persistent_count; ++i) {
    buffers.push_back(Persistent("p" + std::to_string(i), dice.Roll(1, 200),
                                 dice.Chance(20) ? BufferKind::kInput : BufferKind::kParameter));
  }
  std::vector<Operation> operations;
  for (int32_t i = 0; i < operation_count; ++i) {
    Operation it =
        MakeOperation("o" + std::to_string(i), dice.Roll(0, 100), {}, {}, dice.Chance(80));
    for (int64_t reads = dice.Roll(0, 3); reads > 0 && !buffers.empty(); --reads) {
      const BufferId id{
          static_cast<int32_t>(dice.Roll(0, static_cast<int64_t>(buffers.size()) - 1))};
      if (std::find(it.reads.begin(), it.reads.end(), id) == it.reads.end()) it.reads.push_back(id);
    }
    if (dice.Chance(25) && !buffers.empty())
      it.writes.push_back(
          {static_cast<int32_t>(dice.Roll(0, static_cast<int64_t>(buffers.size()) - 1))});
    for (int64_t made = dice.Roll(0, 2); made > 0; --made) {
      it.writes.push_back({static_cast<int32_t>(buffers.size())});
      buffers.push_back(Temporary("t" + std::to_string(buffers.size()), dice.Roll(1, 200)));
      buffers.back().movable = dice.Chance(90);
    }
    if (dice.Chance(30))
      it.workspaces = {{"none", 0, it.duration_ns},
                       {"some", dice.Roll(1, 100), it.duration_ns / 2}};
    operations.push_back(std::move(it));
  }
  if (buffers.empty()) buffers.push_back(Persistent("p", 10));
  IterationProfile profile = ProfileOf(std::move(buffers), std::move(operations));
  DelaySomeDeaths(dice, profile);
  return profile;
}

inline MappingPrices RandomPrices(Dice dice) {
  if (dice.Chance(50)) return {};
  return {dice.Roll(0, 3), dice.Roll(0, 40), dice.Roll(0, 30), 64 * dice.Roll(0, 2)};
}

inline Problem RandomProblem(Dice& dice, const IterationProfile& profile) {
  Problem problem;
  problem.profile = &profile;
  DeviceModel& device = problem.device;
  device.to_host_bytes_per_second = dice.Roll(1, 5) * 1'000'000'000;
  device.to_device_bytes_per_second = dice.Roll(1, 5) * 1'000'000'000;
  device.to_host_both_bytes_per_second = device.to_host_bytes_per_second * dice.Roll(5, 10) / 10;
  device.to_device_both_bytes_per_second =
      device.to_device_bytes_per_second * dice.Roll(5, 10) / 10;
  device.copy_latency_ns = dice.Roll(0, 20);
  device.launch_ns = dice.Roll(0, 10);
  device.chunk_bytes = dice.Chance(50) ? 1 : 64;
  device.link_share_permille = static_cast<int32_t>(dice.Roll(200, 1000));
  problem.min_movable_bytes = dice.Roll(1, 50);
  problem.budget_bytes = std::max<int64_t>(1, PeakBytes(profile) * dice.Roll(60, 140) / 100);
  problem.seed = static_cast<uint64_t>(dice.Roll(1, 1'000'000));
  device.mapping = RandomPrices(Dice(problem.seed));
  return problem;
}

inline std::vector<Decision> RandomDecisions(Dice& dice,
                                             const std::vector<IdleInterval>& intervals) {
  std::vector<Decision> decisions;
  for (size_t i = 0; i < intervals.size(); ++i) {
    Decision decision;
    decision.interval = static_cast<int32_t>(i);
    decision.treatment = static_cast<Treatment>(dice.Roll(0, 2));
    decision.keep_when_rebuilt = dice.Chance(50);
    const IdleInterval& interval = intervals[i];
    if (dice.Chance(50) && !interval.wraps)
      decision.prefetch_at = {
          static_cast<int32_t>(dice.Roll(interval.from.index + 1, interval.to.index))};
    decisions.push_back(decision);
  }
  return decisions;
}

}  // namespace spillway::scheduler::testing
