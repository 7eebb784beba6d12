#include "tests/bench/seats/experiment.h"

#include "simulator/driver/machine/profile.h"
#include "tests/support/paths.h"

namespace spillway::seats {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

// Without a cost factor to speak of, the quantum decides how long a turn lasts.
NamedPolicy TurnsOf(int64_t seconds) {
  agent::TurnRules rules;
  rules.quantum_ns = seconds * kSecondNs;
  rules.cost_factor = 1;
  return {"turns, " + std::to_string(seconds) + " s", [rules] { return MakeTurns(rules); }};
}

Row RowOf(const DeviceFacts& facts, const Scenario& scenario, const NamedPolicy& policy) {
  Row row = {facts.name, scenario.name, policy.name, 0, {}};
  for (const int permille : scenario.need_permille) row.oversubscription += permille / 1000.0;
  row.result = Simulate(facts, scenario, *policy.make());
  return row;
}

}  // namespace

std::vector<Scenario> Scenarios(const Settings& settings) {
  std::vector<Scenario> scenarios = {
      {.name = "1.5x: 60, 90 %", .need_permille = {600, 900}},
      {.name = "2x: 65, 65, 70 %", .need_permille = {650, 650, 700}},
      {.name = kGoal, .need_permille = {510, 510, 510, 510}},
      {.name = "3x: 60, 3 of 80 %", .need_permille = {600, 800, 800, 800}},
      {.name = "4x: 5 of 80 %", .need_permille = {800, 800, 800, 800, 800}},
  };
  for (Scenario& scenario : scenarios) {
    scenario.request_gap_ns = settings.gap_ns;
    scenario.duration_ns = settings.duration_ns;
    scenario.tick_ns = settings.tick_ns;
    scenario.seed = settings.seed;
  }
  return scenarios;
}

std::vector<NamedPolicy> Policies() {
  return {{"shares", MakeShares},
          {kTurns, [] { return MakeTurns({}); }},
          TurnsOf(2),
          TurnsOf(4),
          TurnsOf(8),
          TurnsOf(30),
          {kFirstCome, [] { return MakeFirstCome({}); }},
          {"managed (a model)", MakeManaged}};
}

base::Result<DeviceFacts> FindDevice(const std::string& name) {
  const auto profile = simulator::LoadProfile(name, test::SourcePath("simulator/profiles"));
  if (!profile.ok()) return profile.error();
  const auto rate = [](uint64_t bytes) { return static_cast<int64_t>(bytes); };
  return DeviceFacts{
      profile->name,
      static_cast<int64_t>(profile->capacity_bytes),
      {rate(profile->h2d_bytes_per_second), rate(profile->d2h_bytes_per_second),
       rate(profile->h2d_both_bytes_per_second), rate(profile->d2h_both_bytes_per_second)}};
}

std::vector<Row> Compare(const DeviceFacts& facts, const Scenario& scenario) {
  Scenario alone = scenario;
  alone.need_permille.resize(1);
  std::vector<Row> rows = {RowOf(facts, alone, {kAlone, MakeShares})};
  for (const NamedPolicy& policy : Policies()) rows.push_back(RowOf(facts, scenario, policy));
  return rows;
}

}  // namespace spillway::seats
