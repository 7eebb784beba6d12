// Which minibatch to train with: AccUDNN's tuner as a pure decider.
//
// From iterations at two or more batch sizes it learns how time and memory grow, and proposes the
// batch with the most samples per second within a budget, memory beyond the budget moving over the
// link; and the learning rate that belongs to it. Called by `spillway advise` and the agent, on any
// thread. (Guo et al., "AccUDNN", ICCD 2019. The learning rate grows in proportion to the batch,
// the rule that the paper's tuner starts from; its equation 9 was not at hand to check this
// against.)
//
// Invariants:
//   1. Nothing is proposed whose least memory, extrapolated, exceeds the budget.
//   2. Of equally fast batches the smallest is proposed: larger ones cost accuracy for nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

// One iteration as it was measured or modelled, with nothing moved.
struct BatchObservation {
  int64_t batch_size = 0;
  int64_t iteration_ns = 0;
  int64_t peak_bytes = 0;   // what it holds at most
  int64_t floor_bytes = 0;  // what it must hold at least: FindLowerBound().memory_bytes

  bool operator==(const BatchObservation&) const = default;
};

BatchObservation Observe(const Problem& problem);

struct AdviceRequest {
  std::vector<BatchObservation> observations;  // at two different batch sizes at least
  DeviceModel device;
  int64_t budget_bytes = 0;
  int64_t batch_step = 8;        // multiples of this are considered
  int64_t most_batch = 1 << 20;  // none larger
  int64_t base_batch = 0;  // for which the learning rate below was tuned; 0: the smallest observed
  int64_t learning_rate_nano = 0;  // in 1e-9; 0: none is given
};

struct Advice {
  int64_t batch_size = 0;
  int64_t iteration_ns = 0;               // predicted
  int64_t waiting_ns = 0;                 // of it, for the link
  int64_t moved_bytes = 0;                // each way
  int64_t most_batch_without_moving = 0;  // 0: not even the smallest fits
  int64_t most_batch = 0;                 // that fits at all
  int64_t learning_rate_nano = 0;         // 0: none was given

  bool operator==(const Advice&) const = default;
};

base::Result<Advice> Advise(const AdviceRequest& request);

}  // namespace spillway::scheduler
