// Which networks on which devices the tables and curves compare.
//
// Constant; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/planner/modelled.h"

namespace spillway::papers {

struct Case {
  const char* network;
  const char* device;
  int64_t batch_size;
};

// Where every strategy is compared with Spillway's own.
const std::vector<Case>& ComparedCases();

// A row of AutoSwap's tables I and II.
struct AutoSwapCase {
  std::string network;
  int64_t iteration_ns = 0;  // with SmartPool
  double load_mb = 0, reduced_mb = 0;

  // On the 1080 Ti: durations scaled to the paper's iteration, the link so that the bytes it moves
  // in an iteration have the paper's ratio to the peak load. Memory in single bytes.
  Modelled Model() const;
};

std::vector<AutoSwapCase> AutoSwapCases();

}  // namespace spillway::papers
