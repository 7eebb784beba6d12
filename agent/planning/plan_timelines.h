// Timelines of jobs' plans as JSON, for the agent's page. A plan comes from a process that has read
// a job's bytes, so a process without rights decodes it, as one made it.
//
// Invariants
//  1. JsonOf returns within kMostNs for each of at most kMostPlans plans, whatever is in them.
//  2. What the process answers is parsed before it is passed on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/planning/shown_plans.h"
#include "agent/planning/worker_limits.h"

namespace spillway::agent {

class PlanTimelines {
 public:
  static constexpr size_t kMostPlans = 8;
  static constexpr int64_t kMostNs = 3'000'000'000;

  explicit PlanTimelines(std::vector<std::string> worker) : worker_(std::move(worker)) {}

  // {"schema": 1, "plans": [{"device", "origin", and those of timeline_worker.cpp, or "error"}]}.
  // Waits.
  std::string JsonOf(const std::vector<ShownPlans::Plan>& plans) const;

 private:
  const std::vector<std::string> worker_;
};

}  // namespace spillway::agent
