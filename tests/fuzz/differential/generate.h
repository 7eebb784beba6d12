// Makes a random CUDA program from a seed.
//
// Called once per seed, on one thread; pure. The list leaves the ordering out: order.h can complete
// any part of it that Keep returns into a well-defined program.
//
// Invariants
//  1. Every byte that an operation reads was written by an earlier one.
//  2. What it holds stays within limits.h.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "tests/fuzz/differential/operation.h"
#include "tests/fuzz/differential/shape.h"

namespace spillway::fuzz {

std::vector<Operation> Generate(std::uint64_t seed, const Shape& shape);

// Those operations whose origin is in `kept` and that still make sense without the others.
std::vector<Operation> Keep(const std::vector<Operation>& program, const std::set<int>& kept);

struct Size {
  std::uint64_t peak_bytes = 0;  // of living device buffers
  int live_buffers = 0;          // at the end
};
Size Measure(const std::vector<Operation>& program);

}  // namespace spillway::fuzz
