// The plan that each job was given last on each device, for the agent's page. Pure; guarded by its
// owner.
//
// Invariants
//  1. The plans have at most kMostBytes together. The one given longest ago makes room. A plan of
//  more
//     than kMostPlanBytes is not kept.
//  2. A session's plans are gone after Forget.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/arbiter/terms.h"

namespace spillway::agent {

class ShownPlans {
 public:
  static constexpr size_t kMostBytes = size_t{32} << 20, kMostPlanBytes = kMostBytes / 4;

  struct Plan {
    SessionId session{};
    std::string job;
    uint32_t device = 0;      // the agent's number
    const char* origin = "";  // "made", "kept", "recalled"
    std::shared_ptr<const std::string> bytes;
  };

  // Replaces the session's plan for that device.
  void Keep(Plan plan);
  void Forget(SessionId session);
  std::vector<Plan> Of(std::string_view job) const;

 private:
  std::list<Plan> plans_;  // the newest last
  size_t bytes_ = 0;       // of all
};

}  // namespace spillway::agent
