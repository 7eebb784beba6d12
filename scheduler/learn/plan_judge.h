// Judges a plan by what it does: iterations that follow it are compared with iterations of the same
// job without it.
//
// Told by the pipeline of each iteration of the plan's pattern, on one thread. A pure decider:
// integers come in as values.
//
// What an iteration takes without a plan is known from before the plan, or not. Where the plan's
// iterations are not clearly faster, the job goes without it for a few iterations, and both are
// compared then: so neither a measurement under other conditions nor a program that has become
// slower meanwhile decides.
//
// Invariants
//   1. The first iterations of either kind count for nothing: memory is where the other kind left
//   it.
//   2. One verdict is given, kKeep or kDrop; after it every answer is kGoOn.
//   3. A plan that takes as long as none is kept only where it moves clearly fewer bytes.
#pragma once

#include <cstdint>

namespace spillway::scheduler {

// What iterations took, on average.
struct IterationCost {
  int64_t duration_ns = 0;  // 0: not known
  int64_t moved_bytes = 0;  // to the host and back
};

class PlanJudge {
 public:
  enum class Answer : uint8_t {
    kGoOn,
    kTryWithout,  // the next iterations are to go without the plan
    kKeep,        // the plan is to be followed (again)
    kDrop,        // it is not, for good
  };

  struct Iteration {
    IterationCost cost;
    bool is_planned = false;     // by the plan; else without it
    bool is_as_expected = true;  // its events were the pattern's
  };

  // `without_ns`: what an iteration took before there was a plan; 0: not known.
  PlanJudge(int64_t predicted_ns, int64_t without_ns);

  Answer Add(const Iteration& iteration);

  bool is_decided() const { return phase_ == Phase::kDecided; }
  // As far as they are known.
  IterationCost planned() const { return planned_.Mean(); }
  IterationCost without() const { return without_.Mean(); }

  // Whether iterations that cost `planned` are no better than those that cost `without`.
  static bool IsNoBetter(IterationCost planned, IterationCost without);

 private:
  enum class Phase : uint8_t { kPlanned, kWithout, kDecided };
  struct Sum {
    int64_t iterations = 0, duration_ns = 0, moved_bytes = 0;
    void Add(IterationCost cost);
    IterationCost Mean() const;
  };

  Answer AddPlanned(IterationCost cost);
  Answer AddWithout(IterationCost cost);
  Answer Begin(Phase phase, Answer answer);
  bool IsClearlyBetter() const;
  bool IsFarWorse(IterationCost cost) const;

  const int64_t predicted_ns_;
  const int64_t without_ns_;
  Phase phase_ = Phase::kPlanned;
  int64_t seen_ = 0;      // iterations of this phase
  int64_t odd_ones_ = 0;  // of it, those that were not as expected
  Sum planned_, without_;
};

}  // namespace spillway::scheduler
