// Another maker of plans for this process, which also keeps those of earlier runs.
//
// Calls need no lock and may block, but not for long: a source without a plan answers so.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/plan/plan_codec.h"

namespace spillway::interposer {

class PlanSource {
 public:
  // Plans of earlier runs. Each is sound, but may be of another iteration than this run's.
  virtual std::vector<scheduler::StoredPlan> Recall(int device, std::uint64_t program) = 0;
  // The caller judges the plan. Nothing: the caller makes its own.
  virtual std::optional<scheduler::Plan> Make(int device, std::uint64_t program,
                                              const scheduler::PlanOrder& order) = 0;

 protected:
  ~PlanSource() = default;
};

}  // namespace spillway::interposer
