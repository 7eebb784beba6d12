// All strategies by name. Thread-safe, never destroyed.
#pragma once

#include <string_view>
#include <vector>

#include "scheduler/plan/strategy.h"

namespace spillway::scheduler {

class ChoosingStrategy;

// In print order: the simplest first, Spillway's own last.
const std::vector<const Strategy*>& AllStrategies();

const std::vector<const ChoosingStrategy*>& PaperStrategies();

const Strategy* FindStrategy(std::string_view name);

inline constexpr std::string_view kDefaultStrategy = "spillway";

}  // namespace spillway::scheduler
