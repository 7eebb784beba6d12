// What follows from the configuration and the machine, where the configuration does not say.
#pragma once

#include <cstdint>
#include <string>

#include "agent/config/config.h"
#include "agent/planning/plan_service.h"

namespace spillway::agent {

int64_t HostBytes(const Config& config);
std::string StatePathOf(const Config& config);  // empty: no file
std::string PlanStoreOf(const Config& config);  // likewise
PlanServiceRules PlanServiceRulesOf(const Config& config);

}  // namespace spillway::agent
