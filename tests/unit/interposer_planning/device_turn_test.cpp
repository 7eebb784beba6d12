#include "interposer/planning/device_turn.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "interposer/execute/turn_gate.h"
#include "interposer/planning/idleness.h"

namespace spillway::interposer {
namespace {

using protocol::TurnState;

constexpr std::uint64_t kMoment = 100'000'000'000;

protocol::Turn Said(TurnState state, std::int64_t start_bytes = 0) {
  return {.state = state, .start_bytes = start_bytes};
}

TEST(DeviceTurnTest, JobBeginsWithTheGrantThatSuffices) {
  DeviceTurn turn;
  turn.Hear(Said(TurnState::kWaits), kMoment);
  EXPECT_TRUE(turn.HoldsGate());
  turn.Hear(Said(TurnState::kRuns, 80), kMoment + 10);
  EXPECT_TRUE(turn.HoldsGate());
  EXPECT_FALSE(turn.TryToStart(79, 1000, kMoment));
  EXPECT_TRUE(turn.TryToStart(80, 1000, kMoment));
  EXPECT_FALSE(turn.HoldsGate());
  EXPECT_FALSE(turn.TryToStart(80, 1000, kMoment)) << "once";
}

TEST(DeviceTurnTest, OwnBudgetMayBeAllThatThereIs) {
  DeviceTurn turn;
  turn.Hear(Said(TurnState::kWaits), kMoment);
  turn.Hear(Said(TurnState::kRuns, 80), kMoment + 10);
  EXPECT_TRUE(turn.TryToStart(50, 50, kMoment));
}

TEST(DeviceTurnTest, JobBeginsWithLessAfterTheAgentsPatience) {
  DeviceTurn turn;
  turn.Hear(Said(TurnState::kWaits), kMoment);
  turn.Hear(Said(TurnState::kRuns, 80), kMoment + 10);
  EXPECT_FALSE(turn.TryToStart(10, 1000, kMoment + 9));
  EXPECT_TRUE(turn.TryToStart(10, 1000, kMoment + 10));
}

TEST(DeviceTurnTest, JobThatDidNotWaitRunsAtOnce) {
  DeviceTurn turn;
  turn.Hear(Said(TurnState::kRuns, 80), kMoment + 10);
  EXPECT_FALSE(turn.HoldsGate());
  EXPECT_TRUE(turn.IsInTurns());
}

TEST(DeviceTurnTest, NothingStartsWhileCallsAreInside) {
  DeviceTurn turn;
  turn.Hear(Said(TurnState::kWaits), kMoment);
  turn.BeginDraining(kMoment);
  turn.Hear(Said(TurnState::kRuns, 80), kMoment + DeviceTurn::kDrainPatienceNs);
  EXPECT_FALSE(turn.TryToStart(80, 1000, kMoment));
  EXPECT_FALSE(turn.IsDrained(false, kMoment + 1));
  EXPECT_TRUE(turn.IsDrained(true, kMoment + 1));
  EXPECT_TRUE(turn.IsDrained(false, kMoment + DeviceTurn::kDrainPatienceNs))
      << "it may wait for us";
}

TEST(DeviceTurnTest, IdleAfterATenthOfASecondInTurns) {
  Idleness idleness;
  idleness.Begin(kMoment);
  idleness.SetInTurns(true);
  EXPECT_FALSE(idleness.ShouldAsk(kMoment + 99'000'000));
  EXPECT_TRUE(idleness.ShouldAsk(kMoment + 100'000'000));
  idleness.SetInTurns(false);
  EXPECT_FALSE(idleness.ShouldAsk(kMoment + 100'000'000));
}

TEST(TurnGateTest, CallsWaitWhileItIsHeldAndThoseInsideAreCounted) {
  TurnGate& gate = TurnGate::Instance();
  { const TurnPass first; }
  gate.Hold();
  EXPECT_TRUE(gate.IsQuiet());
  gate.Open();
  std::atomic<bool> is_in = false;
  std::thread caller;
  {
    const TurnPass inside;
    gate.Hold();
    EXPECT_FALSE(gate.IsQuiet()) << "this call";
    caller = std::thread([&] {
      const TurnPass pass;
      is_in = true;
    });
    while (!gate.AnyWaits()) std::this_thread::yield();
  }
  EXPECT_TRUE(gate.IsQuiet());
  EXPECT_FALSE(is_in);
  gate.Open();
  caller.join();
  EXPECT_TRUE(is_in);
  EXPECT_FALSE(gate.AnyWaits());
  EXPECT_GT(gate.WaitedNs(), 0u);
}

}  // namespace
}  // namespace spillway::interposer
