// The promises of turns to an interactive job beside batch jobs, at half an hour of virtual time.
// `seats` (tests/bench) prints the whole table.
#include <gtest/gtest.h>

#include "base/units.h"
#include "tests/bench/seats/report.h"

namespace spillway::seats {
namespace {

Scenario Short(const char* name) {
  Settings settings;
  settings.duration_ns = 1800 * base::kNanosPerSecond;
  settings.tick_ns = 20'000'000;
  for (const Scenario& scenario : Scenarios(settings)) {
    if (scenario.name == name) return scenario;
  }
  ADD_FAILURE() << "no jobs " << name;
  return {};
}

DeviceFacts H200() { return *FindDevice("h200"); }

TEST(SeatsTest, TurnsAnswerRequestsSoonerThanAQueueAndKeepBatchGoing) {
  const Scenario scenario = Short(kGoal);
  const Result turns = Simulate(H200(), scenario, *MakeTurns({}));
  const Result queue = Simulate(H200(), scenario, *MakeFirstCome({}));
  const Verdict verdict =
      JudgeGoal({{"h200", kGoal, kTurns, 2, turns}, {"h200", kGoal, kFirstCome, 2, queue}});
  EXPECT_TRUE(verdict.is_met) << verdict.text;
}

TEST(SeatsTest, NoJobStarvesInTurns) {
  const Result turns = Simulate(H200(), Short("4x: 5 of 80 %"), *MakeTurns({}));
  EXPECT_LE(turns.unanswered, 1);
  EXPECT_GT(turns.least_part, 0.8);
  EXPECT_LT(turns.longest_wait_ns, 300 * base::kNanosPerSecond);
  EXPECT_LE(turns.most_held_bytes, H200().memory_bytes);
}

// 30 s for each of three batch jobs, with requests served only between.
TEST(SeatsTest, AQueueMakesRequestsWaitForAllOthersTurns) {
  const Result queue = Simulate(H200(), Short(kGoal), *MakeFirstCome({}));
  EXPECT_GT(queue.LatencyNs(95), 80 * base::kNanosPerSecond);
  EXPECT_LT(queue.longest_wait_ns, 100 * base::kNanosPerSecond);
}

TEST(SeatsTest, EqualSeedsGiveEqualResults) {
  const Scenario scenario = Short("1.5x: 60, 90 %");
  EXPECT_EQ(Simulate(H200(), scenario, *MakeTurns({})).latencies_ns,
            Simulate(H200(), scenario, *MakeTurns({})).latencies_ns);
}

}  // namespace
}  // namespace spillway::seats
