#include "agent/planning/shown_plans.h"

#include <utility>

namespace spillway::agent {

void ShownPlans::Keep(Plan plan) {
  plans_.remove_if([&](const Plan& other) {
    const bool is_replaced = other.session == plan.session && other.device == plan.device;
    if (is_replaced) bytes_ -= other.bytes->size();
    return is_replaced;
  });
  if (plan.bytes->size() > kMostPlanBytes) return;
  bytes_ += plan.bytes->size();
  plans_.push_back(std::move(plan));
  while (bytes_ > kMostBytes) {
    bytes_ -= plans_.front().bytes->size();
    plans_.pop_front();
  }
}

void ShownPlans::Forget(SessionId session) {
  plans_.remove_if([&](const Plan& plan) {
    if (plan.session == session) bytes_ -= plan.bytes->size();
    return plan.session == session;
  });
}

std::vector<ShownPlans::Plan> ShownPlans::Of(std::string_view job) const {
  std::vector<Plan> found;
  for (const Plan& plan : plans_) {
    if (plan.job == job) found.push_back(plan);
  }
  return found;
}

}  // namespace spillway::agent
