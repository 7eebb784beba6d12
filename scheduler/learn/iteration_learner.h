// Finds a job's iterations in the stream of its events and makes patterns of them.
//
// Called by the recorder's reader with each event in order, on one thread. A pure decider: no
// clock, no randomness. Owns the last events of the job, as many as two of the longest iterations
// have.
//
// Invariants
//   1. A claimed iteration was seen twice in a row: equal token for token, and the allocations that
//   the one touches are those of
//      the other (persistent), or were made at the same place of their own iteration. Nothing else
//      is ever claimed: equal layers, which touch other weights, are no iteration.
//   2. At most kMostPatterns are kept; a new one takes the place of the one seen longest ago. One
//   that turns out to be a part of
//      a longer one (gradient accumulation) gives way to it. So does each loop in an iteration,
//      also where the loops know all its events: what the whole touches in every iteration is
//      clearly more than what any of them does.
//   3. Memory is bounded by the longest iteration; the time for an event is constant, amortised.
//   4. With several threads, what they do is one sequence while it repeats as one. Where their
//   order varies too much for that,
//      the thread that does most is learned, and what the others do is passed over.
// Source: DESIGN section 4; AutoSwap's iteration detection (Zhang et al. 2019, section 3) knows
// exact repetition only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/learn/iteration_pattern.h"
#include "scheduler/learn/sequence_learner.h"

namespace spillway::scheduler {

struct LearnerOptions {
  // In events; a longer one is not found. Until one is, some 160 bytes are kept for each of these.
  int64_t longest_iteration = int64_t{1} << 18;
};

class IterationLearner {
 public:
  static constexpr int32_t kMostPatterns = 8;
  using Pattern = std::shared_ptr<const IterationPattern>;

  explicit IterationLearner(LearnerOptions options = {});

  // What was alive when recording began, before the first event; sizes as in its JobEvent.
  void AddAlive(uint64_t allocation, int64_t size_bytes, int64_t content_bytes);
  // A pattern that was not known until this event, or null.
  Pattern Add(const JobEvent& event);
  // Events were lost here: nothing repeats across this place.
  void AddGap();

  // Those that are known, the one seen last first.
  std::vector<Pattern> Patterns() const;

 private:
  struct Thread {
    uint32_t number = 0;
    std::unique_ptr<SequenceLearner> sequence;
  };
  template <typename Function>
  void ForEach(Function&& function) {
    function(&all_);
    for (Thread& thread : threads_) function(thread.sequence.get());
  }
  Pattern AddToThreads(const JobEvent& event);
  Thread* FindThread(uint32_t number);
  void Introduce(const JobEvent& event, Thread* to);

  const LearnerOptions options_;
  SequenceLearner all_;
  std::optional<uint32_t> first_thread_;
  std::vector<Thread> threads_;  // in the order in which they came
};

}  // namespace spillway::scheduler
