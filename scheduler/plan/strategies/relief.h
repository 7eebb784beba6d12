// Builds choices that keep the load within a target: what relieves the most above it, for the
// longest, per time it costs.
//
// One round after another it looks at what is still above the target, and takes the swaps and
// recomputations with the best relief per cost. A swap that the link can hide is nearly free; a
// recomputation costs its chain; one that another chain rebuilds on its way anyway is nearly free
// too. After each round everything is evaluated anew: the chains as they will be lowered, the link
// as swaps share it. At the end, what has become superfluous is given up again.
//
// Used by Spillway's own strategy only. Works on memory as SwapSchedule and InstantLoads see it,
// without waits: whether the result runs well is the cost model's to say.
#pragma once

#include <optional>

#include "scheduler/plan/strategies/workbench.h"
#include "scheduler/plan/swap_schedule.h"

namespace spillway::scheduler {

// What a swap is taken to cost: its copy to the host, or also the calls that unmap and map its
// memory. The first is right where these hide behind the device, the second where the host is what
// takes the time; which holds is known only of the whole plan.
enum class SwapCosts { kCopies, kCopiesAndCalls };

struct ReliefOptions {
  int64_t target_bytes = 0;  // loads are brought to this or below
  bool swaps = true;
  bool recomputes = true;
  SwapSchedule::Waits waits = SwapSchedule::Waits::kNever;  // may computation wait for copies?
  // How much cheaper a nanosecond of copying is than one of recomputation.
  int64_t copy_discount = 64;
  SwapCosts swap_costs = SwapCosts::kCopies;
};

// What choices do to memory and time when nothing waits.
struct Sketch {
  std::vector<int64_t> extra_ns;    // by operation: its chain before it, and its algorithm against
                                    // the smallest workspace's
  std::vector<int64_t> load_bytes;  // by operation, chains included, swaps not taken into account
  std::vector<int32_t> rebuilt_at;  // by buffer: the first operation whose chain rebuilds it only
                                    // to drop it again; or -1
  int64_t recompute_ns = 0;
};

Sketch MakeSketch(const Workbench& bench, const Choices& choices);

// Starts from `choices`, which may be empty or another strategy's. Where the target cannot be
// reached without waiting, it goes on as if waiting were allowed. Nothing when it cannot be reached
// this way either.
std::optional<Choices> Relieve(const Workbench& bench, ReliefOptions options, Choices choices);

// Gives each swap the trigger at which its copy, scheduled backwards from the end of its interval,
// has to start; later, where its memory would not be free by then. Prefetches start in the order in
// which they are needed.
void SetTriggers(const Workbench& bench, Choices& choices);

}  // namespace spillway::scheduler
