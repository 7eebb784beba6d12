#include "agent/node/sessions/connection_policy.h"

#include "tests/unit/agent/node/fake_shares.h"
#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

class ConnectionPolicyTest : public PartTest {
 protected:
  ConnectionPolicyTest() {
    facts_.config.limits.sessions = 4;
    facts_.config.limits.sessions_per_user = 3;
    facts_.config.limits.connections_per_second_per_user = 10;
  }
  SessionId Connected(uid_t uid, SessionState state = SessionState::kNew, pid_t pid = 1) {
    users_.AddSession(uid);
    Session& session = NewSession(pid, uid);
    session.state = state;
    if (state == SessionState::kJob) table_.Enter(session, JobOf("job"));
    return session.id;
  }
  SessionId ConnectedWithDevice(uid_t uid) {
    const SessionId id = Connected(uid, SessionState::kJob);
    Register(table_.At(id), 0);
    return id;
  }

  NodeFacts facts_;
  FakeServices services_;
  Users users_{&services_};
  Arbiter arbiter_{ArbiterRules{}};
  FakeShares shares_;
  SessionSlabs slabs_{&facts_, &table_, &arbiter_, &shares_};
  ConnectionPolicy policy_{&facts_, &table_, &users_, &slabs_};
};

using Closing = std::set<SessionId>;

TEST_F(ConnectionPolicyTest, BelowTheLimitsNobodyGivesWay) {
  Connected(1000);
  Connected(1000);

  const ConnectionPolicy::Verdict verdict = policy_.Admit(1000, kSecond);

  EXPECT_FALSE(verdict.refusal);
  EXPECT_TRUE(verdict.to_close.empty());
}

TEST_F(ConnectionPolicyTest, RefusesConnectionsThatComeTooFast) {
  facts_.config.limits.connections_per_second_per_user = 1;
  EXPECT_FALSE(policy_.Admit(1000, kSecond).refusal);

  EXPECT_EQ(policy_.Admit(1000, kSecond).refusal->code, protocol::ErrorCode::kTooFast);
}

TEST_F(ConnectionPolicyTest, AtAUsersLimitItsOldestOfTheLeastUseGivesWay) {
  facts_.config.limits.sessions = 100;
  ConnectedWithDevice(1000);
  Connected(1000, SessionState::kJob);
  const SessionId asking = Connected(1000, SessionState::kOperator);
  EXPECT_EQ(policy_.Admit(1000, kSecond).to_close, Closing{asking});

  const SessionId silent = Connected(1000);
  Connected(1000);

  EXPECT_EQ(policy_.Admit(1000, kSecond).to_close, Closing{silent});
}

TEST_F(ConnectionPolicyTest, AUserWhoseSessionsAllHoldSomethingIsRefused) {
  ConnectedWithDevice(1000);
  ConnectedWithDevice(1000);
  Connected(1000, SessionState::kJob, 7);
  shares_.held_bytes[7] = 64;

  const ConnectionPolicy::Verdict verdict = policy_.Admit(1000, kSecond);

  EXPECT_EQ(verdict.refusal->reason, "this user has too many sessions");
  EXPECT_TRUE(verdict.to_close.empty());
}

TEST_F(ConnectionPolicyTest, AtTheNodesLimitTheUserWithMostSessionsLosesOne) {
  Connected(1001, SessionState::kOperator);
  ConnectedWithDevice(1002);
  ConnectedWithDevice(1002);
  const SessionId place = Connected(1002, SessionState::kOperator);

  const ConnectionPolicy::Verdict verdict = policy_.Admit(1003, kSecond);

  EXPECT_FALSE(verdict.refusal);
  EXPECT_EQ(verdict.to_close, Closing{place});
}

TEST_F(ConnectionPolicyTest, NobodyGivesWayToAUserThatHasAsMany) {
  Connected(1001);
  Connected(1001);
  ConnectedWithDevice(1002);
  ConnectedWithDevice(1002);

  EXPECT_EQ(policy_.Admit(1002, kSecond).refusal->reason, "the node has too many sessions");
}

TEST_F(ConnectionPolicyTest, ACrowdInContainersTakesNoPlaceOfOperators) {
  const auto inside = [&](SessionState state) {
    users_.AddSession({0, Entrance::kJobsOnly});
    Session& session = NewSession(1, 0);
    session.entrance = Entrance::kJobsOnly;
    session.state = state;
    return session.id;
  };
  const SessionId operating = Connected(0, SessionState::kOperator);
  const SessionId first = inside(SessionState::kNew);
  inside(SessionState::kNew);
  inside(SessionState::kNew);

  // The node is full, and so is the crowd's own limit.
  EXPECT_EQ(policy_.Admit({0, Entrance::kJobsOnly}, kSecond).to_close, Closing{first});
  EXPECT_EQ(policy_.Admit(0, kSecond).to_close, Closing{operating})
      << "an operator gives way to its own user alone";
  table_.At(operating).state = SessionState::kDetached;
  EXPECT_EQ(policy_.Admit(0, kSecond).to_close, Closing{first});
}

TEST_F(ConnectionPolicyTest, ManyUsersInContainersLeavePlacesForOperators) {
  facts_.config.limits.sessions = 32;
  for (uid_t uid = 0; uid < 30; ++uid) {
    const User inside(uid, Entrance::kJobsOnly);
    EXPECT_FALSE(policy_.Admit(inside, kSecond).refusal);
    users_.AddSession(inside);
    Session& session = NewSession(1, uid);
    session.entrance = Entrance::kJobsOnly;
    session.state = SessionState::kDetached;
  }
  EXPECT_TRUE(policy_.Admit({30, Entrance::kJobsOnly}, kSecond).refusal);
  const ConnectionPolicy::Verdict operating = policy_.Admit(0, kSecond);
  EXPECT_FALSE(operating.refusal);
  EXPECT_TRUE(operating.to_close.empty());
}

// A reload may lower both limits below what is there.
TEST_F(ConnectionPolicyTest, BothLimitsTakeOneEach) {
  const SessionId first = Connected(1000);
  const SessionId second = Connected(1000);
  Connected(1000);
  facts_.config.limits.sessions = 2;

  const ConnectionPolicy::Verdict verdict = policy_.Admit(1000, kSecond);

  EXPECT_FALSE(verdict.refusal);
  EXPECT_EQ(verdict.to_close, (Closing{first, second}));
}

TEST_F(ConnectionPolicyTest, NamesSessionsWithoutHelloAfterFiveSeconds) {
  const SessionId silent = Connected(1000);
  Connected(1000, SessionState::kOperator);

  EXPECT_TRUE(policy_.TakeSilent(4 * kSecond).empty());
  EXPECT_TRUE(policy_.TakeSilent(5 * kSecond - 1).empty()) << "it looks once a second";
  EXPECT_EQ(policy_.TakeSilent(5 * kSecond), std::vector<SessionId>{silent});
}

}  // namespace
}  // namespace spillway::agent
