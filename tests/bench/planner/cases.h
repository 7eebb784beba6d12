// The networks and devices that the tables and curves compare.
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

const std::vector<Case>& ComparedCases();

// A row of AutoSwap's tables I and II.
struct AutoSwapCase {
  std::string network;
  int64_t iteration_ns = 0;  // with SmartPool
  double load_mb = 0, reduced_mb = 0;

  // On the 1080 Ti. Durations are scaled to the paper's iteration. The link's rate gives the bytes
  // of an iteration the paper's ratio to the peak load. Memory in single bytes.
  Modelled Model() const;
};

std::vector<AutoSwapCase> AutoSwapCases();

}  // namespace spillway::papers
