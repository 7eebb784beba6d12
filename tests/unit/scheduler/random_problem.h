// Random iterations with everything that profiles can hold, and random decisions about them; equal seeds, equal problems.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "scheduler/plan/decisions.h"
#include "tests/unit/scheduler/make_profile.h"

namespace spillway::scheduler::testing {

// Numbers in [low, high] straight from the generator: distributions of the standard library differ between libraries.
class Dice {
 public:
  explicit Dice(uint64_t seed) : bits_(seed) {}
  int64_t roll(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return roll(1, 100) <= percent; }

 private:
  std::mt19937_64 bits_;
};

// Buffers are written by a random operation first; later operations read, overwrite or change what exists by then.
inline IterationProfile random_profile(Dice& dice) {
  const auto operation_count = static_cast<int32_t>(dice.roll(2, 30));
  const auto persistent_count = static_cast<int32_t>(dice.roll(0, 4));
  std::vector<Buffer> buffers;
  for (int32_t i = 0; i < persistent_count; ++i) {
    buffers.push_back(persistent("p" + std::to_string(i), dice.roll(1, 200),
                                 dice.chance(20) ? BufferKind::kInput : BufferKind::kParameter));
  }
  std::vector<Operation> operations;
  for (int32_t i = 0; i < operation_count; ++i) {
    Operation it = operation("o" + std::to_string(i), dice.roll(0, 100), {}, {}, dice.chance(80));
    for (int64_t reads = dice.roll(0, 3); reads > 0 && !buffers.empty(); --reads) {
      const BufferId id{static_cast<int32_t>(dice.roll(0, static_cast<int64_t>(buffers.size()) - 1))};
      if (std::find(it.reads.begin(), it.reads.end(), id) == it.reads.end()) it.reads.push_back(id);
    }
    if (dice.chance(25) && !buffers.empty())
      it.writes.push_back({static_cast<int32_t>(dice.roll(0, static_cast<int64_t>(buffers.size()) - 1))});
    for (int64_t made = dice.roll(0, 2); made > 0; --made) {
      it.writes.push_back({static_cast<int32_t>(buffers.size())});
      buffers.push_back(temporary("t" + std::to_string(buffers.size()), dice.roll(1, 200)));
      buffers.back().movable = dice.chance(90);
    }
    if (dice.chance(30))
      it.workspaces = {{"none", 0, it.duration_ns}, {"some", dice.roll(1, 100), it.duration_ns / 2}};
    operations.push_back(std::move(it));
  }
  if (buffers.empty()) buffers.push_back(persistent("p", 10));
  return profile_of(std::move(buffers), std::move(operations));
}

inline Problem random_problem(Dice& dice, const IterationProfile& profile) {
  Problem problem;
  problem.profile = &profile;
  DeviceModel& device = problem.device;
  device.to_host_bytes_per_second = dice.roll(1, 5) * 1'000'000'000;
  device.to_device_bytes_per_second = dice.roll(1, 5) * 1'000'000'000;
  device.to_host_both_bytes_per_second = device.to_host_bytes_per_second * dice.roll(5, 10) / 10;
  device.to_device_both_bytes_per_second = device.to_device_bytes_per_second * dice.roll(5, 10) / 10;
  device.copy_latency_ns = dice.roll(0, 20);
  device.launch_ns = dice.roll(0, 10);
  device.chunk_bytes = dice.chance(50) ? 1 : 64;
  device.link_share_permille = static_cast<int32_t>(dice.roll(200, 1000));
  problem.min_movable_bytes = dice.roll(1, 50);
  problem.budget_bytes = std::max<int64_t>(1, peak_bytes(profile) * dice.roll(60, 140) / 100);
  problem.seed = static_cast<uint64_t>(dice.roll(1, 1'000'000));
  return problem;
}

inline std::vector<Decision> random_decisions(Dice& dice, const std::vector<IdleInterval>& intervals) {
  std::vector<Decision> decisions;
  for (size_t i = 0; i < intervals.size(); ++i) {
    Decision decision;
    decision.interval = static_cast<int32_t>(i);
    decision.treatment = static_cast<Treatment>(dice.roll(0, 2));
    decision.keep_when_rebuilt = dice.chance(50);
    const IdleInterval& interval = intervals[i];
    if (dice.chance(50) && !interval.wraps)
      decision.prefetch_at = {static_cast<int32_t>(dice.roll(interval.from.index + 1, interval.to.index))};
    decisions.push_back(decision);
  }
  return decisions;
}

}  // namespace spillway::scheduler::testing
