// spillway-papers: prints the papers' figures beside ours. Arguments name sections; none means all. --quick: a few rows of each.
#include <cstdio>
#include <cstring>
#include <string_view>

#include "tests/bench/planner/figures.h"

namespace spillway::papers {
namespace {

constexpr struct {
  std::string_view name;
  void (*print)(Effort);
} kSections[] = {
    {"minimalloc", PrintMinimalloc},     {"autoswap", PrintAutoSwap}, {"smartpool", PrintSmartPool},
    {"superneurons", PrintSuperNeurons}, {"reach", PrintReach},       {"hybrid", PrintHybrid},
    {"strategies", PrintStrategies},     {"time", PrintPlanningTime},
};

bool IsSection(std::string_view name) {
  for (const auto& section : kSections) {
    if (section.name == name) return true;
  }
  return false;
}

int Run(int count, char** arguments) {
  Effort effort;
  bool all = true;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--quick") == 0) {
      effort.quick = true;
    } else if (IsSection(arguments[i])) {
      all = false;
    } else {
      std::fprintf(stderr, "no section '%s'\n", arguments[i]);
      return 2;
    }
  }
  for (const auto& section : kSections) {
    bool wanted = all;
    for (int i = 1; i < count; ++i) wanted = wanted || section.name == arguments[i];
    if (wanted) section.print(effort);
  }
  return 0;
}

}  // namespace
}  // namespace spillway::papers

int main(int count, char** arguments) { return spillway::papers::Run(count, arguments); }
