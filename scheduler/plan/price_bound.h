// A lower bound on every plan's time, by prices for memory and link time. Pure; any thread.
//
// The budget at chosen operations and the link's capacity between them become prices: per byte
// held, copied out and copied back. Each buffer has a cheapest way through the iteration (stay,
// swap or recompute) and each operation a cheapest workspace. Their sum is below every plan's time
// *for any prices* (weak duality of the Lagrangian relaxation). Ascent along the violated
// constraints raises it. Unlike the bound at one operation, it sees scarcity throughout.
//
// It never exceeds the optimum: buffers may be split at will, and merely evicted inputs of a
// recomputation cost nothing.
#pragma once

#include <cstdint>

#include "scheduler/plan/problem.h"

namespace spillway::scheduler {

struct PriceSearch {
  int32_t most_checks = 64;  // operations with a price for memory
  int32_t rounds = 300;      // of ascent; each walks every buffer's life once
};

// Requires a profile that passes CheckProfile(), and some feasible plan.
int64_t BoundByPrices(const Problem& problem, const PriceSearch& search);

}  // namespace spillway::scheduler
