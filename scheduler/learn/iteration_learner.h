// Finds a job's iterations in its stream of events and makes patterns of them.
//
// Called by the recorder's reader, on one thread. Pure. Owns the job's latest events, up to two of
// the longest iterations.
//
// Invariants
//   1. A claimed iteration occurred twice in a row with equal tokens, but for a few stray
//      operations (repetition.h). Both touch the same allocations (persistent), or allocations made
//      at the same position of each. So equal layers, which touch different weights, are never an
//      iteration.
//   2. At most kMostPatterns are kept; a new one replaces the one seen longest ago. A part
//      (gradient accumulation) or a loop gives way to the longer iteration around it, which touches
//      clearly more.
//   3. Memory is bounded by the longest iteration. Each event takes constant amortised time.
//   4. Several threads count as one sequence while their joint order repeats. Otherwise only the
//      busiest thread is learned.
// Source: AutoSwap's iteration detection (Zhang et al. 2019, section 3), for exact repetition only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/learn/iteration_pattern.h"
#include "scheduler/learn/sequence_learner.h"

namespace spillway::scheduler {

struct LearnerOptions {
  // In events. Until an iteration is found, about 160 bytes are kept for each.
  int64_t longest_iteration = int64_t{1} << 18;
};

class IterationLearner {
 public:
  static constexpr int32_t kMostPatterns = 8;
  using Pattern = std::shared_ptr<const IterationPattern>;

  explicit IterationLearner(LearnerOptions options = {});

  // An allocation from before the recording began; sizes as in its JobEvent.
  void AddAlive(uint64_t allocation, int64_t size_bytes, int64_t content_bytes);
  Pattern Add(const JobEvent& event);
  // Events were lost here: no repetition spans this point.
  void AddGap();

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
  void AddOlderAllocations(const JobEvent& event, Thread* to);

  const LearnerOptions options_;
  SequenceLearner all_;
  std::optional<uint32_t> first_thread_;
  std::vector<Thread> threads_;  // in order of first appearance
};

}  // namespace spillway::scheduler
