// Finds repetition in one sequence of events: the whole process's, or one thread's. Owned by the
// iteration learner, on one thread; see its invariants.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler/learn/event_history.h"
#include "scheduler/learn/iteration_followers.h"
#include "scheduler/learn/period_candidates.h"

namespace spillway::scheduler {

class SequenceLearner {
 public:
  using Pattern = std::shared_ptr<const IterationPattern>;

  SequenceLearner(int64_t longest_iteration, int64_t repetitions);

  void AddForeign(uint64_t allocation, int64_t size_bytes, int64_t content_bytes, bool was_there) {
    history_.AddForeign(allocation, size_bytes, content_bytes, was_there);
  }
  void Free(uint64_t allocation) { history_.Free(allocation); }
  // Adds an event with a token. Returns a newly learned pattern; null unless `may_claim`.
  Pattern Add(const JobEvent& event, bool may_claim);
  void AddGap() { candidates_.Clear(); }

  const KnownAllocation* Find(uint64_t allocation) const { return history_.Find(allocation); }
  int64_t events() const { return history_.end(); }
  // Also across a few unknown events.
  bool is_following() const {
    return followed_at_ >= 0 && history_.end() - followed_at_ <= kMostUnknown;
  }
  const IterationFollowers& known() const { return known_; }

 private:
  static constexpr int64_t kMostUnknown = 16;

  void Follow(const JobEvent& event);
  bool IsNew(const PeriodCandidate& candidate) const;
  bool MayBeWider(PeriodCandidate* candidate) const;
  Pattern ExamineCandidate(PeriodCandidate* candidate);

  const int64_t repetitions_;
  EventHistory history_;
  PeriodCandidates candidates_;
  IterationFollowers known_;
  int64_t known_since_ = 0, last_cut_short_ = -1;
  int64_t followed_at_ = -1;  // position of the last event of a known iteration
  bool is_following_ = false;
};

}  // namespace spillway::scheduler
