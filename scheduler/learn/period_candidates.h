// Distances at which a sequence of tokens seems to repeat, and for how long.
//
// Owned by a sequence learner, which reports every new token.
//
// The distance between equal runs of kContext tokens becomes a candidate. It lasts while each new
// token equals the one at that distance. Equal layers thus propose their own short distance but
// cannot hide the iteration's, which comes up outside the layers and outlives theirs.
//
// Invariants
//   1. The last `run` tokens of a candidate equal those `distance` before them, except for stray
//      operations (repetition.h) of long iterations: at most one in kTokensPerStray, and four in a
//      row.
//   2. Memory is bounded. Each token takes constant amortised time.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/learn/event_history.h"

namespace spillway::scheduler {

// So many equal tokens pay for one that differs. A transformer's iteration may have one per layer:
// PyTorch's GPT-2 of four layers has three or four in some 520 events.
inline constexpr int64_t kTokensPerStray = 64;
// Events. Shorter iterations have none: a stray operation in each would make loops of equal layers.
inline constexpr int64_t kShortestWithStrays = 256;

struct PeriodCandidate {
  int64_t distance = 0;
  int64_t run = 0;
  int64_t paid = 0;                      // equal tokens that have not paid for a stray one
  int64_t compare_at_run = 0;            // not compared in full before this run
  int64_t looks = 0;                     // full comparisons that failed
  int64_t wider_at_run = 0;              // not compared with a longer iteration before this run
  int64_t failed_wider_comparisons = 0;  // such comparisons that failed
};

class PeriodCandidates {
 public:
  static constexpr int kContext = 8;
  static constexpr size_t kMost = 16;

  explicit PeriodCandidates(int64_t longest);

  // Call after each token, which is at `history.end() - 1`.
  void Add(const EventHistory& history);
  std::vector<PeriodCandidate>& candidates() { return candidates_; }
  void Propose(int64_t distance, int64_t run);
  void Clear();
  int64_t longest() const { return longest_; }

 private:
  struct Place {
    uint64_t hash = 0;
    int64_t end = 0;  // where the context last ended; 0: free
  };
  static constexpr size_t kPlacesPerBucket = 4;

  bool Forgive(const EventHistory& history, PeriodCandidate* candidate) const;
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
  int64_t begin_ = 0;   // where contexts begin
  int64_t credit_ = 0;  // budget for backward steps
};

}  // namespace spillway::scheduler
