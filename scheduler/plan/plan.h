// A plan: the order of operations and reruns, the moves before and after each, and addresses.
//
// Plain values; equal problems give equal plans, byte for byte.
//
// Meaning
//   1. Steps without `recomputes` are all operations of the profile in order. Recomputing steps
//      between them rerun an operation on the same bytes.
//   2. Actions are ordered by step, then by list position. Offloads and drops happen after their
//      step. A prefetch may start once all steps before its own have ended.
//   3. The iteration repeats: a prefetch serves the next touch after its step, possibly in the next
//      iteration. A persistent buffer starts where the plan leaves it at the end.
//   4. An original step creates and ends buffers (born, dies) as in the profile. A step that writes
//      an evicted or dead buffer without reading it gives it memory. A buffer recomputed outside
//      its lifetime must be dropped by an action.
//   5. A live job drops only buffers recomputed before their next touch, or with an unchanged host
//      copy.
//   6. After a drop, a prefetch can restore an unchanged host copy. Any other content is lost until
//      a step writes it again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/trace/profile.h"

namespace spillway::scheduler {

struct Step {
  OperationId operation;
  bool recomputes = false;
  int32_t workspace = 0;  // index into the operation's workspaces, if any

  bool operator==(const Step&) const = default;
};

enum class ActionKind : uint8_t { kOffload, kPrefetch, kDrop };

enum class Reason : uint8_t {
  kStrategyRule,    // a rule of the paper
  kHidden,          // its copies hide behind computation
  kCheapestRelief,  // most bytes x time relieved at the peak per time lost
  kRepair,          // without it, the model exceeds the budget or deadlocks
  kImprovement,     // local search: the model is faster with it
  kContentDead,     // the next touch overwrites the content
  kChainTemporary,  // only needed to recompute another buffer
};

struct Action {
  ActionKind kind = ActionKind::kOffload;
  BufferId buffer;
  int32_t step = 0;  // index into Plan::steps
  Reason reason = Reason::kStrategyRule;

  bool operator==(const Action&) const = default;
};

// A buffer's address from one step to another, both included. `until_step` < `from_step` means
// across the iteration's end.
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
  std::vector<Placement> placements;  // empty: the pool decides
  int64_t arena_bytes = 0;            // height of the placements

  bool operator==(const Plan&) const = default;
};

Plan PlanWithoutActions(const IterationProfile& profile);

}  // namespace spillway::scheduler
