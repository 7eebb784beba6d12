// Plans from elsewhere: of somebody who makes them for this process, and keeps those of the
// program's earlier runs.
//
// The node agent's place (remote_planner.h); tests have one of their own. Called without a lock; it
// takes time, but never long: who has nothing says so.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/plan/plan_codec.h"

namespace spillway::interposer {

class PlanSource {
 public:
  // What is kept of earlier runs; each is sound, and may be of another iteration than this run's.
  virtual std::vector<scheduler::StoredPlan> Recall(int device, std::uint64_t program) = 0;
  // A plan to be judged by whoever follows it. Nothing: he makes it himself.
  virtual std::optional<scheduler::Plan> Make(int device, std::uint64_t program,
                                              const scheduler::PlanOrder& order) = 0;

 protected:
  ~PlanSource() = default;
};

}  // namespace spillway::interposer
