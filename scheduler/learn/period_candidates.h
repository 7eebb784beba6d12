// Distances at which a sequence of tokens seems to repeat itself, several at once, each with how
// long it has done so.
//
// Owned by a sequence learner, which tells it of every token that its history got, on one thread. A
// plain value.
//
// Every run of kContext tokens is looked up where it ended last; that distance is a candidate from
// then on, for as long as token after token equals the one so far back. Equal layers so bring up
// their own short distance, and cannot hide the whole iteration's, which comes up at the first
// place that the layers do not fill and then outlives theirs.
//
// Invariants
//   1. The last `run` tokens of a candidate equal those `distance` before them.
//   2. Memory is bounded; the time for a token is constant, amortised.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/learn/event_history.h"

namespace spillway::scheduler {

struct PeriodCandidate {
  int64_t distance = 0;
  int64_t run = 0;
  int64_t look_at_run = 0;   // not worth a closer look before
  int64_t looks = 0;         // so far, in vain
  int64_t wider_at_run = 0;  // not worth a look for a longer iteration than those known before
  int64_t wider_looks = 0;   // for that so far, in vain
};

class PeriodCandidates {
 public:
  static constexpr int kContext = 8;
  static constexpr size_t kMost = 16;

  explicit PeriodCandidates(int64_t longest);

  // The token at `history.end() - 1` is new.
  void Add(const EventHistory& history);
  std::vector<PeriodCandidate>& candidates() { return candidates_; }
  // Another distance that is to be watched, `run` being known.
  void Propose(int64_t distance, int64_t run);
  void Clear();
  int64_t longest() const { return longest_; }

 private:
  struct Place {
    uint64_t hash = 0;
    int64_t end = 0;  // where that context ended last; 0: free
  };
  static constexpr size_t kPlacesPerBucket = 4;

  void Extend(const EventHistory& history);
  void HashContext(const EventHistory& history);
  int64_t ExchangePlace(uint64_t hash, int64_t end);
  void GrowPlaces();
  int64_t RunAt(const EventHistory& history, int64_t distance);

  const int64_t longest_;
  std::vector<PeriodCandidate> candidates_;
  std::vector<Place> places_;  // buckets of a few
  size_t most_places_;
  size_t places_taken_ = 0;
  uint64_t context_hash_ = 0;
  int64_t begin_ = 0;   // of the tokens that contexts are made of
  int64_t credit_ = 0;  // steps back that may be taken
};

}  // namespace spillway::scheduler
