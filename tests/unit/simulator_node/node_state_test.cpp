// The rules of a machine that several processes share, alone.
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
    state().seats_used = 3;
    state().capacity_bytes = 100;
    state().rates = {1'000'000'000, 1'000'000'000, 500'000'000, 250'000'000};
    for (std::size_t i = 0; i < 3; ++i) state().seats[i].state = SeatState::kPresent;
  }

  State& state() { return *state_; }
  Seat& seat(std::size_t number) { return state_->seats[number]; }

  // The seat works on an engine from `time_ns` on and waits for the end.
  void Begin(std::size_t number, EngineId id, Work work, Nanos time_ns) {
    seat(number).next_end[0][id.engine] = GivenAt(state(), id, time_ns) + work;
    SetHolds(state(), seat(number), id, true, time_ns);
    seat(number).clock_ns = time_ns;
    seat(number).waiting = 1;
    seat(number).target_ns = kNever;
  }

 private:
  const std::unique_ptr<State> state_ = std::make_unique<State>();
};

TEST_F(NodeStateTest, TurnIsTheEarliestThenTheLowestSeats) {
  seat(0).clock_ns = 7;
  seat(1).clock_ns = 5;
  seat(2).clock_ns = 5;
  EXPECT_EQ(First(state()), 1);

  seat(1).clock_ns = 8;
  EXPECT_EQ(First(state()), 2);
}

TEST_F(NodeStateTest, WhoWaitsForNothingHoldsNobody) {
  for (std::size_t i = 0; i < 3; ++i) {
    seat(i).waiting = 1;
    seat(i).target_ns = kNever;
  }

  EXPECT_EQ(First(state()), -1);
}

TEST_F(NodeStateTest, ExpectedSeatKeepsTimeAtItsBeginning) {
  seat(0).clock_ns = seat(1).clock_ns = 5;
  seat(2).state = SeatState::kReserved;

  EXPECT_EQ(First(state()), 2);
  EXPECT_EQ(BoundOf(state(), seat(2)), 0);
}

TEST_F(NodeStateTest, WorkTakesLongerByTheNumberOfThoseWhoShare) {
  Begin(0, kComputing, 100 * kWorkPerNano, 0);
  EXPECT_EQ(NextEndOf(state(), seat(0)), 100);

  Begin(1, kComputing, 100 * kWorkPerNano, 40);
  EXPECT_EQ(NextEndOf(state(), seat(0)), 40 + 2 * 60);

  Begin(2, kComputing, 100 * kWorkPerNano, 60);
  // 100 - 40 - 10 = 50 are left, a third at a time.
  EXPECT_EQ(NextEndOf(state(), seat(0)), 60 + 3 * 50);
}

TEST_F(NodeStateTest, WorkIsDoneWhenItsShareHasBeenGivenWhateverHappensBetween) {
  Begin(0, kComputing, 100 * kWorkPerNano, 0);
  Begin(1, kComputing, 30 * kWorkPerNano, 0);
  ASSERT_EQ(NextEndOf(state(), seat(1)), 60);

  SetHolds(state(), seat(1), kComputing, false, 60);

  EXPECT_EQ(NextEndOf(state(), seat(0)), 60 + 70);
}

TEST_F(NodeStateTest, BothDirectionsOfTheLinkAtOnceGoAtTheirOwnRates) {
  Begin(0, kIn, CopyWork(state(), kIn, 100, 0), 0);
  EXPECT_EQ(NextEndOf(state(), seat(0)), 100);

  Begin(1, kOut, CopyWork(state(), kOut, 100, 0), 20);

  EXPECT_EQ(NextEndOf(state(), seat(0)), 20 + 160);
  EXPECT_EQ(NextEndOf(state(), seat(1)), 20 + 400);
}

TEST_F(NodeStateTest, NothingEndsBeforeTheTimeThatNobodyElseWouldCost) {
  Begin(0, kComputing, 100 * kWorkPerNano, 0);
  Begin(1, kComputing, 100 * kWorkPerNano, 0);

  EXPECT_EQ(NoEndBefore(state(), seat(0)), 100);
  EXPECT_EQ(NextEndOf(state(), seat(0)), 200);
}

TEST_F(NodeStateTest, MemoryOfAllSeatsTogetherStaysWithinTheDevice) {
  EXPECT_TRUE(Take(state(), seat(0), 0, 60));
  EXPECT_FALSE(Take(state(), seat(1), 0, 41));
  EXPECT_TRUE(Take(state(), seat(1), 0, 40));
  EXPECT_FALSE(Take(state(), seat(2), 0, 1));

  Vacate(state(), seat(0), SeatState::kKilled);

  EXPECT_EQ(HeldBytes(state(), 0), 40u);
  EXPECT_EQ(seat(0).books.peak_bytes[0], 60u);
  EXPECT_TRUE(Take(state(), seat(2), 0, 60));
}

TEST_F(NodeStateTest, VacatedSeatsShareGoesToTheOthers) {
  Begin(0, kComputing, 100 * kWorkPerNano, 0);
  Begin(1, kComputing, 100 * kWorkPerNano, 0);
  state().acted_ns = 40;

  Vacate(state(), seat(1), SeatState::kKilled);

  EXPECT_EQ(NextEndOf(state(), seat(0)), 40 + 80);
  EXPECT_EQ(First(state()), 2);
}

TEST_F(NodeStateTest, SuspendedSeatComesBackAtTheMachinesPresentWithItsWorkDone) {
  Begin(0, kComputing, 10 * kWorkPerNano, 0);
  Begin(1, kComputing, 100 * kWorkPerNano, 0);
  Suspend(state(), seat(0));
  seat(2).clock_ns = 90;
  state().acted_ns = 90;

  Resume(state(), seat(0));

  EXPECT_EQ(seat(0).clock_ns, 90);
  EXPECT_EQ(NextEndOf(state(), seat(0)), 90);
}

}  // namespace
}  // namespace spillway::simulator::node
