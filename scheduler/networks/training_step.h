// One training iteration of a layer graph, with its buffers. Durations come from a roofline over a
// device's figures; callers label them as modelled.
//
// Conventions of common frameworks, with one allocation per tensor:
//   1. Every layer allocates its output; normalisations save two vectors, dropout a byte mask.
//   2. Backward of convolution and fully connected: first the weight gradient, then the data
//      gradient.
//   3. Relu, gelu, dropout, softmax and LRN overwrite an incoming gradient that no other layer
//      needs.
//   4. Add passes its gradient on without a copy; a second consumer's gradient accumulates in
//      place.
//   5. Parameters, optimizer state and input persist; weight gradients live from backward to
//      update.
//   6. Every forward operation is replayable: random ones take a counter as an argument.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/networks/layer_graph.h"
#include "scheduler/trace/profile.h"

namespace spillway::scheduler::networks {

enum class UpdatePlace : uint8_t {
  kAtEnd,          // after backward
  kAfterGradient,  // once the gradient exists and its parameters are no longer needed
};

struct Algorithm {
  const char* name;
  int64_t workspace_bytes;
  int32_t speed_percent;  // of implicit GEMM
};

struct OperationWork {
  int64_t flops = 0;
  int64_t moved_bytes = 0;
  std::vector<Algorithm> algorithms;
};

struct TrainingStep {
  IterationProfile profile;
  std::vector<OperationWork> work;
};

struct ComputeRates {
  int64_t flops_per_second = 0;
  int64_t memory_bytes_per_second = 0;
  int64_t launch_ns = 0;
};

TrainingStep MakeTrainingStep(const LayerGraph& graph, UpdatePlace updates);

// The longer of arithmetic and memory traffic, plus a launch. Algorithms divide the arithmetic.
void SetDurations(TrainingStep& step, const ComputeRates& rates);

}  // namespace spillway::scheduler::networks
