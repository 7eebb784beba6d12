#include "scheduler/plan/strategies/vdnn.h"

#include <algorithm>
#include <limits>

namespace spillway::scheduler {
namespace {

enum class Moves { kNothing, kConvolutionInputs, kAllInputs };
enum class Algorithms { kSmallest, kFastest, kFastestThatFits };

bool ReadsBuffer(const Operation& operation, BufferId id) {
  return std::find(operation.reads.begin(), operation.reads.end(), id) != operation.reads.end();
}

bool IsMoved(const Workbench& bench, const IdleInterval& interval, Moves moves) {
  const IterationProfile& profile = bench.profile();
  if (moves == Moves::kNothing || interval.wraps || interval.content_dead) return false;
  if (profile.at(interval.from).phase != Phase::kForward ||
      profile.at(interval.to).phase == Phase::kForward)
    return false;
  const BufferKind kind = profile.at(interval.buffer).kind;
  if (kind != BufferKind::kActivation && kind != BufferKind::kInput) return false;
  if (moves == Moves::kAllInputs) return true;
  for (int32_t i = interval.from.index; i >= 0; --i) {
    const Operation& operation = profile.operations[static_cast<size_t>(i)];
    if (operation.type == OperationType::kConvolution && ReadsBuffer(operation, interval.buffer))
      return true;
    if (!profile.at(interval.buffer).persistent && i == profile.at(interval.buffer).born.index)
      break;
  }
  return false;
}

// Figure 10: each backward operation looks ahead to the next convolution for the first unrequested
// buffer.
void TriggerPrefetches(const Workbench& bench, std::vector<Decision>& decisions) {
  const IterationProfile& profile = bench.profile();
  std::vector<std::vector<int32_t>> needed_at(profile.operations.size());
  for (const Decision& decision : decisions) {
    if (decision.treatment == Treatment::kSwap)
      needed_at[static_cast<size_t>(bench.interval(decision.interval).to.index)].push_back(
          decision.interval);
  }
  const auto count = static_cast<int32_t>(profile.operations.size());
  for (int32_t now = 0; now < count; ++now) {
    if (profile.operations[static_cast<size_t>(now)].phase == Phase::kForward) continue;
    for (int32_t ahead = now + 1; ahead < count; ++ahead) {
      bool asked = false;
      for (const int32_t interval : needed_at[static_cast<size_t>(ahead)]) {
        Decision& decision = decisions[static_cast<size_t>(interval)];
        if (decision.prefetch_at.index >= 0) continue;
        decision.prefetch_at = {now};
        asked = true;
      }
      const bool window_ends =
          profile.operations[static_cast<size_t>(ahead)].type == OperationType::kConvolution;
      if (asked || window_ends) break;
    }
  }
}

Choices Arrange(const Workbench& bench, Moves moves, Algorithms algorithms) {
  Choices choices = bench.NoChoices();
  for (Decision& decision : choices.decisions) {
    if (IsMoved(bench, bench.interval(decision.interval), moves))
      decision.treatment = Treatment::kSwap;
  }
  TriggerPrefetches(bench, choices.decisions);
  if (algorithms == Algorithms::kFastestThatFits)
    choices.workspaces = WorkspacesThatFit(bench, choices);
  if (algorithms != Algorithms::kFastest) return choices;
  for (size_t i = 0; i < choices.workspaces.size(); ++i)
    choices.workspaces[i] =
        FastestWorkspace(bench.profile().operations[i], std::numeric_limits<int64_t>::max());
  return choices;
}

class StaticVdnn : public ChoosingStrategy {
 public:
  StaticVdnn(std::string_view name, std::string_view summary, Moves moves)
      : ChoosingStrategy(name, summary), moves_(moves) {}

  std::optional<Choices> Choose(Workbench& bench) const override {
    return Arrange(bench, moves_, Algorithms::kSmallest);
  }

 private:
  const Moves moves_;
};

class DynamicVdnn : public ChoosingStrategy {
 public:
  using ChoosingStrategy::ChoosingStrategy;

  std::optional<Choices> Choose(Workbench& bench) const override {
    struct Trial {
      Moves moves;
      Algorithms algorithms;
    };
    constexpr Trial kTrials[] = {{Moves::kNothing, Algorithms::kFastest},
                                 {Moves::kConvolutionInputs, Algorithms::kFastest},
                                 {Moves::kAllInputs, Algorithms::kFastest},
                                 {Moves::kConvolutionInputs, Algorithms::kFastestThatFits},
                                 {Moves::kAllInputs, Algorithms::kFastestThatFits}};
    for (const Trial& trial : kTrials) {
      Choices choices = Arrange(bench, trial.moves, trial.algorithms);
      if (bench.Price(bench.Lower(choices)).runs()) return choices;
    }
    return Arrange(bench, Moves::kAllInputs, Algorithms::kSmallest);
  }
};

}  // namespace

const ChoosingStrategy& VdnnAll() {
  static const auto& strategy = *new StaticVdnn(
      "vdnn-all", "vDNN, every layer's input moves (MICRO 2016)", Moves::kAllInputs);
  return strategy;
}

const ChoosingStrategy& VdnnConv() {
  static const auto& strategy = *new StaticVdnn(
      "vdnn-conv", "vDNN, convolutions' inputs move (MICRO 2016)", Moves::kConvolutionInputs);
  return strategy;
}

const ChoosingStrategy& VdnnDynamic() {
  static const auto& strategy = *new DynamicVdnn(
      "vdnn-dynamic", "vDNN, first arrangement that fits, from fastest to smallest (MICRO 2016)");
  return strategy;
}

}  // namespace spillway::scheduler
