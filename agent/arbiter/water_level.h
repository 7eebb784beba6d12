// Weighted max-min division: how full each of several vessels is after one amount of water is
// poured over all of them.
//
// Invariants
//  1. No vessel loses water, and none is filled beyond what it takes.
//  2. All water is in the vessels afterwards, unless all are full.
//  3. The level per weight is equal in all vessels that could have more or less. A rest of less
//     than one unit per weight goes in order.
#pragma once

#include <cstdint>
#include <span>

namespace spillway::agent {

struct Vessel {
  int64_t has = 0;
  int64_t takes = 0;   // the most it holds, `has` included
  int64_t weight = 1;  // positive
};

// Returns the rest of `amount`.
int64_t Pour(int64_t amount, std::span<Vessel> vessels);

}  // namespace spillway::agent
