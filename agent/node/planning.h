// The node's interface to the planner. The daemon's implementation is in agent/planning; tests have
// fakes, and a node may have none.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "agent/arbiter/terms.h"
#include "base/unique_fd.h"
#include "protocol/message.h"

namespace spillway::agent {

// The owner of plans: a user, alone or within one pod or container. And who asks in the owner's
// name.
struct PlanOwner {
  // Shares the planners: the user, or the whole pod or container, whose processes can take any user
  // id.
  std::string tenant;
  std::string name;  // of a folder; unique
  std::string job = {};
  uint32_t device_number = 0;  // the agent's
};

inline constexpr size_t kPlanOutcomes = static_cast<size_t>(protocol::PlanOutcome::kNotHere);
inline constexpr std::array<const char*, kPlanOutcomes> kPlanOutcomeNames = {
    "made", "kept", "none", "refused", "busy", "expired", "failed", "not_here"};

inline constexpr std::array<double, 8> kPlanSeconds = {0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30};

struct PlanningView {
  std::array<int64_t, kPlanOutcomes> outcomes = {};  // of requests; kMade is the first
  int64_t recalls_served = 0, recalls_empty = 0;
  int64_t waiting = 0, running = 0;
  std::array<int64_t, kPlanSeconds.size() + 1> by_seconds = {};  // as Durations::counts
  int64_t planning_ns = 0;
  int64_t given_bytes = 0;  // of plans handed out and still open somewhere
  int64_t store_bytes = 0, store_most_bytes = 0, store_plans = 0;
  int64_t store_damaged = 0, store_evicted = 0, store_not_written = 0;
};

class Planning {
 public:
  struct Request {
    SessionId session{};
    PlanOwner owner;
    protocol::AskPlan ask;
    base::UniqueFd file;  // sealed
  };
  struct Reply {
    SessionId session{};
    std::variant<protocol::PlanReply, protocol::RecalledPlans> message;
    std::vector<base::UniqueFd> files;
  };

  virtual ~Planning() = default;
  // Each request gets one reply, unless the session is forgotten.
  virtual void Ask(Request request) = 0;
  virtual void Recall(SessionId session, const PlanOwner& owner,
                      const protocol::RecallPlans& recall) = 0;
  virtual void Forget(SessionId session) = 0;
  virtual std::vector<Reply> TakeReplies() = 0;
  virtual PlanningView View() const = 0;
};

}  // namespace spillway::agent
