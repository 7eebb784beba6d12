// Finds what one sequence of events repeats: the whole process', or one thread's.
//
// Owned by the iteration learner, on one thread. See there for what it holds to.
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

  // An iteration is claimed once it has repeated itself that often.
  SequenceLearner(int64_t longest_iteration, int64_t repetitions);

  // Allocations that the sequence's events do not make. `was_there`: before the first event.
  void AddForeign(uint64_t allocation, int64_t size_bytes, int64_t content_bytes, bool was_there) {
    history_.AddForeign(allocation, size_bytes, content_bytes, was_there);
  }
  void Free(uint64_t allocation) { history_.Free(allocation); }
  // An event with a token; a pattern that was not known before, or null. Claims nothing where it
  // may not.
  Pattern Add(const JobEvent& event, bool may_claim);
  void AddGap() { candidates_.Clear(); }

  // Null where nothing is known of it.
  const KnownAllocation* Find(uint64_t allocation) const { return history_.Find(allocation); }
  int64_t events() const { return history_.end(); }
  // The last event is one of a known pattern's.
  bool is_following() const { return is_following_; }
  const IterationFollowers& known() const { return known_; }

 private:
  void Follow(const JobEvent& event);
  bool IsNew(const PeriodCandidate& candidate) const;
  bool MayBeWider(PeriodCandidate* candidate) const;
  Pattern LookAt(PeriodCandidate* candidate);

  const int64_t repetitions_;
  EventHistory history_;
  PeriodCandidates candidates_;
  IterationFollowers known_;
  int64_t known_since_ = 0, last_cut_short_ = -1;
  bool is_following_ = false;
};

}  // namespace spillway::scheduler
