// Makes choices run with few changes where a rule exceeds the budget or its actions conflict. Pure.
//
// Steps, until the model says that the plan runs:
//   1. Where memory exceeds the budget, also swap out the buffers needed furthest in the future.
//   2. Start each prefetch only when its buffer is needed, so that none blocks another.
//   3. Evict every buffer while it is idle, and use the smallest workspaces.
#pragma once

#include <optional>

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

// Choices that run stay unchanged. Nullopt if even the last step fails.
std::optional<Choices> Repair(Workbench& bench, Choices choices);

}  // namespace spillway::scheduler
