#include "scheduler/learn/sequence_learner.h"

#include <algorithm>

#include "scheduler/learn/pattern_maker.h"
#include "scheduler/learn/repetition.h"

namespace spillway::scheduler {
namespace {

constexpr int64_t kShortestIteration = 4;
constexpr int64_t kMostDoublings = 6;

// Of a repetition a share of the events must be unknown, and more than are so while a follower
// finds its place again: what is repeated with a little more in between stays what it was.
bool IsWorthLearning(int64_t unknown, int64_t distance) {
  return unknown * 50 >= distance && (unknown >= 16 || unknown * 4 >= distance);
}

// What an iteration must touch at least to be more than a loop in it and a few steps beside.
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
  // Looking at one may propose others: those wait for the next event.
  const size_t count = candidates_.candidates().size();
  for (size_t i = 0; i < count; ++i) {
    PeriodCandidate* const candidate = &candidates_.candidates()[i];
    if (candidate->run < candidate->look_at_run ||
        candidate->run < candidate->distance * repetitions_)
      continue;
    if (Pattern pattern = LookAt(candidate)) return pattern;
  }
  return nullptr;
}

void SequenceLearner::Follow(const JobEvent& event) {
  const Followed followed = known_.Observe(event).followed;
  is_following_ = followed.position >= 0;
  if (!followed.began_iteration) return;
  const IterationFollower& follower = *known_.at(known_.active());
  if (follower.last_end() < follower.pattern().size() * 3 / 4) last_cut_short_ = history_.end();
}

// Also where every event is known, but as a part of an iteration that is cut short each time: an
// evaluation, which does what training begins with. That must have come once more, as training may
// follow one evaluation.
bool SequenceLearner::IsNew(const PeriodCandidate& candidate) const {
  // What came before the last pattern was found is explained by it, or was not worth a pattern of
  // its own.
  const int64_t begin = std::max(history_.end() - candidate.distance, known_since_);
  const int64_t unknown = history_.UnexplainedSince(begin);
  if (IsWorthLearning(unknown, candidate.distance)) return true;
  return last_cut_short_ >= begin && candidate.run >= 2 * candidate.distance;
}

// Loops in an iteration are patterns of their own, and soon none of its events is unknown. It is
// told from them by what it touches: more than the widest of them. To see that takes a look at all
// of it, more and more rarely in vain.
bool SequenceLearner::MayBeWider(PeriodCandidate* candidate) const {
  if (candidate->run < candidate->wider_at_run || known_.WidestPartBytes(candidate->distance) < 0)
    return false;
  candidate->wider_at_run =
      candidate->run + (candidate->distance << std::min(candidate->wider_looks++, kMostDoublings));
  return true;
}

SequenceLearner::Pattern SequenceLearner::LookAt(PeriodCandidate* candidate) {
  const int64_t distance = candidate->distance, run = candidate->run;
  candidate->look_at_run = run + std::max(distance / 4, kShortestIteration);
  if (distance < kShortestIteration) return nullptr;
  const bool is_new = IsNew(*candidate);
  if (!is_new && !MayBeWider(candidate)) return nullptr;
  if (!IsMoreThanChance(history_, distance, run)) return nullptr;
  const Repetition repetition(history_, distance);
  if (!repetition.holds()) {
    candidate->look_at_run = run + (distance << std::min(candidate->looks++, kMostDoublings));
    const int64_t longer = repetition.LongerDistance(run);
    if (longer > 0 && longer <= candidates_.longest())
      candidates_.Propose(longer, run + distance - longer);
    return nullptr;
  }
  if (!is_new && repetition.persistent_bytes() <= Widened(known_.WidestPartBytes(distance)))
    return nullptr;
  MadePattern made = MakePattern(history_, repetition);
  auto pattern = std::make_shared<const IterationPattern>(std::move(made.pattern));
  known_.Add(pattern, made.next);
  known_since_ = history_.end();
  return pattern;
}

}  // namespace spillway::scheduler
