// Finds out, token by token, that a sequence has begun to repeat itself.
//
// Called by the iteration detector with each token of a job's life, on one thread. A plain value: no clock, no randomness.
//
// Every run of kContext tokens is looked up where it ended last. While that is always the same distance back, the sequence
// repeats with that distance as its period; after one period of such finds, the last period equals the one before.
//
// Invariants
//  1. A period is told only when its last two repetitions are equal token by token (up to 64-bit hash collisions).
//  2. No place of the last `longest` tokens is forgotten; memory is bounded by twice as many.
// Cost: one look into a hash table per token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace spillway::scheduler {

struct PeriodFinderOptions {
  int context = 8;            // tokens that must agree for a place to be the same
  int64_t longest = 1 << 20;  // periods longer than this are not found
};

class PeriodFinder {
 public:
  explicit PeriodFinder(PeriodFinderOptions options = {});

  // The period, once the last `period` tokens equal those before them; 0 otherwise. While the repetition goes on, every
  // token answers it anew.
  int64_t Add(uint64_t token);

 private:
  using Places = std::unordered_map<uint64_t, int64_t>;  // by hash of the context: where it ended last

  // Where the context of that hash ended last, -1 for nowhere; from now on at `position`.
  int64_t Replace(uint64_t hash, int64_t position);
  uint64_t ContextHash() const;

  PeriodFinderOptions options_;
  Places places_, older_places_;       // the older ones are dropped when the younger become many
  std::vector<uint64_t> last_tokens_;  // a ring of `context` tokens
  int64_t position_ = 0;
  int64_t distance_ = 0;  // of the repetition under way
  int64_t run_ = 0;       // tokens in a row that were last seen at that distance
};

// Mixes a token into a hash; the order counts.
uint64_t MixToken(uint64_t hash, uint64_t token);

}  // namespace spillway::scheduler
