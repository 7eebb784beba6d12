// Convolution workspaces chosen from what memory is left, in SuperNeurons' and vDNN's settings.
//
// Two questions: how long the convolutions take with so much workspace each, and how long under our
// plan, which grants workspaces beside all moves, against one without any.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/plan_validator.h"
#include "scheduler/plan/strategies/registry.h"
#include "tests/bench/planner/figures.h"
#include "tests/bench/planner/modelled.h"

namespace spillway::papers {
namespace {

using namespace scheduler;

constexpr int64_t kMiB = 1 << 20, kGiB = 1 << 30;
constexpr double kLeastSpeedUp = 1.2;

struct Setting {
  const char* name;
  const char* network;
  const char* device;
  int64_t batch_size, pool_bytes;
};
constexpr Setting kSettings[] = {
    {"SuperNeurons 3.5, AlexNet", "alexnet", "k40c", 100, 3 * kGiB},
    {"SuperNeurons 3.5, AlexNet", "alexnet", "k40c", 300, 3 * kGiB},
    {"vDNN, VGG-16 in 12 GB", "vgg16", "m40", 64, 12 * kGiB},
};
constexpr int64_t kWorkspaceMiB[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

bool IsConvolution(const Operation& operation) {
  return operation.type == OperationType::kConvolution && !operation.workspaces.empty();
}

// Each convolution by its fastest algorithm within the limit.
int64_t ConvolutionNs(const IterationProfile& profile, int64_t most_bytes) {
  int64_t sum_ns = 0;
  for (const Operation& operation : profile.operations) {
    if (!IsConvolution(operation)) continue;
    int64_t best_ns = operation.workspaces[0].duration_ns;
    for (const WorkspaceChoice& choice : operation.workspaces) {
      if (choice.size_bytes <= most_bytes) best_ns = std::min(best_ns, choice.duration_ns);
    }
    sum_ns += best_ns;
  }
  return sum_ns;
}

struct Planned {
  int64_t convolutions_ns = 0, iteration_ns = 0;
};

std::optional<Planned> PlanIn(const Problem& problem) {
  const StrategyOutcome outcome = FindStrategy(kDefaultStrategy)->MakePlan(problem);
  if (!outcome.plan || ValidatePlan(problem, *outcome.plan)) return std::nullopt;
  const Prediction prediction = CostModel(problem).Predict(*outcome.plan);
  if (!prediction.runs()) return std::nullopt;
  Planned planned{0, prediction.iteration_ns};
  for (const Step& step : outcome.plan->steps) {
    const Operation& operation = problem.iteration().at(step.operation);
    if (IsConvolution(operation))
      planned.convolutions_ns += operation.workspaces[At(step.workspace)].duration_ns;
  }
  return planned;
}

IterationProfile WithoutWorkspaces(IterationProfile profile) {
  for (Operation& operation : profile.operations) {
    if (!operation.workspaces.empty()) operation.workspaces.resize(1);
  }
  return profile;
}

double Ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

void PrintLimits(const IterationProfile& profile, const std::string& title, Verdicts& verdicts) {
  std::printf("  convolutions, ms, with at most so many MiB each:\n ");
  int64_t before_ns = 0;
  bool is_monotone = true;
  for (const int64_t limit : kWorkspaceMiB) {
    const int64_t now_ns = ConvolutionNs(profile, limit * kMiB);
    is_monotone = is_monotone && (before_ns == 0 || now_ns <= before_ns);
    before_ns = now_ns;
    std::printf(" %ld:%.1f", static_cast<long>(limit), Ms(now_ns));
  }
  std::printf("  %s\n", verdicts.Must(is_monotone, "workspaces: monotone, " + title));
}

void PrintPlans(const IterationProfile& profile, const Setting& setting, const std::string& title,
                Verdicts& verdicts) {
  const Modelled dynamic(profile, DeviceOf(setting.device));
  const Modelled none(WithoutWorkspaces(profile), DeviceOf(setting.device));
  const std::optional<Planned> ours = PlanIn(dynamic.WithBudget(setting.pool_bytes));
  const std::optional<Planned> zero = PlanIn(none.WithBudget(setting.pool_bytes));
  if (!ours || !zero) {
    std::printf("  no plan  %s\n", verdicts.Must(false, "workspaces: a plan, " + title));
    return;
  }
  const double speed_up =
      static_cast<double>(zero->convolutions_ns) / static_cast<double>(ours->convolutions_ns);
  std::printf(
      "  planned in the pool: convolutions %.1f ms without workspaces, %.1f with ours (%.2fx); "
      "iteration %.1f and %.1f (%.2fx)  %s\n",
      Ms(zero->convolutions_ns), Ms(ours->convolutions_ns), speed_up, Ms(zero->iteration_ns),
      Ms(ours->iteration_ns),
      static_cast<double>(zero->iteration_ns) / static_cast<double>(ours->iteration_ns),
      verdicts.Must(speed_up >= kLeastSpeedUp, "workspaces: 1.2 times faster, " + title));
}

std::string TitleOf(const Setting& setting) {
  return std::string(setting.name) + ", batch " + std::to_string(setting.batch_size);
}

// A polyline; the budget's axis is by powers of two.
std::string ToSvg(const std::string& title, const IterationProfile& profile) {
  constexpr int kWidth = 640, kHeight = 360, kLeft = 70, kTop = 40, kBottom = 50;
  const double most_ms = Ms(ConvolutionNs(profile, 0));
  const auto x = [&](size_t i) {
    return kLeft + static_cast<double>(i) * (kWidth - kLeft - 20) / (std::size(kWorkspaceMiB) - 1);
  };
  const auto y = [&](double ms) { return kTop + (kHeight - kTop - kBottom) * (1 - ms / most_ms); };
  char line[256];
  std::string svg, points;
  const auto add = [&](std::string* to, auto... values) {
    std::snprintf(line, sizeof line, values...);
    *to += line;
  };
  add(&svg,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n",
      kWidth, kHeight);
  add(&svg, "<text x=\"%d\" y=\"20\">%s: convolutions of a step, ms (modelled)</text>\n", kLeft,
      title.c_str());
  add(&svg, "<text x=\"%d\" y=\"%d\">workspace that each may have, MiB</text>\n", kLeft,
      kHeight - 10);
  for (size_t i = 0; i < std::size(kWorkspaceMiB); ++i) {
    const double ms = Ms(ConvolutionNs(profile, kWorkspaceMiB[i] * kMiB));
    add(&points, "%.1f,%.1f ", x(i), y(ms));
    add(&svg, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%ld</text>\n", x(i), kHeight - 30,
        static_cast<long>(kWorkspaceMiB[i]));
    add(&svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.0f</text>\n", x(i), y(ms) - 6,
        ms);
  }
  return svg + "<polyline fill=\"none\" stroke=\"#1f6fb2\" stroke-width=\"2\" points=\"" + points +
         "\"/>\n</svg>\n";
}

}  // namespace

void PrintWorkspaces(Effort effort, Verdicts& verdicts) {
  std::printf("\nConvolution workspaces from what is left (modelled)\n");
  for (const Setting& setting : kSettings) {
    const std::string title = TitleOf(setting);
    std::printf("%s, %s, pool of %.0f GiB\n", title.c_str(), setting.device,
                static_cast<double>(setting.pool_bytes) / kGiB);
    const IterationProfile profile = ProfileOf(setting.network, setting.device, setting.batch_size);
    PrintLimits(profile, title, verdicts);
    PrintPlans(profile, setting, title, verdicts);
    std::fflush(stdout);
    if (effort.quick) return;
  }
}

bool DrawWorkspaces(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  bool good = true;
  for (const Setting& setting : kSettings) {
    const std::filesystem::path path =
        std::filesystem::path(folder) / ("workspaces_" + std::string(setting.network) + "_" +
                                         std::to_string(setting.batch_size) + ".svg");
    std::ofstream file(path);
    file << ToSvg(TitleOf(setting), ProfileOf(setting.network, setting.device, setting.batch_size));
    file.close();
    if (file.fail()) std::fprintf(stderr, "cannot write %s\n", path.c_str());
    good = good && !file.fail();
  }
  return good;
}

}  // namespace spillway::papers
