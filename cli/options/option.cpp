#include "cli/options/option.h"

#include "scheduler/plan/strategies/registry.h"

namespace spillway::cli {

std::string StrategyNames() {
  std::vector<std::string> names;
  for (const scheduler::Strategy* strategy : scheduler::AllStrategies())
    names.emplace_back(strategy->name());
  return Joined(names);
}

}  // namespace spillway::cli
