// The options of spillway-plan's commands. Their parser is CLI11 in cli/planner/main.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "cli/options/option.h"

namespace spillway::cli {

// Empty for another command.
std::vector<Option> PlannerOptionList(std::string_view command);

}  // namespace spillway::cli
