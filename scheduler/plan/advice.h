// Proposes a minibatch size and a learning rate: AccUDNN's tuner as a pure decider.
//
// It extrapolates time and memory from iterations at several batch sizes. It proposes the batch
// with the most samples per second within a budget; memory beyond the budget moves over the link.
// The smallest of equally fast batches wins, as larger ones only cost accuracy.
//
// Guo et al., "AccUDNN", ICCD 2019. The learning rate grows in proportion to the batch, where the
// paper's tuner starts; its equation 9 was not at hand.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

// One iteration, measured or modelled, with everything resident.
struct BatchObservation {
  int64_t batch_size = 0;
  int64_t iteration_ns = 0;
  int64_t peak_bytes = 0;
  int64_t floor_bytes = 0;  // FindLowerBound().memory_bytes

  bool operator==(const BatchObservation&) const = default;
};

BatchObservation Observe(const Problem& problem);

struct AdviceRequest {
  std::vector<BatchObservation> observations;  // of at least two batch sizes
  DeviceModel device;
  int64_t budget_bytes = 0;
  int64_t batch_step = 8;
  int64_t most_batch = 1 << 20;
  int64_t base_batch = 0;          // where the learning rate was tuned; 0: the smallest observed
  int64_t learning_rate_nano = 0;  // in 1e-9; 0: none
};

struct Advice {
  int64_t batch_size = 0;
  int64_t iteration_ns = 0;
  int64_t waiting_ns = 0;                 // part of it: waits for the link
  int64_t moved_bytes = 0;                // each way
  int64_t most_batch_without_moving = 0;  // 0: even the smallest batch moves
  int64_t most_batch = 0;                 // that fits at all
  int64_t learning_rate_nano = 0;         // 0: none

  bool operator==(const Advice&) const = default;
};

base::Result<Advice> Advise(const AdviceRequest& request);

}  // namespace spillway::scheduler
