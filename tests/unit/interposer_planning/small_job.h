// A job small enough to follow by hand. A forward pass makes activations from weights; a backward
// pass uses them in the opposite order.
#pragma once

#include <cstdint>
#include <memory>

#include "interposer/record/recorder.h"
#include "scheduler/learn/iteration_pattern.h"
#include "scheduler/plan/plan_codec.h"
#include "scheduler/plan/problem.h"

namespace spillway::interposer {

using scheduler::StoredPlan;

inline constexpr int kLayers = 6;
inline constexpr std::int64_t kActivationBytes = std::int64_t{64} << 20;
inline constexpr std::int64_t kWeightsBytes = std::int64_t{16} << 20;
inline constexpr std::int64_t kPeakBytes = kLayers * kActivationBytes + kWeightsBytes;
inline constexpr std::int64_t kOperationNs = 10'000'000;
inline constexpr std::uint64_t kWeights = 1;  // the weights' allocation

// The device's speed: an activation moves in the time of some operations.
inline constexpr scheduler::DeviceModel kSmallDevice{
    .to_host_bytes_per_second = 20'000'000'000,
    .to_device_bytes_per_second = 20'000'000'000,
    .to_host_both_bytes_per_second = 20'000'000'000,
    .to_device_both_bytes_per_second = 20'000'000'000,
    .copy_latency_ns = 1'000,
    .launch_ns = 1'000,
    .chunk_bytes = std::int64_t{2} << 20};

class SmallJob {
 public:
  explicit SmallJob(Recorder* recorder) : recorder_(recorder) {}

  // Each layer allocates its activation, and its kernel reads the previous one; backward frees
  // them.
  void RunIteration();
  void RunForeignKernel();

  std::int64_t unused_bytes = 0;  // requested bytes are so much fewer, in the same granules
  bool changes_weights = true;  // in the backward pass; then no forward operation can be recomputed

 private:
  void Launch(std::uint64_t shape, std::initializer_list<RecordedTouch> touches);

  Recorder* const recorder_;
  std::uint64_t next_allocation_ = kWeights + 1;
};

// One iteration with durations, as the learner would return it.
scheduler::IterationPattern SmallPattern();
// With a plan that moves nothing.
StoredPlan SmallStoredPlan();

}  // namespace spillway::interposer
