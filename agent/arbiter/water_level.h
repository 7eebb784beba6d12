// Weighted max-min: how far each of several vessels is filled when one amount of water is poured
// over all of them.
//
// Pure; integers.
//
// Invariants
//  1. Nothing that was in a vessel leaves it, and none is filled beyond what it takes.
//  2. All that is poured is in the vessels afterwards, unless all are full.
//  3. Water stands at the same level per weight in all that could have more or less; what is less
//  than one unit per weight goes in order.
#pragma once

#include <cstdint>
#include <span>

namespace spillway::agent {

struct Vessel {
  int64_t has = 0;
  int64_t takes = 0;   // at most, with what it has
  int64_t weight = 1;  // positive
};

// Returns what is left of `amount`.
int64_t Pour(int64_t amount, std::span<Vessel> vessels);

}  // namespace spillway::agent
