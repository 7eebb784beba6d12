// Recognises the iteration of an earlier run from the first events of this one.
//
// Invariants
//  1. An iteration is recognised once half of its events have come in its order, and eight at
//     least.
//  2. One that is not recognised within a few times its events is given up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/learn/iteration_follower.h"
#include "scheduler/plan/plan_codec.h"

namespace spillway::interposer {

class StoredIterations {
 public:
  struct Recognised {
    scheduler::StoredPlan stored;
    // Its persistent buffers are allocations of this process.
    std::shared_ptr<const scheduler::IterationPattern> pattern;
  };

  // Plans that come first win.
  void Begin(std::vector<scheduler::StoredPlan> plans);
  // Takes events in order. The others are given up once one is recognised.
  std::optional<Recognised> Observe(const scheduler::JobEvent& event);
  // Whether the pattern is a part of an iteration that may still be recognised.
  bool MayContain(const scheduler::IterationPattern& pattern) const;
  void GiveUp() { candidates_.clear(); }

 private:
  struct Candidate {
    scheduler::StoredPlan stored;
    std::shared_ptr<const scheduler::IterationPattern> pattern;
    scheduler::IterationFollower follower;
    std::int64_t recognised = 0;  // events of this iteration that had a place in it
  };
  static bool IsRecognised(Candidate* candidate, const scheduler::JobEvent& event);
  static Recognised AsOfThisProcess(Candidate candidate);

  std::vector<Candidate> candidates_;
  std::int64_t events_ = 0;  // that count
};

}  // namespace spillway::interposer
