#include "cli/planner/plan_command.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/size_text.h"
#include "base/units.h"
#include "cli/failure.h"
#include "cli/planner/curve_picture.h"
#include "cli/planner/plan_pictures.h"
#include "cli/planner/profile_source.h"
#include "scheduler/plan/lower_bound.h"
#include "scheduler/plan/placing.h"
#include "scheduler/plan/plan_explainer.h"
#include "scheduler/plan/plan_validator.h"
#include "scheduler/plan/strategies/registry.h"

namespace spillway::cli {
namespace {

constexpr int64_t kPlacingNodes = 0;  // exact placement takes minutes for a network

using namespace scheduler;
using Json = nlohmann::ordered_json;

struct Result {
  const Strategy* strategy = nullptr;
  StrategyOutcome outcome;
  Prediction prediction;
  Timeline timeline;
  std::string fault;  // empty: none

  bool good() const { return outcome.plan && prediction.runs() && fault.empty(); }
};

Result Judge(const Strategy& strategy, const Problem& problem, bool repair = false) {
  Result result;
  result.strategy = &strategy;
  result.outcome = repair ? strategy.MakeRunnablePlan(problem) : strategy.MakePlan(problem);
  if (!result.outcome.plan) return result;
  const Plan& plan = *result.outcome.plan;
  if (const auto offence = ValidatePlan(problem, plan)) {
    result.fault = offence->what;
    return result;
  }
  result.prediction = CostModel(problem).Predict(plan, &result.timeline);
  if (!result.prediction.runs()) return result;
  if (const auto offence = ValidateTimeline(problem, plan, result.timeline))
    result.fault = offence->what;
  return result;
}

void Place(const Problem& problem, Result& result) {
  if (!result.good()) return;
  PlaceBuffers(problem, result.timeline, kPlacingNodes, *result.outcome.plan);
  if (const auto offence = ValidatePlacements(problem, *result.outcome.plan, result.timeline))
    result.fault = offence->what;
}

double Milliseconds(int64_t nanos) { return static_cast<double>(nanos) / 1e6; }
double Percent(int64_t value, int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(value - whole) / static_cast<double>(whole) : 0;
}
std::string Bytes(int64_t bytes) {
  return base::FormatBytes(static_cast<uint64_t>(std::max<int64_t>(0, bytes)));
}

// The fastest workspaces, and nothing moves.
int64_t UnlimitedTime(Problem problem) {
  problem.budget_bytes = kMostBytes;
  return FindLowerBound(problem).iteration_ns;
}

std::string WhyBad(const Result& result) {
  if (!result.outcome.plan) return "no plan: " + result.outcome.plan.text();
  if (!result.fault.empty()) return "INVALID: " + result.fault;
  return std::string("does not run: ") + ToString(result.prediction.verdict) + " at step " +
         std::to_string(result.prediction.stuck_step);
}

void PrintHeader(const Problem& problem, const LowerBound& bound, bool modelled) {
  const IterationProfile& profile = problem.iteration();
  std::printf(
      "%s: %zu operations, %zu buffers, peak %s without workspaces, %.3f ms with unlimited "
      "memory%s\n",
      profile.name.c_str(), profile.operations.size(), profile.buffers.size(),
      Bytes(PeakBytes(profile)).c_str(), Milliseconds(UnlimitedTime(problem)),
      modelled ? " (modelled from layer shapes, not measured)" : "");
  std::printf("budget %s; at least %s are needed", Bytes(problem.budget_bytes).c_str(),
              Bytes(bound.memory_bytes).c_str());
  if (bound.possible)
    std::printf("; no plan takes less than %.3f ms", Milliseconds(bound.iteration_ns));
  std::printf("\n\n%-24s %10s %8s %8s %10s %9s %9s %9s %10s %10s\n", "strategy", "time ms",
              "slower", "bound +", "peak", "restore", "memory", "again ms", "to host", "to device");
}

void PrintRow(const Result& result, const Problem& problem, const LowerBound& bound) {
  std::printf("%-24s ", std::string(result.strategy->name()).c_str());
  if (!result.good()) {
    std::printf("%s\n", WhyBad(result).c_str());
    return;
  }
  const Prediction& it = result.prediction;
  std::printf("%10.3f %7.2f%% %7.2f%% %10s %9.3f %9.3f %9.3f %10s %10s\n",
              Milliseconds(it.iteration_ns), Percent(it.iteration_ns, UnlimitedTime(problem)),
              Percent(it.iteration_ns, bound.iteration_ns), Bytes(it.peak_bytes).c_str(),
              Milliseconds(it.stalls.restore_ns),
              Milliseconds(it.stalls.memory_ns + it.stalls.launch_ns),
              Milliseconds(it.recompute_ns), Bytes(it.to_host_bytes).c_str(),
              Bytes(it.to_device_bytes).c_str());
}

void PrintArenas(const std::vector<Result>& results) {
  std::printf("\n%-24s %10s %10s\n", "addresses, no workspaces", "arena", "places");
  for (const Result& result : results) {
    if (!result.good() || result.outcome.plan->placements.empty()) continue;
    std::printf("%-24s %10s %10zu\n", std::string(result.strategy->name()).c_str(),
                Bytes(result.outcome.plan->arena_bytes).c_str(),
                result.outcome.plan->placements.size());
  }
}

Json PlacementsToJson(const Plan& plan, const IterationProfile& profile) {
  Json placements = Json::array();
  for (const Placement& it : plan.placements) {
    placements.push_back({{"buffer", profile.at(it.buffer).name},
                          {"from_step", it.from_step},
                          {"until_step", it.until_step},
                          {"offset_bytes", it.offset_bytes}});
  }
  return placements;
}

Json ActionsToJson(const Result& result, const IterationProfile& profile) {
  constexpr const char* kActions[] = {"offload", "prefetch", "drop"};
  Json actions = Json::array();
  for (const Action& action : result.outcome.plan->actions) {
    actions.push_back({{"kind", kActions[static_cast<size_t>(action.kind)]},
                       {"buffer", profile.at(action.buffer).name},
                       {"step", action.step},
                       {"reason", ToString(action.reason)}});
  }
  return actions;
}

Json ResultToJson(const Result& result, const Problem& problem, const LowerBound& bound) {
  Json json = {{"strategy", result.strategy->name()}, {"runs", result.good()}};
  if (!result.good()) {
    json["why_not"] = WhyBad(result);
    return json;
  }
  const Prediction& it = result.prediction;
  json["iteration_ns"] = it.iteration_ns;
  json["above_bound_permyriad"] = DistancePermyriad(it.iteration_ns, bound);
  json["peak_bytes"] = it.peak_bytes;
  json["recompute_ns"] = it.recompute_ns;
  json["stall_ns"] = {{"restore", it.stalls.restore_ns},
                      {"memory", it.stalls.memory_ns},
                      {"launch", it.stalls.launch_ns}};
  json["to_host_bytes"] = it.to_host_bytes;
  json["to_device_bytes"] = it.to_device_bytes;
  Json steps = Json::array();
  for (const Step& step : result.outcome.plan->steps)
    steps.push_back({{"operation", step.operation.index},
                     {"recomputes", step.recomputes},
                     {"workspace", step.workspace}});
  json["steps"] = std::move(steps);
  if (!result.outcome.plan->placements.empty()) {
    json["arena_bytes"] = result.outcome.plan->arena_bytes;
    json["placements"] = PlacementsToJson(*result.outcome.plan, problem.iteration());
  }
  json["actions"] = ActionsToJson(result, problem.iteration());
  return json;
}

void PrintJson(const std::vector<Result>& results, const Problem& problem, const LowerBound& bound,
               bool modelled) {
  const IterationProfile& profile = problem.iteration();
  Json json = {
      {"schema", 1},
      {"profile", profile.name},
      {"modelled", modelled},
      {"budget_bytes", problem.budget_bytes},
      {"peak_bytes", PeakBytes(profile)},
      {"unlimited_ns", UnlimitedTime(problem)},
      {"lower_bound", {{"memory_bytes", bound.memory_bytes}, {"possible", bound.possible}}}};
  if (bound.possible) json["lower_bound"]["iteration_ns"] = bound.iteration_ns;
  for (const Result& result : results)
    json["plans"].push_back(ResultToJson(result, problem, bound));
  std::printf("%s\n", json.dump(1).c_str());
}

std::vector<const Strategy*> Choose(const std::string& name) {
  if (name == "all") return AllStrategies();
  if (const Strategy* strategy = FindStrategy(name.empty() ? kDefaultStrategy : name))
    return {strategy};
  std::string names = "all";
  for (const Strategy* strategy : AllStrategies()) names += ", " + std::string(strategy->name());
  throw Failure(kExitUsage, "no strategy '" + name + "'", "there are " + names,
                "choose one of these");
}

void WritePictures(const PlanOptions& options, const Problem& problem, const Result& result) {
  if (!result.good()) return;
  const Plan& plan = *result.outcome.plan;
  if (!options.svg_path.empty())
    WriteText(options.svg_path, PlanToSvg(problem, plan, result.timeline));
  if (!options.perfetto_path.empty())
    WriteText(options.perfetto_path, PlanToPerfetto(problem, plan, result.timeline));
}

// All strategies and the lower bound, at budgets from 100% to 25% of the peak.
void DrawCurves(const std::string& path, Problem problem) {
  constexpr double kMostPercent = 60;
  const IterationProfile& profile = problem.iteration();
  const int64_t unlimited_ns = UnlimitedTime(problem), peak = PeakBytes(profile);
  std::vector<Curve> curves = {{"lower bound", {}}};
  for (const Strategy* strategy : AllStrategies())
    curves.push_back({std::string(strategy->name()), {}});
  for (int share = 100; share >= 25; share -= 5) {
    problem.budget_bytes = base::scale(peak, share, 100);
    const LowerBound bound = FindTightBound(problem);
    if (!bound.possible) break;
    curves[0].points.push_back({share, Percent(bound.iteration_ns, unlimited_ns)});
    for (size_t i = 0; i < AllStrategies().size(); ++i) {
      const Result result = Judge(*AllStrategies()[i], problem);
      if (result.good())
        curves[i + 1].points.push_back(
            {share, Percent(result.prediction.iteration_ns, unlimited_ns)});
    }
  }
  WriteText(path,
            CurvesToSvg(profile.name + ": slow-down over budget (modelled)", curves, kMostPercent));
}

}  // namespace

int64_t ParseChunk(const std::string& written) {
  const auto size = base::ParseSize(written);
  if (!size || size->kind != base::SizeKind::kBytes || size->bytes == 0)
    throw Failure(kExitUsage, "no chunk size '" + written + "'", "it is a number of bytes",
                  "for example: --chunk 2MiB");
  return static_cast<int64_t>(size->bytes);
}

int64_t ResolveBudget(const std::string& written, int64_t capacity_bytes, int64_t peak_bytes) {
  const auto size = base::ParseSize(written);
  if (!size)
    throw Failure(kExitUsage, "no budget '" + written + "'", "it is not a size",
                  "for example: --budget 8GiB or 50%peak");
  const int64_t whole_bytes =
      size->kind == base::SizeKind::kShareOfPeak ? peak_bytes : capacity_bytes;
  return static_cast<int64_t>(base::ResolveSize(*size, static_cast<uint64_t>(whole_bytes)));
}

int RunPlanCommand(const PlanOptions& options) {
  const networks::Device device = LoadDevice(options.device);
  const LoadedProfile loaded = LoadProfile(options.source, device);
  Problem problem;
  problem.profile = &loaded.profile;
  problem.device = device.model;
  problem.device.chunk_bytes = ParseChunk(options.chunk);
  problem.device.slab_unit_bytes = kSlabUnitBytes;
  problem.device.link_share_permille = options.link_percent * 10;
  problem.seed = options.seed;
  problem.budget_bytes =
      ResolveBudget(options.budget, device.capacity_bytes, PeakBytes(loaded.profile));
  const LowerBound bound = FindTightBound(problem);

  std::vector<Result> results;
  for (const Strategy* strategy : Choose(options.strategy)) {
    results.push_back(Judge(*strategy, problem, options.repair));
    if (options.place) Place(problem, results.back());
  }
  if (options.json) {
    PrintJson(results, problem, bound, loaded.modelled);
  } else {
    PrintHeader(problem, bound, loaded.modelled);
    for (const Result& result : results) PrintRow(result, problem, bound);
  }
  if (options.place && !options.json) PrintArenas(results);
  const Result& last = results.back();  // the chosen strategy, or Spillway's own
  if (options.explain && last.good()) {
    std::printf("\n");
    for (const Explanation& entry : ExplainPlan(problem, *last.outcome.plan, last.timeline))
      std::printf("step %5d  %s\n", entry.step, entry.text.c_str());
  }
  WritePictures(options, problem, last);
  if (!options.curve_path.empty()) DrawCurves(options.curve_path, problem);
  return last.good() ? 0 : 1;
}

}  // namespace spillway::cli
