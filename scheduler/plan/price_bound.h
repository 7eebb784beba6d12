// A lower bound of every plan's time by prices: what memory and the link are worth at each moment
// of the iteration.
//
// Called by the lower bound, on any thread; pure and deterministic.
//
// The budget at chosen operations and the link's capacity in the stretches between them are taken
// out of the problem and paid for instead: per byte held, per byte copied out, per byte copied
// back. Given prices, each buffer has its own cheapest way through the iteration (stay, leave and
// come back, be made again), each operation its own cheapest workspace, and their sum is below
// every plan's time *whatever the prices are* (weak duality of Lagrange's relaxation). Ascent along
// the violated constraints finds prices under which it is high. Unlike the bound at a single
// operation it sees that links and memory are short all along.
//
// Never above the optimum: buffers share moments as if split at will, and parents of what is made
// again that are merely away cost nothing.
#pragma once

#include <cstdint>

#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

struct PriceSearch {
  int32_t most_checks = 64;  // operations at which memory has a price
  int32_t rounds = 300;      // of ascent; each walks every buffer's life once
};

// The profile must pass CheckProfile() and some plan must be possible.
int64_t BoundByPrices(const Problem& problem, const PriceSearch& search);

}  // namespace spillway::scheduler
