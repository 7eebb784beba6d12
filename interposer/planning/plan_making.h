// A plan for an iteration: one that is known, one from another source, or one made here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "interposer/planning/plan_source.h"
#include "protocol/message.h"
#include "scheduler/plan/job_planner.h"

namespace spillway::interposer {

using protocol::ReplanReason;
using scheduler::PlanAnswer;
using scheduler::PlanRequest;

struct PlanningRequest {
  PlanRequest asked;
  std::optional<scheduler::Plan> known;
  std::optional<scheduler::Plan> rival = {};  // the same, unless the new plan is better
  bool is_stored = false;
  PlanSource* elsewhere = nullptr;  // asked before a plan is made here
  int device_number = 0;
  std::uint64_t program = 0;
  std::int64_t job_budget_bytes = 0;
  ReplanReason reason = ReplanReason::kDrift;
};
struct PlanningAnswer {
  PlanAnswer plan;
  bool is_new = false;  // a strategy made it
  bool is_stored = false;
  bool is_from_elsewhere = false;
  std::uint64_t planning_ns = 0;
  ReplanReason reason = ReplanReason::kDrift;
};

PlanningAnswer MakeOrTakePlan(const PlanningRequest& request);

// Moves nothing. Null if it cannot be followed.
std::shared_ptr<const scheduler::LivePlan> RestingPlan(
    const std::shared_ptr<const scheduler::IterationPattern>& pattern, std::int64_t budget_bytes);

}  // namespace spillway::interposer
