// Makes a random CUDA program from a seed: what is allocated, computed, copied and freed, on which streams and threads.
//
// Called once per seed, on one thread; pure. The list leaves the ordering out (see order.h): any part of it that still
// stands on its own (see Keep) can be completed into a well-defined program.
//
// Invariants
//  1. Every byte that an operation reads was written by an earlier one.
//  2. The device buffers that one operation names, decoys and its object's too, are at most kWidestOperationBytes, each rounded up to 2 MiB,
//     those below 1 MiB together kSmallTotalBytes, and those in the second context kSecondContextBytes: the least budget that a program can need stays small and known.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "tests/fuzz/differential/operation.h"
#include "tests/fuzz/differential/shape.h"

namespace spillway::fuzz {

inline constexpr std::uint64_t kWidestOperationBytes = 32ull << 20;
inline constexpr std::uint64_t kSmallTotalBytes = 6ull << 20;  // of living buffers below 1 MiB
// Of living buffers in the second context, each rounded up: memory there may be of the kind that never moves.
inline constexpr std::uint64_t kSecondContextBytes = 16ull << 20;

std::vector<Operation> Generate(std::uint64_t seed, const Shape& shape);

// Those operations of `program` whose origin is in `kept` and that still make sense without the others.
std::vector<Operation> Keep(const std::vector<Operation>& program, const std::set<int>& kept);

struct Size {
  std::uint64_t peak_bytes = 0;  // of living device buffers
  int live_buffers = 0;          // at the end
};
Size Measure(const std::vector<Operation>& program);

}  // namespace spillway::fuzz
