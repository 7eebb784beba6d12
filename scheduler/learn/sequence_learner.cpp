#include "scheduler/learn/sequence_learner.h"

#include <algorithm>

#include "scheduler/learn/pattern_maker.h"
#include "scheduler/learn/repetition.h"

namespace spillway::scheduler {
namespace {

constexpr int64_t kShortestIteration = 4;
// Of a repetition, one in so many events must be unknown: what is repeated with a little more in between stays what it was.
constexpr int64_t kWorthLearning = 50;
constexpr int64_t kMostDoublings = 6;

}  // namespace

SequenceLearner::SequenceLearner(int64_t longest_iteration, int64_t repetitions)
    : repetitions_(repetitions),
      history_((repetitions + 1) * longest_iteration),
      candidates_(longest_iteration) {}

SequenceLearner::Pattern SequenceLearner::Add(const JobEvent& event, bool may_claim) {
  is_following_ = known_.Observe(event).followed.position >= 0;
  history_.Add(event, TokenOf(event), is_following_);
  candidates_.Add(history_);
  if (!may_claim) return nullptr;
  // Looking at one may propose others: those wait for the next event.
  const size_t count = candidates_.candidates().size();
  for (size_t i = 0; i < count; ++i) {
    PeriodCandidate* const candidate = &candidates_.candidates()[i];
    if (candidate->run < candidate->look_at_run || candidate->run < candidate->distance * repetitions_)
      continue;
    if (Pattern pattern = LookAt(candidate)) return pattern;
  }
  return nullptr;
}

SequenceLearner::Pattern SequenceLearner::LookAt(PeriodCandidate* candidate) {
  const int64_t distance = candidate->distance, run = candidate->run;
  candidate->look_at_run = run + std::max(distance / 4, kShortestIteration);
  // What came before the last pattern was found is explained by it, or was not worth a pattern of its own.
  const int64_t unknown = history_.UnexplainedSince(std::max(history_.end() - distance, known_since_));
  if (distance < kShortestIteration || unknown * kWorthLearning < distance) return nullptr;
  if (!IsMoreThanChance(history_, distance, run)) return nullptr;
  const Repetition repetition(history_, distance);
  if (!repetition.holds()) {
    candidate->look_at_run = run + (distance << std::min(candidate->looks++, kMostDoublings));
    const int64_t longer = repetition.LongerDistance(run);
    if (longer > 0 && longer <= candidates_.longest()) candidates_.Propose(longer, run + distance - longer);
    return nullptr;
  }
  MadePattern made = MakePattern(history_, repetition);
  auto pattern = std::make_shared<const IterationPattern>(std::move(made.pattern));
  known_.Add(pattern, made.next);
  known_since_ = history_.end();
  return pattern;
}

}  // namespace spillway::scheduler
