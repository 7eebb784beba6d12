// Says of every event of a job which one of a pattern's it is, and which allocation each of the
// pattern's buffers is now.
//
// Asked by the executor with each event, before the call goes on, in the calling thread and under
// its lock; by the learner of what it knows already. Owns its state; the pattern is shared.
// Allocates nothing after construction.
//
// An event is the expected one, or one of the next few or last few (left out, reordered by
// threads), or a stranger: logging, metrics. After some strangers the job is looked for in the
// whole iteration, by an event that touches persistent buffers as only one of the pattern's does,
// or by tokens in a row that stand together only once: a short last batch or an evaluation leads
// back into the next iteration at the latest.
//
// Invariants
//   1. A position is given only for an event of the same token whose touches are the pattern's:
//   buffers and allocations are
//      matched one to one, persistent buffers with their own allocation, the others with one of
//      this iteration.
//   2. No position is given twice in an iteration.
//   3. A stranger changes no buffer's allocation.
// Persistent buffers whose allocation the pattern does not know (it is another process'), or which
// the program has freed, are matched at their first touch; anew once the job is lost, and by any
// other touch behind an iteration that had misses. Never: reads a clock.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler/learn/iteration_pattern.h"
#include "scheduler/learn/number_map.h"

namespace spillway::scheduler {

enum class Tracking : uint8_t {
  kFollowing,  // the event is number `position` of the iteration
  kAstray,     // it is not, but a few such are expected
  kLost,       // nothing was known for long
};

struct Followed {
  Tracking tracking = Tracking::kLost;
  int32_t position = -1;  // of this event; -1: it is a stranger, or a free, or the program waited
  bool began_iteration = false;  // it is the first that was followed in its iteration
};

// The tokens of the last events, the newest last.
class TokenContext {
 public:
  static constexpr int32_t kSize = 32;

  void Add(uint64_t token) { tokens_[count_++ % kSize] = token; }
  int32_t size() const { return static_cast<int32_t>(std::min<uint32_t>(count_, kSize)); }
  uint64_t Back(int32_t count) const {
    return tokens_[(count_ - 1 - static_cast<uint32_t>(count)) % kSize];
  }

 private:
  std::array<uint64_t, kSize> tokens_{};
  uint32_t count_ = 0;
};

class IterationFollower {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  explicit IterationFollower(std::shared_ptr<const IterationPattern> pattern);

  Followed Observe(const JobEvent& event);
  // The job is known to come to that event next.
  void Expect(int32_t next);
  // Looks for a stranger in the whole iteration: by the tokens that came last, its own included.
  // For a follower that has not observed the events before.
  Followed Resume(const JobEvent& event, const TokenContext& context);

  const IterationPattern& pattern() const { return *pattern_; }
  const std::shared_ptr<const IterationPattern>& shared_pattern() const { return pattern_; }
  Tracking tracking() const { return tracking_; }
  // The event that is expected next.
  int32_t next() const { return next_; }
  // The buffer's allocation now, 0 where that is not known yet; and the other way round, -1 for
  // none. Until its first touch it is a guess: of several allocations of equal size another may
  // turn out to be the buffer.
  uint64_t AllocationOf(int32_t buffer) const { return bound_[Index(buffer)].allocation; }
  int32_t BufferOf(uint64_t allocation) const {
    const int32_t* buffer = buffer_of_.Find(allocation);
    return buffer == nullptr ? -1 : *buffer;
  }
  // How many events are expected before the one that touches what the buffer is now; 0: the next
  // one does. kNever where neither this iteration nor, the buffer outliving it, the next one does.
  int64_t NextUse(int32_t buffer) const;

  // Events that were other than expected (strangers, left-out ones): of this iteration so far, and
  // of the last one.
  int64_t misses() const { return strangers_; }
  int64_t last_misses() const { return last_misses_; }
  // The last iteration was left for another one after that many of its events; its size where it
  // was not.
  int32_t last_end() const { return last_end_; }
  int64_t iterations() const { return iterations_; }
  // Iterations of which every event came.
  int64_t whole_iterations() const { return whole_iterations_; }
  // Since the last event that was followed.
  int64_t strangers_in_a_row() const { return strangers_in_a_row_; }

 private:
  enum class Match : uint8_t {
    kNone,
    kWeak,    // nothing speaks against it
    kStrong,  // it touches what the pattern's event touches
  };
  struct Binding {
    uint64_t allocation = 0;
    bool is_certain = false;  // touched in this iteration, or the pattern's own word
  };
  struct Place {
    uint64_t token = 0;
    int32_t event = -1;
    auto operator<=>(const Place&) const = default;
  };
  struct Range {
    int32_t begin = 0, end = 0;  // in places_
  };

  static size_t Index(int32_t i) { return static_cast<size_t>(i); }
  const PatternEvent& EventAt(int32_t position) const { return pattern_->events[Index(position)]; }
  bool IsSeen(int32_t position) const { return seen_in_[Index(position)] == iterations_; }

  void SortPlaces();
  void SortTouches();
  void SortChangingBuffers();
  Match MatchAt(int32_t position, const JobEvent& event) const;
  Match MatchPersistent(int32_t position, const JobEvent& event) const;
  Match MatchBuffer(int32_t buffer, uint64_t allocation) const;
  int32_t SharedContext(int32_t position, const TokenContext& context) const;
  int32_t FindNear(Range places, const JobEvent& event) const;
  int32_t FindPastTheEnd(Range places, const JobEvent& event) const;
  int32_t FindFar(Range places, const JobEvent& event, const TokenContext& context) const;
  Followed FollowElsewhere(const JobEvent& event);
  Followed Accept(int32_t position, const JobEvent& event);
  Followed Stray();
  void Bind(int32_t buffer, uint64_t allocation);
  void Unbind(int32_t buffer);
  void Freed(uint64_t allocation);
  void EndIteration();
  void HandOn();
  bool IsThePatterns(int32_t buffer) const;
  void ForgetBuffers();
  void DoubtSuccessors();
  bool MayBeLost() const { return strangers_in_a_row_ > lost_after_; }

  // Constant after construction.
  std::shared_ptr<const IterationPattern> pattern_;
  std::vector<Place> places_;          // sorted
  NumberMap<Range> places_of_;         // by token
  std::vector<int32_t> touch_begins_;  // by buffer, and the end: in touch_events_
  std::vector<int32_t> touch_events_;  // ascending for each buffer
  std::vector<int32_t>
      changing_buffers_;  // those not persistent; older ones of an allocation first
  int64_t lost_after_ = 0;

  std::vector<Binding> bound_;    // by buffer
  NumberMap<int32_t> buffer_of_;  // by allocation
  std::vector<int64_t> seen_in_;  // by event: the number of the last iteration in which it came
  TokenContext context_;
  Tracking tracking_ = Tracking::kLost;
  int32_t next_ = 0, last_end_ = 0;
  bool is_new_iteration_ = true;
  int64_t seen_ = 0, strangers_ = 0, strangers_in_a_row_ = 0;
  int64_t last_misses_ = 0, iterations_ = 1, whole_iterations_ = 0;
};

}  // namespace spillway::scheduler
