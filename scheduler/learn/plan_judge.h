// Judges a plan by comparing iterations with and without it.
//
// Called by the pipeline for each iteration of the plan's pattern, on one thread. Pure.
//
// If planned iterations are not clearly faster than those before, or those are unknown, the job
// runs a few without the plan for comparison: the program may have become slower meanwhile.
//
// A plan on trial ends at once when its iterations took half an iteration longer, in sum, than
// without it.
//
// Invariants
//   1. The first iterations after each switch do not count: memory is still as the other mode left
//      it.
//   2. kDrop is final: every later answer is kGoOn. A plan that was kept and becomes clearly slower
//      is compared again, and after each time only once twice as many iterations were slower.
//   3. A plan that saves no time is kept only if it moves clearly fewer bytes.
//   4. If many iterations do not match the pattern, all iterations count, as many with the plan as
//      without it. Then no earlier time decides.
#pragma once

#include <cstdint>

namespace spillway::scheduler {

// Averages over iterations.
struct IterationCost {
  int64_t duration_ns = 0;  // 0: unknown
  int64_t moved_bytes = 0;  // in both directions
};

class PlanJudge {
 public:
  enum class Answer : uint8_t {
    kGoOn,
    kTryWithoutPlan,
    kKeep,
    kDrop,
  };

  struct Iteration {
    IterationCost cost;
    bool is_planned = false;
    bool is_as_expected = true;  // its events matched the pattern
  };

  // `without_ns`: the iteration time before the plan; 0: unknown.
  explicit PlanJudge(int64_t without_ns);

  Answer Add(const Iteration& iteration);

  IterationCost planned() const { return planned_.Mean(); }
  IterationCost without() const { return without_.Mean(); }
  // Whether the last verdict followed iterations without the plan.
  bool was_tried_without() const { return without_.iterations > 0; }

  static bool IsNoBetter(IterationCost planned, IterationCost without);

 private:
  enum class Phase : uint8_t { kPlanned, kWithoutPlan, kKept, kDropped };
  struct Sum {
    int64_t iterations = 0, duration_ns = 0, moved_bytes = 0;
    void Add(IterationCost cost);
    void Add(const Sum& other);
    IterationCost Mean() const;
  };

  Answer AddPlanned(const Iteration& iteration);
  Answer AddWithout(const Iteration& iteration);
  Answer AddKept(const Iteration& iteration);
  Answer Begin(Phase phase, Answer answer);
  bool NoteOddOne(IterationCost cost, bool is_too_dear);
  bool IsTooDear(IterationCost cost);
  bool IsClearlyBetter() const;

  const int64_t without_ns_;
  Phase phase_ = Phase::kPlanned;
  int64_t seen_ = 0;  // of this phase; unexpected ones do not count
  int64_t odd_ones_ = 0;
  bool is_irregular_ = false;  // there were too many of them
  int64_t excess_ns_ = 0;      // by which planned iterations exceeded `without_ns`, in sum
  Sum planned_, without_;
  Sum odd_;                    // unexpected iterations of this phase
  Sum kept_;                   // the latest expected ones since the plan was kept
  int64_t kept_patience_ = 8;  // how many of them are compared with planned_
};

}  // namespace spillway::scheduler
