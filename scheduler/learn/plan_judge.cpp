#include "scheduler/learn/plan_judge.h"

#include <algorithm>
#include <utility>

namespace spillway::scheduler {
namespace {

// Iterations skipped after each switch.
constexpr int64_t kSettlingPlanned = 2, kSettlingWithout = 1;
constexpr int64_t kCompared = 3;
// This many odd iterations are skipped. With more, the plan hardly ever fits.
constexpr int64_t kMostOddOnes = 8;

// The least gain that justifies a plan.
constexpr int64_t kGainPercent = 2;
// The same over a time from before the plan: measuring made that iteration itself longer, and the
// job may have been in another phase.
constexpr int64_t kClearGainPercent = 10;
constexpr int64_t kFewerBytesPercent = 10;
constexpr int64_t kSlowerPercent = 10;
constexpr int64_t kMostKeptPatience = 1 << 16;
// Of one iteration, in sum.
constexpr int64_t kMostExcessPercent = 50;

}  // namespace

PlanJudge::PlanJudge(int64_t without_ns) : without_ns_(without_ns) {}

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
  const bool is_of_this_phase = iteration.is_planned == (phase_ != Phase::kWithoutPlan);
  if (phase_ == Phase::kDropped || !is_of_this_phase) return Answer::kGoOn;
  if (phase_ == Phase::kKept) return AddKept(iteration);
  return phase_ == Phase::kPlanned ? AddPlanned(iteration) : AddWithout(iteration);
}

PlanJudge::Answer PlanJudge::AddPlanned(const Iteration& iteration) {
  const IterationCost cost = iteration.cost;
  const bool is_too_dear = IsTooDear(cost);
  if (!iteration.is_as_expected) {
    return NoteOddOne(cost, is_too_dear) ? Begin(Phase::kWithoutPlan, Answer::kTryWithoutPlan)
                                         : Answer::kGoOn;
  }
  if (++seen_ > kSettlingPlanned || is_too_dear) planned_.Add(cost);
  if (is_too_dear) return Begin(Phase::kWithoutPlan, Answer::kTryWithoutPlan);
  if (planned_.iterations < kCompared) return Answer::kGoOn;
  return IsClearlyBetter() ? Begin(Phase::kKept, Answer::kKeep)
                           : Begin(Phase::kWithoutPlan, Answer::kTryWithoutPlan);
}

// The first iteration is not counted: memory is still as it was before.
bool PlanJudge::IsTooDear(IterationCost cost) {
  const int64_t excess_ns = cost.duration_ns - without_ns_;
  if (without_ns_ == 0 || seen_ + odd_ones_ == 0 || excess_ns <= 0) return false;
  excess_ns_ += excess_ns;
  return excess_ns_ > without_ns_ / 100 * kMostExcessPercent;
}

// They are too many if they are dear and outnumber the others, or many. Then they count too.
bool PlanJudge::NoteOddOne(IterationCost cost, bool is_too_dear) {
  if (++odd_ones_ > kSettlingPlanned) odd_.Add(cost);
  const bool are_too_dear = is_too_dear && odd_.iterations > seen_;
  if (odd_ones_ <= kMostOddOnes && !are_too_dear) return false;
  is_irregular_ = true;
  planned_.Add(odd_);
  return true;
}

PlanJudge::Answer PlanJudge::AddWithout(const Iteration& iteration) {
  if (!iteration.is_as_expected && !is_irregular_ && odd_ones_++ < kMostOddOnes)
    return Answer::kGoOn;
  if (++seen_ > kSettlingWithout) without_.Add(iteration.cost);
  const int64_t wanted = is_irregular_ ? std::max(planned_.iterations, kCompared) : kCompared;
  if (without_.iterations < wanted) return Answer::kGoOn;
  return IsNoBetter(planned(), without()) ? Begin(Phase::kDropped, Answer::kDrop)
                                          : Begin(Phase::kKept, Answer::kKeep);
}

// The job may have changed since the verdict.
PlanJudge::Answer PlanJudge::AddKept(const Iteration& iteration) {
  if (!iteration.is_as_expected) return Answer::kGoOn;
  if (was_tried_without() && ++seen_ <= kSettlingPlanned) return Answer::kGoOn;
  kept_.Add(iteration.cost);
  if (kept_.iterations < kept_patience_) return Answer::kGoOn;
  const Sum kept = std::exchange(kept_, {});
  const int64_t allowed_ns = planned().duration_ns / 100 * (100 + kSlowerPercent);
  if (kept.Mean().duration_ns <= allowed_ns) return Answer::kGoOn;
  planned_ = kept;
  without_ = {};
  is_irregular_ = false;  // `kept` has expected iterations alone
  kept_patience_ = std::min(2 * kept_patience_, kMostKeptPatience);
  return Begin(Phase::kWithoutPlan, Answer::kTryWithoutPlan);
}

PlanJudge::Answer PlanJudge::Begin(Phase phase, Answer answer) {
  phase_ = phase;
  seen_ = odd_ones_ = 0;
  return answer;
}

bool PlanJudge::IsClearlyBetter() const {
  return planned().duration_ns < without_ns_ / 100 * (100 - kClearGainPercent);
}

}  // namespace spillway::scheduler
