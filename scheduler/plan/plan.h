// A plan: which operations run in which order (some of them again), what moves after or before
// each, and where buffers lie.
//
// Made by strategies, priced by the cost model, checked by the validator, walked by the executor.
// Plain values; equal problems give equal plans, byte for byte.
//
// Meaning:
//   1. Steps without `recomputes` are the profile's operations, all of them, in order. Recomputing
//   steps lie between them and
//      run an operation a second time with the bytes it had the first time.
//   2. Actions are ordered by step; at one step, in the order of the list. Offload and drop happen
//   after their step, a prefetch
//      may start as soon as all steps before its own have ended.
//   3. The iteration repeats: a prefetch serves the next touch after its step, past the end of the
//   iteration if need be. A
//      persistent buffer starts the iteration where the plan leaves it at its end.
//   4. An original step brings its buffers to life (born) and ends them (dies), as in the profile.
//   A step that writes a buffer
//      that is away or dead, without reading it, gives it memory. What a recomputing step brought
//      back outside its lifetime must be dropped by an action.
//   5. In a live job only what is made again before it is touched, or has an unchanged host copy,
//   is dropped.
//   6. Of what is dropped only an unchanged host copy survives, and a prefetch can bring that back;
//   otherwise the content is gone
//      until a step writes it again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/trace/profile.h"

namespace spillway::scheduler {

struct Step {
  OperationId operation;
  bool recomputes = false;
  int32_t workspace = 0;  // index into the operation's workspaces; meaningless where it has none

  bool operator==(const Step&) const = default;
};

enum class ActionKind : uint8_t { kOffload, kPrefetch, kDrop };

// Why a strategy took an action; the explainer turns it into a sentence with the figures.
enum class Reason : uint8_t {
  kStrategyRule,    // the paper's rule asks for it
  kHidden,          // its copies fit behind computation
  kCheapestRelief,  // the most bytes x time relieved at the peak per time lost
  kRepair,          // without it the model found the budget exceeded or a deadlock
  kImprovement,     // local search: the model was faster with it
  kContentDead,     // the next touch overwrites it: nothing to keep
  kChainTemporary,  // only alive to recompute another buffer
};

struct Action {
  ActionKind kind = ActionKind::kOffload;
  BufferId buffer;
  int32_t step = 0;  // index into Plan::steps
  Reason reason = Reason::kStrategyRule;

  bool operator==(const Action&) const = default;
};

// Where a buffer lies while it is resident between two steps, both included; `until_step` <
// `from_step`: over the iteration's end.
struct Placement {
  BufferId buffer;
  int32_t from_step = 0;
  int32_t until_step = 0;
  int64_t offset_bytes = 0;

  bool operator==(const Placement&) const = default;
};

struct Plan {
  std::string strategy;
  std::vector<Step> steps;
  std::vector<Action> actions;
  std::vector<Placement> placements;  // empty: addresses are left to the pool
  int64_t arena_bytes = 0;            // height of the placements

  bool operator==(const Plan&) const = default;
};

// Everything stays: the profile's operations, no actions, smallest workspaces.
Plan PlanWithoutActions(const IterationProfile& profile);

}  // namespace spillway::scheduler
