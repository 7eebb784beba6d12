// The plan before the one that is followed, until that one has shown that it is no slower.
//
// Only new measurements can make a plan worse: a new budget or link share is a fact, and a proof
// allows more. So it is a plan for the budget and the link share of the one that is followed.
// Called by the pipeline, on one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "scheduler/learn/plan_succession.h"
#include "scheduler/plan/job_planner.h"

namespace spillway::interposer {

class FormerPlan {
 public:
  // `measured_ns`: its iterations; 0: unknown, so there is nothing to compare with.
  void Note(scheduler::PlanAnswer plan, std::int64_t measured_ns) {
    if (measured_ns > 0)
      former_.emplace(Former{std::move(plan), scheduler::PlanSuccession(measured_ns)});
  }
  void Forget() { former_.reset(); }
  // For each settled iteration of the plan after it: the former plan if it is to be followed again.
  std::optional<scheduler::PlanAnswer> Judge(std::int64_t duration_ns) {
    using Answer = scheduler::PlanSuccession::Answer;
    const Answer answer = former_ ? former_->succession.Add(duration_ns) : Answer::kGoOn;
    if (answer == Answer::kGoOn) return std::nullopt;
    Former former = *std::exchange(former_, std::nullopt);
    if (answer == Answer::kStays) return std::nullopt;
    return std::move(former.plan);
  }

 private:
  struct Former {
    scheduler::PlanAnswer plan;
    scheduler::PlanSuccession succession;
  };
  std::optional<Former> former_;
};

}  // namespace spillway::interposer
