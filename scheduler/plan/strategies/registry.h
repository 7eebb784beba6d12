// Every strategy by name: the papers' and Spillway's own.
//
// Called by whoever lets a user choose (`--strategy`) and by those who compare. Strategies live as
// long as the program and may be used by several threads at once.
#pragma once

#include <string_view>
#include <vector>

#include "scheduler/plan/strategy.h"

namespace spillway::scheduler {

class ChoosingStrategy;

// In the order in which they are printed: the simplest first, Spillway's own last.
const std::vector<const Strategy*>& AllStrategies();

// All of them but Spillway's own.
const std::vector<const ChoosingStrategy*>& PaperStrategies();

// Null when there is no strategy of this name.
const Strategy* FindStrategy(std::string_view name);

// The name of the strategy that is used when nobody asks for another.
inline constexpr std::string_view kDefaultStrategy = "spillway";

}  // namespace spillway::scheduler
