// Turns, as a lease client hears, obeys and reports them.
#include "tests/unit/agent/served_lease_client.h"

namespace spillway::interposer {
namespace {

class TurningSubject : public HoldingSubject {
 public:
  DeviceUse Read(uint32_t device) override {
    DeviceUse use = HoldingSubject::Read(device);
    use.turns.operations = ++operations;
    use.turns.parks = parks;
    use.allocated_bytes = allocated_bytes;
    return use;
  }
  void SetTurn(const protocol::Turn& turn, int64_t until_ns) override {
    turns.push_back(turn.state);
    patience_until_ns = until_ns;
  }
  bool MayConfirm(uint32_t) override { return is_drained; }
  void NoteAgentAbsent(uint32_t, Absence) override { ++absences; }

  std::vector<protocol::TurnState> turns;
  int64_t patience_until_ns = 0;
  int64_t operations = 0, allocated_bytes = 0;
  bool parks = false, is_drained = true;
  int absences = 0;
};

class LeaseClientTurnsTest : public ServedLeaseClient<TurningSubject> {
 protected:
  explicit LeaseClientTurnsTest(uint16_t version = protocol::kNewestVersion)
      : ServedLeaseClient(version) {}
  void Say(protocol::TurnState state) {
    subject.agent->Send(protocol::Turn{.state = state, .patience_ms = 4});
  }
};

TEST_F(LeaseClientTurnsTest, GrantWithoutATurnMeansShares) {
  Grant(1, 100, 50);
  client.Step(3);
  EXPECT_EQ(subject.turns, std::vector{protocol::TurnState::kShares});
  Grant(2, 100, 50);
  client.Step(4);
  EXPECT_EQ(subject.turns.size(), 1u) << "said once";
}

TEST_F(LeaseClientTurnsTest, TurnIsHeardBeforeTheGrantThatFollows) {
  Say(protocol::TurnState::kWaits);
  Grant(1, 10, 50);
  client.Step(3);
  EXPECT_EQ(subject.turns, std::vector{protocol::TurnState::kWaits});
  EXPECT_EQ(subject.patience_until_ns, 3 + 4'000'000);
  EXPECT_EQ(subject.budgets, std::vector<int64_t>{10});
}

TEST_F(LeaseClientTurnsTest, SmallerBudgetIsConfirmedOnlyOnceItIsInForce) {
  Grant(1, 100, 50);
  client.Step(3);
  EXPECT_TRUE(Hear<protocol::Obeyed>());
  subject.is_drained = false;
  Say(protocol::TurnState::kWaits);
  Grant(2, 10, 50);
  EXPECT_LE(client.Step(4), 4 + 5'000'000) << "it looks again soon";
  EXPECT_FALSE(Hear<protocol::Obeyed>());
  subject.is_drained = true;
  client.Step(5);
  const auto obeyed = Hear<protocol::Obeyed>();
  ASSERT_TRUE(obeyed);
  EXPECT_EQ(obeyed->serial, 2u);
  EXPECT_EQ(obeyed->held_bytes, 80) << "what it really holds";
}

TEST_F(LeaseClientTurnsTest, UseOfTurnsIsReportedAtEveryIntervalWhileInTurns) {
  Grant(1, 100, 50);
  client.Step(kTurnNs);
  client.Step(2 * kTurnNs);
  EXPECT_FALSE(Hear<protocol::TurnUse>());
  Say(protocol::TurnState::kRuns);
  client.Step(2 * kTurnNs + 1);
  EXPECT_TRUE(Hear<protocol::TurnUse>()) << "at once";
  client.Step(2 * kTurnNs + 2);
  EXPECT_FALSE(Hear<protocol::TurnUse>());
  client.Step(3 * kTurnNs + 1);
  EXPECT_TRUE(Hear<protocol::TurnUse>());
}

TEST_F(LeaseClientTurnsTest, ParkingIsReportedWithoutTurns) {
  Grant(1, 100, 50);
  client.Step(3);
  EXPECT_FALSE(Hear<protocol::TurnUse>());
  subject.parks = true;
  client.Step(4);
  const auto use = Hear<protocol::TurnUse>();
  ASSERT_TRUE(use);
  EXPECT_TRUE(use->parks);
}

TEST_F(LeaseClientTurnsTest, WaitingJobIsToldWhenTheAgentStaysAway) {
  Say(protocol::TurnState::kWaits);
  Grant(1, 100, 50);
  client.Step(3);
  subject.agent->End();
  for (int64_t second = 1; second < 29; ++second) client.Step(second * kSecond);
  EXPECT_EQ(subject.absences, 0);
  for (int64_t second = 29; second < 80; ++second) client.Step(second * kSecond);
  EXPECT_EQ(subject.absences, 1) << "once";
}

// The new agent would otherwise believe that the job needs only what it holds at the moment.
TEST_F(LeaseClientTurnsTest, NewAgentHearsOfAllThatTheJobAllocated) {
  subject.allocated_bytes = 700;
  client.Step(kTurnNs + 3);
  const auto first = Hear<protocol::Footprint>();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->allocated_bytes, 700);
  client.Step(2 * kTurnNs + 4);
  EXPECT_FALSE(Hear<protocol::Footprint>()) << "no news";

  subject.agent->Sever();
  client.Step(3 * kSecond);
  client.Step(4 * kSecond);
  EXPECT_TRUE(Hear<protocol::Hello>());
  Greet();
  client.Step(4 * kSecond + 1);
  EXPECT_TRUE(Hear<protocol::Register>());
  client.Step(4 * kSecond + kTurnNs + 2);
  const auto again = Hear<protocol::Footprint>();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->allocated_bytes, 700);
}

class LeaseClientOlderAgentTest : public LeaseClientTurnsTest {
 protected:
  LeaseClientOlderAgentTest() : LeaseClientTurnsTest(8) {}
};

TEST_F(LeaseClientOlderAgentTest, OlderAgentHearsNothingOfTurns) {
  Grant(1, 100, 50);
  subject.parks = true;
  client.Step(3);
  EXPECT_FALSE(Hear<protocol::TurnUse>());
}

}  // namespace
}  // namespace spillway::interposer
