// Makes of a random program one that iterates, as training does: what it begins with stays, the
// rest is an iteration.
//
// Called once per program, on one thread; pure.
//
// Invariants
//  1. An iteration frees what it allocated; buffers have another number in each, streams and
//     pools are those of the beginning.
//  2. From the second iteration of a pattern on, all of them are the same but for those numbers.
//  3. What the beginning holds and an iteration allocates stay within limits.h together: an
//     allocation beyond is left out, and its uses.
#pragma once

#include <vector>

#include "tests/fuzz/differential/operation.h"
#include "tests/fuzz/differential/shape.h"

namespace spillway::fuzz {

struct Repetition {
  int iterations = 0;  // 0: the program as it is
  int patterns = 1;    // iterations of so many kinds
  int run_length = 3;  // iterations of one kind in a row
};

std::vector<Operation> Repeat(const std::vector<Operation>& program, const Shape& shape,
                              const Repetition& repetition);

}  // namespace spillway::fuzz
