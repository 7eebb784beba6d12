// Finds a job's iterations in the stream of its events, and says of every event which one of the iteration it is.
//
// Called by the recorder's reader with each event's identity in order, on one thread; one detector per stream of events
// (a CUDA stream, or the process where there is but one). A pure decider: no clock, no randomness, no threads.
//
// An identity is a hash of what the event is: function, shape, sizes, and which buffers it touches, long-lived ones by
// their number, young ones by how many allocations ago they were made. Never raw addresses. As equal layers touch different
// weights, their events differ.
//
// An iteration is claimed after it has repeated itself exactly once: two in a row that are equal. From then on events are
// followed in it; events that are inserted or left out (logging, a short batch, an evaluation) lead astray for a while, and
// a few known events in a row lead back, into the same iteration or another known one. Iterations that consist of inner ones
// (gradient accumulation: n equal steps and an update) are first claimed as the inner ones, then as a whole.
//
// Invariants
//  1. A claimed iteration has been seen twice in a row, equal event by event. Nothing else is ever claimed.
//  2. `position` is given only while the last events agree with the iteration.
//  3. Memory is bounded: longest iteration, IterationProfiles::kMost of them.
// Source: DESIGN section 4; AutoSwap's iteration detection (Zhang et al. 2019, section 3) knows exact repetition only.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/learn/iteration_profiles.h"
#include "scheduler/learn/period_finder.h"

namespace spillway::scheduler {

enum class Tracking : uint8_t {
  kSearching,  // no iteration is known yet
  kFollowing,  // the event is number `position` of iteration `profile`
  kAstray,     // it is not, but a few such are expected: logging and the like
  kLost,       // nothing known for long
};

struct Step {
  Tracking tracking = Tracking::kSearching;
  int32_t profile = -1;
  int64_t position = -1;         // of this event, when following
  bool ends_iteration = false;   // it is the last of its iteration, and the iteration was whole
  bool learned_profile = false;  // `profile` was claimed with this event
};

struct DetectorCounts {
  int64_t events = 0;
  int64_t whole_iterations = 0;
  int64_t inserted_events = 0;  // came where another was expected
  int64_t times_lost = 0;
};

class IterationDetector {
 public:
  explicit IterationDetector(int64_t longest_iteration = 1 << 20);

  Step Add(uint64_t event);
  const IterationProfiles& profiles() const { return profiles_; }
  const DetectorCounts& counts() const { return counts_; }

 private:
  // What came between two stretches of an iteration that otherwise goes on: the update after a few inner iterations.
  struct Between {
    int64_t followed = 0;  // events of the iteration since the last such
    int64_t at = -1;       // the event that was expected when it came
    int64_t events = 0;
    uint64_t hash = 0;
    bool operator==(const Between&) const = default;
  };

  void Remember(uint64_t event);
  std::vector<uint64_t> Last(int64_t count) const;
  uint64_t Back(int64_t count) const;
  Step Follow(uint64_t event);
  Step Advance();
  Step Stray();
  Step Resume(ProfilePosition found);
  bool EndsIteration(int64_t followed);
  void Claim(int64_t period, Step* step);
  void NoteBetween(Between between, Step* step);
  bool RepeatsItself(int64_t period) const;
  int64_t SizeOf(int32_t profile) const { return static_cast<int64_t>(profiles_.events(profile).size()); }
  int64_t LostAfter() const;

  const int64_t longest_;
  PeriodFinder finder_;
  IterationProfiles profiles_;
  DetectorCounts counts_;
  std::vector<uint64_t> history_;  // a ring, grown on demand to twice the longest iteration
  ProfilePosition at_;
  Tracking tracking_ = Tracking::kSearching;
  int64_t astray_ = 0;         // events since the last one that was followed
  int64_t whole_ = 0;          // events of this iteration that were followed
  int64_t since_between_ = 0;  // events that were followed since something came between
  Between last_between_;
};

}  // namespace spillway::scheduler
