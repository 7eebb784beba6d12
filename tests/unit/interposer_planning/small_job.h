// A job that is small enough to follow by hand: weights, and activations that a forward pass makes
// and a backward pass uses up in the opposite order. What is told of it to a recorder, and the
// pattern of one of its iterations.
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
inline constexpr std::uint64_t kWeights = 1;  // their allocation

// What its device can do: an activation moves in the time of some operations.
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

  // Each layer allocates its activation, and a kernel of its own reads the one before; backward
  // frees them.
  void RunIteration();
  void RunForeignKernel();

  std::int64_t unused_bytes = 0;  // it asks for so much less, which occupies the same
  bool changes_weights =
      true;  // in the backward pass: then no operation of the forward pass can run again

 private:
  void Launch(std::uint64_t shape, std::initializer_list<RecordedTouch> touches);

  Recorder* const recorder_;
  std::uint64_t next_allocation_ = kWeights + 1;
};

// One iteration, as the learner would give it, with durations.
scheduler::IterationPattern SmallPattern();
// With a plan that moves nothing.
StoredPlan SmallStoredPlan();

}  // namespace spillway::interposer
