// Says of every event of a job which one of a pattern's it is, and which allocation each of the pattern's buffers is now.
//
// Asked by the executor with each event, before the call goes on, in the calling thread and under its lock. Owns its state; the
// pattern is shared. Allocates nothing after construction.
//
// An event is the expected one, or one of the next few or last few (left out, reordered), or a stranger: logging, metrics.
// After some strangers the job is looked for in the whole iteration, by events that are recognisable: a short last batch or an
// evaluation leads back into the next iteration at the latest.
//
// Invariants
//   1. A position is given only for an event of the same token whose touches are the pattern's: buffers and allocations are
//      matched one to one, persistent buffers with their own allocation, the others with one of this iteration.
//   2. No position is given twice in an iteration.
//   3. A stranger changes no buffer's allocation.
// Never: allocates memory, reads a clock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler/learn/iteration_pattern.h"

namespace spillway::scheduler {

enum class Tracking : uint8_t {
  kFollowing,  // the event is number `position` of the iteration
  kAstray,     // it is not, but a few such are expected
  kLost,       // nothing was known for long; from here on the job may be in any other pattern
};

struct Followed {
  Tracking tracking = Tracking::kLost;
  int32_t position = -1;         // of this event when following
  bool began_iteration = false;  // with this event; the last iteration's misses are told by last_misses()
};

class IterationFollower {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  explicit IterationFollower(std::shared_ptr<const IterationPattern> pattern);

  // Frees and synchronisations are passed over: they are `following` at no position while the job is followed.
  Followed Observe(const JobEvent& event);

  const IterationPattern& pattern() const { return *pattern_; }
  Tracking tracking() const { return tracking_; }
  // The event that is expected next.
  int32_t next() const { return next_; }
  // The buffer's allocation now, 0 where that is not known yet; and the other way round, -1 for none.
  uint64_t AllocationOf(int32_t buffer) const { return bound_[static_cast<size_t>(buffer)].allocation; }
  int32_t BufferOf(uint64_t allocation) const;
  // How many events are expected until the buffer's allocation is touched; 0: by the next one. kNever where this iteration and
  // the next one do not.
  int64_t NextUse(int32_t buffer) const;

  // Events that were other than expected (strangers, left-out ones): of this iteration so far, and of the last one.
  int64_t misses() const { return misses_; }
  int64_t last_misses() const { return last_misses_; }
  int64_t iterations() const { return iterations_; }
  // Iterations that were followed from their first to their last event without a miss.
  int64_t whole_iterations() const { return whole_iterations_; }

 private:
  struct Binding {
    uint64_t allocation = 0;
    bool touched = false;  // in this iteration: it is certain
  };

  std::shared_ptr<const IterationPattern> pattern_;
  std::vector<Binding> bound_;  // by buffer
  Tracking tracking_ = Tracking::kLost;
  int32_t next_ = 0;
  int64_t misses_ = 0, last_misses_ = 0, iterations_ = 0, whole_iterations_ = 0;
};

}  // namespace spillway::scheduler
