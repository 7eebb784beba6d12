#include "scheduler/learn/sequence_learner.h"

#include <algorithm>

#include "scheduler/learn/pattern_maker.h"
#include "scheduler/learn/repetition.h"

namespace spillway::scheduler {
namespace {

constexpr int64_t kShortestIteration = 4;
constexpr int64_t kMostDoublings = 6;

// Enough events must be unknown: more than while a follower regains its position, and a share of
// the repetition. So a known iteration with a few added events is not learned again.
bool IsWorthLearning(int64_t unknown, int64_t distance) {
  return unknown * 50 >= distance && (unknown >= 16 || unknown * 4 >= distance);
}

// An iteration must touch at least this much to be more than one of its loops.
int64_t Widened(int64_t bytes) { return bytes + bytes / 8; }

}  // namespace

SequenceLearner::SequenceLearner(int64_t longest_iteration, int64_t repetitions)
    : repetitions_(repetitions),
      history_((repetitions + 1) * longest_iteration),
      candidates_(longest_iteration) {}

SequenceLearner::Pattern SequenceLearner::Add(const JobEvent& event, bool may_claim) {
  Follow(event);
  history_.Add(event, TokenOf(event), is_following_);
  candidates_.Add(history_);
  if (!may_claim) return nullptr;
  // Examining a candidate may propose others, which wait for the next event.
  const size_t count = candidates_.candidates().size();
  for (size_t i = 0; i < count; ++i) {
    PeriodCandidate* const candidate = &candidates_.candidates()[i];
    if (candidate->run < candidate->compare_at_run ||
        candidate->run < candidate->distance * repetitions_)
      continue;
    if (Pattern pattern = ExamineCandidate(candidate)) return pattern;
  }
  return nullptr;
}

void SequenceLearner::Follow(const JobEvent& event) {
  const Followed followed = known_.Observe(event).followed;
  is_following_ = followed.position >= 0;
  if (is_following_) followed_at_ = history_.end();
  if (!followed.began_iteration) return;
  const IterationFollower& follower = *known_.at(known_.active());
  if (follower.last_end() < follower.pattern().size() * 3 / 4) last_cut_short_ = history_.end();
}

// True too if an iteration of known events is cut short each time: an evaluation that begins like
// training. It must repeat once more: training may follow a single evaluation.
bool SequenceLearner::IsNew(const PeriodCandidate& candidate) const {
  // Earlier events are explained by the last pattern, or were not worth a pattern of their own.
  const int64_t begin = std::max(history_.end() - candidate.distance, known_since_);
  const int64_t unknown = history_.UnexplainedSince(begin);
  if (IsWorthLearning(unknown, candidate.distance)) return true;
  return last_cut_short_ >= begin && candidate.run >= 2 * candidate.distance;
}

// Loops inside an iteration become patterns and soon explain all its events. Checking this is
// expensive, so failures double the interval.
bool SequenceLearner::MayBeWider(PeriodCandidate* candidate) const {
  if (candidate->run < candidate->wider_at_run || known_.WidestLoopBytes(candidate->distance) < 0)
    return false;
  candidate->wider_at_run =
      candidate->run +
      (candidate->distance << std::min(candidate->failed_wider_comparisons++, kMostDoublings));
  return true;
}

SequenceLearner::Pattern SequenceLearner::ExamineCandidate(PeriodCandidate* candidate) {
  const int64_t distance = candidate->distance, run = candidate->run;
  candidate->compare_at_run = run + std::max(distance / 4, kShortestIteration);
  if (distance < kShortestIteration) return nullptr;
  const bool is_new = IsNew(*candidate);
  if (!is_new && !MayBeWider(candidate)) return nullptr;
  if (!IsMoreThanChance(history_, distance, run)) return nullptr;
  const Repetition repetition(history_, distance, run >= 2 * distance);
  // What looks stray may alternate: then the iteration is longer.
  const int64_t longer = repetition.LongerDistance(run);
  if (!repetition.holds() || longer > 0) {
    candidate->compare_at_run = run + (distance << std::min(candidate->looks++, kMostDoublings));
    if (longer > 0 && longer <= candidates_.longest())
      candidates_.Propose(longer, run + distance - longer);
    return nullptr;
  }
  if (!is_new && repetition.persistent_bytes() <= Widened(known_.WidestLoopBytes(distance)))
    return nullptr;
  MadePattern made = MakePattern(history_, repetition);
  auto pattern = std::make_shared<const IterationPattern>(std::move(made.pattern));
  known_.Add(pattern, made.next);
  known_since_ = history_.end();
  return pattern;
}

}  // namespace spillway::scheduler
