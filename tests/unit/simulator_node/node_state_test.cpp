// The rules of a machine that several processes share, in isolation.
#include "simulator/driver/machine/node_state.h"

#include <gtest/gtest.h>

#include <memory>

namespace spillway::simulator::node {
namespace {

constexpr EngineId kComputing = {0, kCompute};
constexpr EngineId kIn = {0, kH2d};
constexpr EngineId kOut = {0, kD2h};

class NodeStateTest : public ::testing::Test {
 protected:
  NodeStateTest() {
    state().device_count = 1;
    state().slots_used = 3;
    state().capacity_bytes = 100;
    state().rates = {1'000'000'000, 1'000'000'000, 500'000'000, 250'000'000};
    for (std::size_t i = 0; i < 3; ++i) state().slots[i].state = SlotState::kPresent;
  }

  State& state() { return *state_; }
  Slot& slot(std::size_t number) { return state_->slots[number]; }

  // The slot works on an engine from `time_ns` on and waits for the end.
  void Begin(std::size_t number, EngineId id, Work work, Nanos time_ns) {
    slot(number).next_end[0][id.engine] = GivenAt(state(), id, time_ns) + work;
    SetHolds(state(), slot(number), id, true, time_ns);
    slot(number).clock_ns = time_ns;
    slot(number).waiting = 1;
    slot(number).target_ns = kNever;
  }

 private:
  const std::unique_ptr<State> state_ = std::make_unique<State>();
};

TEST_F(NodeStateTest, TurnGoesToTheEarliestThenTheLowestSlot) {
  slot(0).clock_ns = 7;
  slot(1).clock_ns = 5;
  slot(2).clock_ns = 5;
  EXPECT_EQ(First(state()), 1);

  slot(1).clock_ns = 8;
  EXPECT_EQ(First(state()), 2);
}

TEST_F(NodeStateTest, SlotThatWaitsForNothingDelaysNoOther) {
  for (std::size_t i = 0; i < 3; ++i) {
    slot(i).waiting = 1;
    slot(i).target_ns = kNever;
  }

  EXPECT_EQ(First(state()), -1);
}

TEST_F(NodeStateTest, ExpectedSlotHoldsTimeAtItsBeginning) {
  slot(0).clock_ns = slot(1).clock_ns = 5;
  slot(2).state = SlotState::kReserved;

  EXPECT_EQ(First(state()), 2);
  EXPECT_EQ(EarliestActTime(state(), slot(2)), 0);
}

TEST_F(NodeStateTest, WorkTakesLongerByTheNumberOfSharers) {
  Begin(0, kComputing, 100 * kWorkPerNano, 0);
  EXPECT_EQ(NextEndOf(state(), slot(0)), 100);

  Begin(1, kComputing, 100 * kWorkPerNano, 40);
  EXPECT_EQ(NextEndOf(state(), slot(0)), 40 + 2 * 60);

  Begin(2, kComputing, 100 * kWorkPerNano, 60);
  // 100 - 40 - 10 = 50 remain, a third at a time.
  EXPECT_EQ(NextEndOf(state(), slot(0)), 60 + 3 * 50);
}

TEST_F(NodeStateTest, ADeviceComputesWhileAnySlotHasWork) {
  Begin(0, kComputing, 100 * kWorkPerNano, 10);
  Begin(1, kComputing, 100 * kWorkPerNano, 40);
  EXPECT_EQ(ComputingAt(state(), 0, 60), 50) << "since 10";

  SetHolds(state(), slot(0), kComputing, false, 70);
  SetHolds(state(), slot(1), kComputing, false, 90);
  EXPECT_EQ(ComputingAt(state(), 0, 500), 80) << "until 90";
}

TEST_F(NodeStateTest, WorkEndsWhenItsShareIsGivenWhateverHappensBetween) {
  Begin(0, kComputing, 100 * kWorkPerNano, 0);
  Begin(1, kComputing, 30 * kWorkPerNano, 0);
  ASSERT_EQ(NextEndOf(state(), slot(1)), 60);

  SetHolds(state(), slot(1), kComputing, false, 60);

  EXPECT_EQ(NextEndOf(state(), slot(0)), 60 + 70);
}

TEST_F(NodeStateTest, SimultaneousLinkDirectionsHaveTheirOwnRates) {
  Begin(0, kIn, CopyWork(state(), kIn, 100, 0), 0);
  EXPECT_EQ(NextEndOf(state(), slot(0)), 100);

  Begin(1, kOut, CopyWork(state(), kOut, 100, 0), 20);

  EXPECT_EQ(NextEndOf(state(), slot(0)), 20 + 160);
  EXPECT_EQ(NextEndOf(state(), slot(1)), 20 + 400);
}

TEST_F(NodeStateTest, NothingEndsBeforeItsTimeAlone) {
  Begin(0, kComputing, 100 * kWorkPerNano, 0);
  Begin(1, kComputing, 100 * kWorkPerNano, 0);

  EXPECT_EQ(EarliestPossibleEnd(state(), slot(0)), 100);
  EXPECT_EQ(NextEndOf(state(), slot(0)), 200);
}

TEST_F(NodeStateTest, MemoryOfAllSlotsStaysWithinTheDevice) {
  EXPECT_TRUE(Take(state(), slot(0), 0, 60));
  EXPECT_FALSE(Take(state(), slot(1), 0, 41));
  EXPECT_TRUE(Take(state(), slot(1), 0, 40));
  EXPECT_FALSE(Take(state(), slot(2), 0, 1));

  Vacate(state(), slot(0), SlotState::kKilled);

  EXPECT_EQ(HeldBytes(state(), 0), 40u);
  EXPECT_EQ(slot(0).statistics.peak_bytes[0], 60u);
  EXPECT_TRUE(Take(state(), slot(2), 0, 60));
}

TEST_F(NodeStateTest, ShareOfAVacatedSlotGoesToOthers) {
  Begin(0, kComputing, 100 * kWorkPerNano, 0);
  Begin(1, kComputing, 100 * kWorkPerNano, 0);
  state().acted_ns = 40;

  Vacate(state(), slot(1), SlotState::kKilled);

  EXPECT_EQ(NextEndOf(state(), slot(0)), 40 + 80);
  EXPECT_EQ(First(state()), 2);
}

TEST_F(NodeStateTest, SuspendedSlotReturnsAtTheMachinesPresentWithItsWorkDone) {
  Begin(0, kComputing, 10 * kWorkPerNano, 0);
  Begin(1, kComputing, 100 * kWorkPerNano, 0);
  Suspend(state(), slot(0));
  slot(2).clock_ns = 90;
  state().acted_ns = 90;

  Resume(state(), slot(0));

  EXPECT_EQ(slot(0).clock_ns, 90);
  EXPECT_EQ(NextEndOf(state(), slot(0)), 90);
}

}  // namespace
}  // namespace spillway::simulator::node
