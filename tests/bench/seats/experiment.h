// The peers' benchmark: which jobs meet on which device, and under which policies.
//
// Called by the program and its tests, on one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/bench/seats/run.h"

namespace spillway::seats {

struct NamedPolicy {
  std::string name;
  std::function<std::unique_ptr<Policy>()> make;
};

struct Row {
  std::string device, scenario, policy;
  double oversubscription = 0;
  Result result;
};

struct Settings {
  std::vector<std::string> devices = {"h200", "1080ti"};
  int64_t gap_ns = Scenario{}.request_gap_ns;
  int64_t duration_ns = Scenario{}.duration_ns;
  int64_t tick_ns = Scenario{}.tick_ns;
  uint64_t seed = 1;
};

inline constexpr const char* kAlone = "alone";
inline constexpr const char* kTurns = "turns, default rules";
inline constexpr const char* kFirstCome = "first come, 30 s";
// Four jobs that together want twice the device are smaller than 60 % of it each. No two fit.
inline constexpr const char* kGoal = "2x: 4 of 51 %";

std::vector<Scenario> Scenarios(const Settings& settings);
std::vector<NamedPolicy> Policies();
base::Result<DeviceFacts> FindDevice(const std::string& name);

// One row for the interactive job alone, then one per policy.
std::vector<Row> Compare(const DeviceFacts& facts, const Scenario& scenario);

}  // namespace spillway::seats
