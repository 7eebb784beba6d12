// Prints the papers' figures beside ours, and fails when a required row does not hold.
#include <cstdio>
#include <string_view>
#include <vector>

#include "tests/bench/planner/curves.h"
#include "tests/bench/planner/figures.h"

namespace spillway::papers {
namespace {

constexpr const char* kUsage =
    "spillway-papers [--quick] [SECTION ...]   the sections' tables; all when none is named. Exit "
    "code 1: a "
    "row fails\n"
    "spillway-papers [--quick] curves FOLDER [NETWORK ...]   every strategy's slow-down over the "
    "budget, one "
    "SVG per "
    "network, and a CSV\n"
    "spillway-papers draw-workspaces FOLDER   convolutions' time over their workspace, as SVG\n"
    "--quick: a few rows of each. Sections:";

constexpr struct {
  std::string_view name;
  void (*print)(Effort, Verdicts&);
} kSections[] = {
    {"minimalloc", PrintMinimalloc}, {"smartpool", PrintSmartPool},
    {"autoswap", PrintAutoSwap},     {"superneurons", PrintSuperNeurons},
    {"reach", PrintReach},           {"accudnn", PrintAccUdnn},
    {"delta", PrintDelta},           {"hybrid", PrintHybrid},
    {"strategies", PrintStrategies}, {"time", PrintPlanningTime},
    {"live", PrintLiveTime},         {"workspaces", PrintWorkspaces},
};

int PrintUsage() {
  std::fprintf(stderr, "%s", kUsage);
  for (const auto& section : kSections) std::fprintf(stderr, " %s", section.name.data());
  std::fprintf(stderr, "\n");
  return 2;
}

bool IsSection(std::string_view name) {
  for (const auto& section : kSections) {
    if (section.name == name) return true;
  }
  return false;
}

bool Contains(const std::vector<std::string_view>& names, std::string_view name) {
  for (const std::string_view it : names) {
    if (it == name) return true;
  }
  return false;
}

int PrintSections(const std::vector<std::string_view>& names, Effort effort) {
  Verdicts verdicts;
  for (const auto& section : kSections) {
    if (!names.empty() && !Contains(names, section.name)) continue;
    const double start_ms = ElapsedMs(0);
    section.print(effort, verdicts);
    std::printf("(%s: %.1f s)\n", section.name.data(), ElapsedMs(start_ms) / 1000);
    std::fflush(stdout);
  }
  verdicts.Print();
  return verdicts.all_hold() ? 0 : 1;
}

int Run(int count, char** arguments) {
  Effort effort;
  std::vector<std::string_view> words;
  for (int i = 1; i < count; ++i) {
    if (std::string_view(arguments[i]) == "--quick")
      effort.quick = true;
    else
      words.emplace_back(arguments[i]);
  }
  if (words.size() >= 2 && words[0] == "curves")
    return DrawCurves(std::string(words[1]), {words.begin() + 2, words.end()}, effort) ? 0 : 1;
  if (words.size() == 2 && words[0] == "draw-workspaces")
    return DrawWorkspaces(std::string(words[1])) ? 0 : 1;
  for (const std::string_view word : words) {
    if (!IsSection(word)) return PrintUsage();
  }
  return PrintSections(words, effort);
}

}  // namespace
}  // namespace spillway::papers

int main(int count, char** arguments) { return spillway::papers::Run(count, arguments); }
