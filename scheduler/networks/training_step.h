// One training iteration of a layer graph: forward, loss, backward, update, with the buffers that
// each operation touches.
//
// Called by whoever wants a profile of a known network, on any thread; pure. Durations come from a
// roofline over a device's figures: a model, labelled as such wherever it is printed.
//
// Conventions, those of common frameworks, one allocation per tensor:
//   1. Every layer allocates its output; batch and layer norm save two vectors, dropout a byte
//   mask.
//   2. Convolution and fully connected backward are two operations: weight gradient, then data
//   gradient.
//   3. Relu, gelu, dropout, softmax and LRN write their gradient in place of the incoming one,
//   where nobody else needs that.
//   4. Add passes its gradient on without a copy; a second consumer's gradient is accumulated in
//   place.
//   5. Parameters, optimizer state and the input persist; weight gradients live from backward to
//   the update.
//   6. Every forward operation is replayable: random ones draw from a counter that is among their
//   arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/networks/layer_graph.h"
#include "scheduler/trace/profile.h"

namespace spillway::scheduler::networks {

enum class UpdatePlace : uint8_t {
  kAtEnd,          // all updates after backward
  kAfterGradient,  // each as soon as its gradient is there and its parameters are no longer needed
};

struct Algorithm {
  const char* name;
  int64_t workspace_bytes;
  int32_t speed_percent;  // of implicit GEMM
};

struct OperationWork {
  int64_t flops = 0;
  int64_t moved_bytes = 0;
  std::vector<Algorithm> algorithms;  // convolutions only
};

// The profile's durations are zero until SetDurations().
struct TrainingStep {
  IterationProfile profile;
  std::vector<OperationWork> work;  // by operation
};

struct ComputeRates {
  int64_t flops_per_second = 0;
  int64_t memory_bytes_per_second = 0;
  int64_t launch_ns = 0;  // per operation
};

TrainingStep MakeTrainingStep(const LayerGraph& graph, UpdatePlace updates);

// Each operation takes the longer of its arithmetic and its memory traffic, plus a launch;
// algorithms divide the arithmetic.
void SetDurations(TrainingStep& step, const ComputeRates& rates);

// Multiplies all durations so that the iteration takes `iteration_ns`.
void ScaleDurations(IterationProfile& profile, int64_t iteration_ns);

}  // namespace spillway::scheduler::networks
