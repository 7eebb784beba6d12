// Builds choices that keep the load within a target, by the most relief above it per cost.
//
// Each round takes the best swaps and recomputations for the load still above the target. A swap
// hidden behind computation is nearly free; a recomputation costs its chain, unless another chain
// rebuilds the buffer anyway. Then everything is evaluated anew. In the end superfluous choices are
// removed.
//
// Sees memory without waits; only the cost model knows whether the result runs well.
#pragma once

#include <optional>

#include "scheduler/plan/strategies/workbench.h"
#include "scheduler/plan/swap_schedule.h"

namespace spillway::scheduler {

// The former fits if the mapping calls hide behind the device, the latter if the host is the
// bottleneck.
enum class SwapCosts { kCopies, kCopiesAndCalls };

struct ReliefOptions {
  int64_t target_bytes = 0;
  bool swaps = true;
  bool recomputes = true;
  SwapSchedule::Waits waits = SwapSchedule::Waits::kNever;  // of computation for copies
  // A nanosecond of copying costs this many times less than one of recomputation.
  int64_t copy_discount = 64;
  SwapCosts swap_costs = SwapCosts::kCopies;
};

struct Sketch {
  // By operation: its chain, plus its algorithm's time over the smallest workspace's.
  std::vector<int64_t> extra_ns;
  std::vector<int64_t> load_bytes;  // by operation, with chains but without swaps
  // By buffer: the first operation whose chain rebuilds it temporarily, or -1.
  std::vector<int32_t> rebuilt_at;
  int64_t recompute_ns = 0;
};

Sketch MakeSketch(const Workbench& bench, const Choices& choices);

// By operation, with its chain. Each swapped buffer comes back when it is needed; a chain that
// reads it may need it early.
std::vector<int64_t> LoadsOnDemand(const Workbench& bench, Choices choices);

// `choices` may be empty or another strategy's. If the target needs waits, continues as if they
// were allowed. Nullopt: out of reach.
std::optional<Choices> Relieve(const Workbench& bench, ReliefOptions options, Choices choices);

// By backward scheduling from each interval's end, or later if its memory is not free yet.
// Prefetches start in the order of need.
void SetTriggers(const Workbench& bench, Choices& choices);

}  // namespace spillway::scheduler
