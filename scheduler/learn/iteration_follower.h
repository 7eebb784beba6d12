// Matches a job's events to a pattern, and tracks each pattern buffer's current allocation.
//
// The executor calls it for each event before the call proceeds, under its lock. The learner uses
// one to detect what it already knows. Allocates nothing after construction.
//
// A stray operation of the pattern (kAnyToken) is any operation that is not the next one after it.
//
// After some unknown events (logging, an evaluation, a short last batch) the follower searches the
// whole iteration. It needs an event whose touches of persistent buffers, or whose preceding
// tokens, occur only once.
//
// Invariants
//   1. A position is returned only if token and touches match, or for any operation in a stray
//      one's place; that binds no buffer. Buffers and allocations match one to
//      one. Persistent buffers match their own allocations, others an allocation of this iteration.
//   2. No position is returned twice in an iteration.
//   3. An unknown event changes no buffer's allocation.
//   4. A persistent buffer without a known allocation (freed, or of another process) is matched at
//      its first touch. A lost follower matches it anew; after an iteration with misses, any other
//      touch may.
// Never reads a clock.
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
  kUncertain,  // an unknown event, one of a few expected
  kLost,       // too many unknown events in a row
};

struct Followed {
  Tracking tracking = Tracking::kLost;
  // -1: an unknown event, a free or a synchronisation.
  int32_t position = -1;
  bool began_iteration = false;  // the first followed event of its iteration
};

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
  void Expect(int32_t next);
  // Searches the whole iteration by the latest tokens, including the event's own. For a follower
  // that did not observe the preceding events.
  Followed Resume(const JobEvent& event, const TokenContext& context);

  const IterationPattern& pattern() const { return *pattern_; }
  const std::shared_ptr<const IterationPattern>& shared_pattern() const { return pattern_; }
  Tracking tracking() const { return tracking_; }
  int32_t next() const { return next_; }
  // 0: unknown; -1: none. Before the first touch a guess: the buffer may be another allocation of
  // equal size.
  uint64_t AllocationOf(int32_t buffer) const { return bound_[Index(buffer)].allocation; }
  int32_t BufferOf(uint64_t allocation) const {
    const int32_t* buffer = buffer_of_.Find(allocation);
    return buffer == nullptr ? -1 : *buffer;
  }
  // Events before the next touch; 0: the next event touches it. kNever if neither this iteration
  // nor the next one does.
  int64_t NextUse(int32_t buffer) const;

  // Unknown events of this iteration so far; unknown and left-out events of the last one.
  int64_t misses() const { return unknown_; }
  int64_t last_misses() const { return last_misses_; }
  // Where the last iteration was left for another; its size if it was completed.
  int32_t last_end() const { return last_end_; }
  int64_t iterations() const { return iterations_; }
  // Iterations without a left-out event.
  int64_t whole_iterations() const { return whole_iterations_; }
  int64_t unknown_in_a_row() const { return unknown_in_a_row_; }

 private:
  enum class Match : uint8_t {
    kNone,
    kWeak,    // nothing contradicts it
    kStrong,  // it touches the same buffers as the pattern's event
  };
  struct Binding {
    uint64_t allocation = 0;
    bool is_certain = false;  // touched in this iteration, or given by the pattern
  };
  struct Place {
    uint64_t token = 0;
    int32_t event = -1;
    auto operator<=>(const Place&) const = default;
  };
  struct Range {
    int32_t begin = 0, end = 0;  // indices into places_
  };

  static size_t Index(int32_t i) { return static_cast<size_t>(i); }
  const PatternEvent& EventAt(int32_t position) const { return pattern_->events[Index(position)]; }
  bool IsSeen(int32_t position) const { return seen_in_[Index(position)] == iterations_; }

  void SortPlaces();
  void SortTouches();
  void SortChangingBuffers();
  bool TakesAny(const JobEvent& event) const;
  // Nearly every operation: it touches the buffers' certain allocations, so it binds nothing anew.
  bool IsBoundAt(int32_t position, const JobEvent& event) const;
  Match MatchAt(int32_t position, const JobEvent& event) const;
  Match MatchPersistent(int32_t position, const JobEvent& event) const;
  Match MatchBuffer(int32_t buffer, uint64_t allocation) const {
    return AllocationOf(buffer) == allocation ? Match::kStrong : MatchOther(buffer, allocation);
  }
  Match MatchOther(int32_t buffer, uint64_t allocation) const;
  int32_t SharedContext(int32_t position, const TokenContext& context) const;
  int32_t FindNear(Range places, const JobEvent& event) const;
  int32_t FindPastTheEnd(Range places, const JobEvent& event) const;
  int32_t FindFar(Range places, const JobEvent& event, const TokenContext& context) const;
  Followed FollowElsewhere(const JobEvent& event);
  Followed Accept(int32_t position, const JobEvent& event);
  Followed Advance(int32_t position);
  Followed NoteUnknown();
  void Bind(int32_t buffer, uint64_t allocation) {
    if (AllocationOf(buffer) != allocation) Rebind(buffer, allocation);
  }
  void Rebind(int32_t buffer, uint64_t allocation);
  void Unbind(int32_t buffer);
  void Freed(uint64_t allocation);
  void EndIteration();
  void HandOn();
  bool HasPatternAllocation(int32_t buffer) const;
  void ForgetBuffers();
  void ClearCertainty();
  bool MayBeLost() const { return unknown_in_a_row_ > lost_after_; }

  // Constant after construction.
  std::shared_ptr<const IterationPattern> pattern_;
  std::vector<Place> places_;          // sorted by token, then event
  NumberMap<Range> places_of_;         // by token
  std::vector<int32_t> touch_begins_;  // by buffer, plus the end: index into touch_events_
  std::vector<int32_t> touch_events_;  // ascending for each buffer
  // Non-persistent buffers; those later in a chain of `becomes` first.
  std::vector<int32_t> changing_buffers_;
  int64_t lost_after_ = 0;

  std::vector<Binding> bound_;    // by buffer
  NumberMap<int32_t> buffer_of_;  // by allocation
  std::vector<int64_t> seen_in_;  // by event: the last iteration that had it
  TokenContext context_;
  Tracking tracking_ = Tracking::kLost;
  int32_t next_ = 0, last_end_ = 0;
  bool is_new_iteration_ = true;
  int64_t seen_ = 0, unknown_ = 0, unknown_in_a_row_ = 0;
  int64_t last_misses_ = 0, iterations_ = 1, whole_iterations_ = 0;
};

}  // namespace spillway::scheduler
