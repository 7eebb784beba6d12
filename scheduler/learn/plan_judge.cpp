#include "scheduler/learn/plan_judge.h"

#include <algorithm>

namespace spillway::scheduler {
namespace {

// Iterations skipped after each switch: memory still has the other mode's layout.
constexpr int64_t kSettlingPlanned = 2, kSettlingWithout = 1;
constexpr int64_t kCompared = 3;
// This many odd iterations are skipped. With more, the plan hardly ever fits.
constexpr int64_t kMostOddOnes = 8;

// The least gain that justifies a plan.
constexpr int64_t kGainPercent = 2;
constexpr int64_t kFewerBytesPercent = 10;
// One such iteration suffices to try without the plan.
constexpr int64_t kFarWorsePercent = 150;
// Without other measurements, the plan must come this close to its prediction.
constexpr int64_t kOffPredictionPercent = 125;

}  // namespace

PlanJudge::PlanJudge(int64_t predicted_ns, int64_t without_ns)
    : predicted_ns_(std::max<int64_t>(predicted_ns, 1)), without_ns_(without_ns) {}

void PlanJudge::Sum::Add(IterationCost cost) {
  ++iterations;
  duration_ns += cost.duration_ns;
  moved_bytes += cost.moved_bytes;
}

void PlanJudge::Sum::Add(const Sum& other) {
  iterations += other.iterations;
  duration_ns += other.duration_ns;
  moved_bytes += other.moved_bytes;
}

IterationCost PlanJudge::Sum::Mean() const {
  if (iterations == 0) return {};
  return {duration_ns / iterations, moved_bytes / iterations};
}

bool PlanJudge::IsNoBetter(IterationCost planned, IterationCost without) {
  const auto percent_of = [](int64_t value, int64_t percent) { return value / 100 * percent; };
  if (planned.duration_ns < percent_of(without.duration_ns, 100 - kGainPercent)) return false;
  if (planned.duration_ns > percent_of(without.duration_ns, 100 + kGainPercent)) return true;
  return planned.moved_bytes >= percent_of(without.moved_bytes, 100 - kFewerBytesPercent);
}

PlanJudge::Answer PlanJudge::Add(const Iteration& iteration) {
  const bool is_of_this_phase = iteration.is_planned == (phase_ == Phase::kPlanned);
  if (phase_ == Phase::kDecided || !is_of_this_phase) return Answer::kGoOn;
  return phase_ == Phase::kPlanned ? AddPlanned(iteration) : AddWithout(iteration);
}

PlanJudge::Answer PlanJudge::AddPlanned(const Iteration& iteration) {
  const IterationCost cost = iteration.cost;
  if (!iteration.is_as_expected) {
    return NoteOddOne(cost) ? Begin(Phase::kWithoutPlan, Answer::kTryWithoutPlan) : Answer::kGoOn;
  }
  ++seen_;
  if (IsFarWorse(cost) && seen_ > 1) {
    planned_.Add(cost);
    return Begin(Phase::kWithoutPlan, Answer::kTryWithoutPlan);
  }
  if (seen_ > kSettlingPlanned) planned_.Add(cost);
  if (planned_.iterations < kCompared) return Answer::kGoOn;
  return IsClearlyBetter() ? Begin(Phase::kDecided, Answer::kKeep)
                           : Begin(Phase::kWithoutPlan, Answer::kTryWithoutPlan);
}

// Whether this is one too many. The skipped ones then count too.
bool PlanJudge::NoteOddOne(IterationCost cost) {
  if (++odd_ones_ > kSettlingPlanned) odd_.Add(cost);
  if (odd_ones_ <= kMostOddOnes) return false;
  is_irregular_ = true;
  planned_.Add(odd_);
  return true;
}

PlanJudge::Answer PlanJudge::AddWithout(const Iteration& iteration) {
  if (!iteration.is_as_expected && !is_irregular_ && odd_ones_++ < kMostOddOnes)
    return Answer::kGoOn;
  if (++seen_ > kSettlingWithout) without_.Add(iteration.cost);
  if (without_.iterations < (is_irregular_ ? planned_.iterations : kCompared)) return Answer::kGoOn;
  return Begin(Phase::kDecided, IsNoBetter(planned(), without()) ? Answer::kDrop : Answer::kKeep);
}

PlanJudge::Answer PlanJudge::Begin(Phase phase, Answer answer) {
  phase_ = phase;
  seen_ = odd_ones_ = 0;
  return answer;
}

bool PlanJudge::IsClearlyBetter() const {
  if (without_ns_ > 0) return planned().duration_ns < without_ns_ / 100 * (100 - kGainPercent);
  return planned().duration_ns <= predicted_ns_ / 100 * kOffPredictionPercent;
}

bool PlanJudge::IsFarWorse(IterationCost cost) const {
  return without_ns_ > 0 && cost.duration_ns > without_ns_ / 100 * kFarWorsePercent;
}

}  // namespace spillway::scheduler
