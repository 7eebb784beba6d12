// Regression: a job that began without an agent reported that it held nothing, and the agent
// budgeted its memory to others (found by tests/chaos, seed 7).
#include "interposer/lease/lease_client.h"

#include "tests/unit/agent/served_lease_client.h"

namespace spillway::interposer {
namespace {

using ServedLeaseClientTest = ServedLeaseClient<HoldingSubject>;

// Regression: host memory was given back only after the device was emptied, which waited for host
// memory (tests/bench/tenants). The subject holds 80 bytes of the device and 30 of the host.
TEST_F(ServedLeaseClientTest, HostMemoryIsGivenBackBeforeDeviceMemoryIsEmptied) {
  Grant(1, 50, 40);

  client.Step(3);

  const auto obeyed = Hear<protocol::Obeyed>();
  ASSERT_TRUE(obeyed);
  EXPECT_EQ(obeyed->held_bytes, 80);
  EXPECT_EQ(obeyed->host_bytes, 60) << "30, and 30 that leave the device now";
  EXPECT_EQ(subject.host_limits, std::vector<int64_t>{40});
}

TEST_F(ServedLeaseClientTest, LackOfHostMemoryIsReportedAtOnceOtherUseAtTheNextReport) {
  Grant(1, 100, 40);
  client.Step(3);
  Hear<protocol::HostNeed>();

  subject.host_need_bytes = 130;
  client.Step(4);
  EXPECT_FALSE(Hear<protocol::HostNeed>()) << "100 lie on the device, 30 are granted";
  client.Step(3 + kTurnNs);
  EXPECT_EQ(Hear<protocol::HostNeed>().value_or(protocol::HostNeed{}).size_bytes, 130);

  subject.host_need_bytes = 141;
  client.Step(4 + kTurnNs);
  EXPECT_EQ(Hear<protocol::HostNeed>().value_or(protocol::HostNeed{}).size_bytes, 141)
      << "a call may wait for it";
}

TEST_F(ServedLeaseClientTest, PartsAreReportedOnceAtTheNextReport) {
  subject.ordinary_bytes = 5;

  client.Step(3);
  EXPECT_FALSE(Hear<protocol::Account>()) << "nobody waits for it";
  client.Step(2 + kTurnNs);
  EXPECT_EQ(Hear<protocol::Account>().value_or(protocol::Account{}).ordinary_bytes, 5);
  client.Step(2 + 2 * kTurnNs);
  EXPECT_FALSE(Hear<protocol::Account>()) << "it is no news";

  subject.ordinary_bytes = 6;
  client.Step(2 + 3 * kTurnNs);
  EXPECT_EQ(Hear<protocol::StepTimes>().value_or(protocol::StepTimes{}).sum_ns, 6);
}

TEST_F(ServedLeaseClientTest, UseOfPlansIsReportedOnceAtTheNextReport) {
  subject.recomputes = 7;

  client.Step(2 + kTurnNs);
  const auto use = Hear<protocol::PlanUse>();
  ASSERT_TRUE(use);
  EXPECT_EQ(use->recomputes, 7);
  EXPECT_EQ(use->device, 0u);
  client.Step(2 + 2 * kTurnNs);
  EXPECT_FALSE(Hear<protocol::PlanUse>()) << "it is no news";
}

TEST_F(ServedLeaseClientTest, LostTimeIsReportedOnceAtTheNextReport) {
  subject.lost_ns = 7;

  client.Step(2 + kTurnNs);
  EXPECT_EQ(Hear<protocol::LostTime>().value_or(protocol::LostTime{}).steps_lost_ns, 7);
  client.Step(2 + 2 * kTurnNs);
  EXPECT_FALSE(Hear<protocol::LostTime>()) << "it is no news";
}

class LeaseClientOfVersion9Test : public ServedLeaseClientTest {
 protected:
  LeaseClientOfVersion9Test() : ServedLeaseClient(9) {}
};

TEST_F(LeaseClientOfVersion9Test, UseOfPlansAndLostTimeAreNotReported) {
  subject.recomputes = subject.lost_ns = 7;

  client.Step(2 + kTurnNs);

  EXPECT_FALSE(Hear<protocol::PlanUse>());
  EXPECT_FALSE(Hear<protocol::LostTime>());
}

class OldLeaseClientTest : public ServedLeaseClientTest {
 protected:
  OldLeaseClientTest() : ServedLeaseClient(3) {}
};

TEST_F(OldLeaseClientTest, PartsAreNotSentToAnOlderAgent) {
  subject.ordinary_bytes = 5;

  client.Step(2 + kTurnNs);

  EXPECT_FALSE(Hear<protocol::Account>());
}

TEST_F(ServedLeaseClientTest, OnlyTheNewestOfManyGrantsIsFollowed) {
  Grant(1, 50, 40);
  Grant(2, 70, 40);
  Grant(3, 100, 40);

  client.Step(3);

  EXPECT_EQ(subject.budgets, std::vector<int64_t>{100});
}

// A process that grows steadily unless it is held back.
class GrowingSubject : public HoldingSubject {
 public:
  DeviceUse Read(uint32_t) override {
    DeviceUse use;
    use.resident_bytes = resident_bytes;
    if (!is_held_back) resident_bytes += growth_bytes;
    return use;
  }
  void HoldGrowth(uint32_t) override { is_held_back = resident_bytes > 0; }
  void SetBudget(const protocol::Grant& grant, int64_t deadline_ns) override {
    HoldingSubject::SetBudget(grant, deadline_ns);
    is_held_back = false;
  }
  void HandleSessionLoss() override { is_held_back = false; }
  void ReleaseGrowth(uint32_t) override { is_held_back = false; }

  int64_t resident_bytes = 0, growth_bytes = 10;
  bool is_held_back = false;
};

class LeaseClientTest : public ::testing::Test {
 protected:
  template <class Subject>
  static void Welcome(Subject& subject) {
    protocol::Welcome welcome;
    welcome.agent_instance = 7;
    welcome.session = 1;
    welcome.usage_interval_ms = 500;
    welcome.job = "local-1";
    subject.agent->Send(welcome);
  }
  template <class Subject>
  static void Connect(LeaseClient& client, Subject& subject) {
    client.Use(0, kDevice, 1000);
    client.Step(1);
    Welcome(subject);
  }
  template <class Subject>
  static protocol::Register Registration(Subject& subject) {
    for (protocol::Received said;
         (said = subject.agent->Receive()).what == protocol::Received::What::kMessage;) {
      if (const auto* asked = std::get_if<protocol::Register>(&said.message)) return *asked;
    }
    ADD_FAILURE() << "it has not registered";
    return {};
  }
};

TEST_F(LeaseClientTest, JobBegunWithoutAgentReportsItsHoldingsToTheFirstAgent) {
  HoldingSubject subject;
  LeaseClient client({}, &subject, &subject);
  Connect(client, subject);

  client.Step(2);

  const protocol::Register asked = Registration(subject);
  EXPECT_EQ(asked.held_bytes, 80);
  EXPECT_EQ(asked.held_host_bytes, 30);
}

// A process that began without an agent. It has reported 50 bytes, and grows when it may.
class HoldingLeaseClientTest : public LeaseClientTest {
 protected:
  HoldingLeaseClientTest() {
    subject.resident_bytes = 50;
    Connect(client, subject);
    client.Step(2);
  }
  void Admit(protocol::AdmissionState state) {
    subject.agent->Send(protocol::Admission{.device = 0, .state = state, .position = 1});
  }

  GrowingSubject subject;
  LeaseClient client{{}, &subject, &subject};
};

// Regression: the process grew between its report and the grant, and held 12 MiB where 8 were
// budgeted (found by tests/chaos, seeds 23 and 41).
TEST_F(HoldingLeaseClientTest, JobBegunWithoutAgentDoesNotGrowBetweenItsReportAndTheGrant) {
  client.Step(3);

  EXPECT_EQ(Registration(subject).held_bytes, 50);
  EXPECT_EQ(subject.resident_bytes, 50);
  protocol::Grant grant;
  grant.serial = 1;
  grant.budget_bytes = 100;
  subject.agent->Send(grant);
  client.Step(4);
  EXPECT_FALSE(subject.is_held_back);
}

TEST_F(LeaseClientTest, JobThatBeginsAfterReportingNothingRegistersAgain) {
  // Given a registered process that no longer waits for the agent, and begins
  GrowingSubject subject;
  subject.growth_bytes = 0;
  LeaseClient client({}, &subject, &subject);
  Connect(client, subject);
  client.Step(2);
  EXPECT_EQ(Registration(subject).held_bytes, 0);
  subject.resident_bytes = 50;

  client.Step(3);
  client.Step(4);
  Welcome(subject);
  client.Step(5);
  EXPECT_EQ(Registration(subject).held_bytes, 50);
  EXPECT_TRUE(subject.is_held_back);

  // And it sends nothing else: the registration names its memory
  client.Step(6);
  EXPECT_TRUE(client.is_served());
}

// Regression: an agent stopped at that moment held the process at its first allocation for ever.
TEST_F(HoldingLeaseClientTest, SilentAgentHoldsAProcessBackOnlyForATime) {
  ASSERT_TRUE(subject.is_held_back);

  client.Step(4 * kSecond);
  EXPECT_TRUE(subject.is_held_back);
  client.Step(6 * kSecond);
  EXPECT_FALSE(subject.is_held_back);
}

// Regression: the process took its admission for the awaited grant, which waited for a late
// neighbour. It was held at its first allocation until that neighbour ended.
TEST_F(HoldingLeaseClientTest, AdmittedProcessWithoutAGrantIsHeldBackNoLongerThanByASilentAgent) {
  Admit(protocol::AdmissionState::kAdmitted);

  client.Step(4 * kSecond);
  EXPECT_TRUE(subject.is_held_back);
  client.Step(6 * kSecond);
  EXPECT_FALSE(subject.is_held_back);
  EXPECT_TRUE(client.is_served()) << "it waits for its grant";
}

// Regression: it was held back for 5 of every 5.05 s.
TEST_F(HoldingLeaseClientTest, AgentThatOnlyGreetsHoldsAProcessBackForASmallPartOfTheTime) {
  constexpr int64_t step_ns = kSecond / 20, end_ns = 600 * kSecond;
  int64_t held_back_ns = 0;

  for (int64_t now_ns = step_ns; now_ns < end_ns; now_ns += step_ns) {
    client.Step(now_ns);
    held_back_ns += subject.is_held_back ? step_ns : 0;
    if (subject.agent && std::holds_alternative<protocol::Hello>(subject.agent->Receive().message))
      Welcome(subject);
  }

  EXPECT_GT(held_back_ns, 0);
  EXPECT_LT(held_back_ns, end_ns / 5);
}

class WaitingSubject : public HoldingSubject {
 public:
  DeviceUse Read(uint32_t) override { return {}; }
  void NoteAgentAbsent(uint32_t, Absence how) override {
    ++gone_for_good;
    absence = how;
  }
  void HandleSessionLoss() override { ++lost; }
  std::unique_ptr<protocol::Channel> Connect() override {
    if (!is_there) return nullptr;
    if (refuses) {
      auto near = HoldingSubject::Connect();
      agent->Send(protocol::Error{.code = protocol::ErrorCode::kTooFast});
      agent.reset();
      return near;
    }
    if (agent == nullptr || IsClosed(*agent)) return HoldingSubject::Connect();
    auto [near, far] = MemoryChannel::Pair(16);
    asked_beside = std::move(far);
    ++times_asked;
    if (!hangs) asked_beside->Send(protocol::Welcome{});
    return std::move(near);
  }

  int gone_for_good = 0, lost = 0, times_asked = 0;
  std::optional<Absence> absence;
  bool is_there = true, hangs = false, refuses = false;
  std::unique_ptr<MemoryChannel> asked_beside;  // the agent's end of a second connection

 private:
  static bool IsClosed(MemoryChannel& end) {
    protocol::Received received;
    do received = end.Receive();
    while (received.what == protocol::Received::What::kMessage);
    return received.what == protocol::Received::What::kClosed;
  }
};

class QueuedLeaseClientTest : public LeaseClientTest {
 protected:
  QueuedLeaseClientTest() {
    Connect(client, subject);
    client.Step(2);
    SendQueued();
    client.Step(3);
  }
  void SendQueued() {
    subject.agent->Send(protocol::Admission{
        .device = 0, .state = protocol::AdmissionState::kQueued, .position = 1});
  }
  void AgentEnds() {
    subject.is_there = false;
    subject.agent.reset();
  }
  void StepUntil(int64_t end_ns) {
    for (; now_ns < end_ns; now_ns += kSecond / 10) client.Step(now_ns);
  }

  WaitingSubject subject;
  LeaseClient client{{}, &subject, &subject};
  int64_t now_ns = 100 * kSecond;
};

// Regression: it waited for an hour, and began without memory.
TEST_F(QueuedLeaseClientTest, QueuedClientWaitsHalfAMinuteForALostAgent) {
  AgentEnds();

  StepUntil(129 * kSecond);
  EXPECT_EQ(subject.gone_for_good, 0);
  StepUntil(135 * kSecond);
  EXPECT_EQ(subject.gone_for_good, 1);
  EXPECT_EQ(subject.absence, Absence::kGone);
  StepUntil(300 * kSecond);
  EXPECT_EQ(subject.gone_for_good, 1) << "said once";
}

TEST_F(QueuedLeaseClientTest, QueuedClientKeepsWaitingWhenTheAgentReturnsInTime) {
  AgentEnds();
  StepUntil(120 * kSecond);
  subject.is_there = true;
  StepUntil(125 * kSecond);
  ASSERT_TRUE(subject.agent);
  Welcome(subject);
  StepUntil(126 * kSecond);
  SendQueued();

  StepUntil(400 * kSecond);
  EXPECT_EQ(subject.gone_for_good, 0);
  AgentEnds();
  StepUntil(429 * kSecond);
  EXPECT_EQ(subject.gone_for_good, 0) << "it waits anew";
  StepUntil(435 * kSecond);
  EXPECT_EQ(subject.gone_for_good, 1);
}

// Regression: a job that was left with nothing, as it had used nothing, waited for ever.
TEST_F(QueuedLeaseClientTest, JobThatWasLeftWithNothingWaitsHalfAMinuteForALostAgent) {
  subject.agent->Send(protocol::Grant{.device = 0, .serial = 1, .budget_bytes = 0});
  client.Step(4);
  AgentEnds();

  StepUntil(129 * kSecond);
  EXPECT_EQ(subject.gone_for_good, 0);
  StepUntil(135 * kSecond);
  EXPECT_EQ(subject.gone_for_good, 1);
}

TEST_F(QueuedLeaseClientTest, JobWithMemoryDoesNotWaitForALostAgent) {
  subject.agent->Send(protocol::Grant{.device = 0, .serial = 1, .budget_bytes = 1 << 30});
  client.Step(4);
  AgentEnds();

  StepUntil(200 * kSecond);
  EXPECT_EQ(subject.gone_for_good, 0);
}

// Regression: a restarted agent sends waiting jobs nothing until running jobs are back. So all
// waiting jobs began without it.
TEST_F(QueuedLeaseClientTest, QueuedClientKeepsWaitingForARestartedSilentAgent) {
  AgentEnds();
  StepUntil(126 * kSecond);
  subject.is_there = true;
  StepUntil(128 * kSecond);
  ASSERT_TRUE(subject.agent);
  Welcome(subject);
  StepUntil(200 * kSecond);

  EXPECT_TRUE(client.is_served());
  EXPECT_EQ(subject.gone_for_good, 0);
  AgentEnds();
  StepUntil(203 * kSecond);
  EXPECT_EQ(subject.gone_for_good, 1) << "it has said no word for longer than that";
}

// Both may have been stopped for long, for example by a scheduler that suspends jobs in turns.
TEST_F(QueuedLeaseClientTest, StoppedClientProbesBeforeItAssumesThatTheAgentIsGone) {
  AgentEnds();
  StepUntil(101 * kSecond);
  subject.is_there = true;
  now_ns = 1000 * kSecond;
  StepUntil(1001 * kSecond);
  EXPECT_EQ(subject.gone_for_good, 0);
  ASSERT_TRUE(subject.agent);
  Welcome(subject);
  SendQueued();
  StepUntil(1100 * kSecond);
  EXPECT_EQ(subject.gone_for_good, 0);
}

// Regression: beside many such jobs of its user, the client asked again after 30 s, and began just
// before that.
TEST_F(QueuedLeaseClientTest, ClientRefusedForTooManySessionsKeepsWaitingAndRetriesSoon) {
  const auto put_off = [this] {
    ASSERT_TRUE(subject.agent);
    subject.agent->Send(protocol::Error{.code = protocol::ErrorCode::kTooFast});
  };
  subject.agent.reset();
  StepUntil(101 * kSecond);
  put_off();
  StepUntil(102 * kSecond);
  EXPECT_TRUE(client.is_put_off());
  for (; now_ns < 190 * kSecond;) {
    StepUntil(now_ns + kSecond + kSecond / 5);
    put_off();
  }
  EXPECT_EQ(subject.gone_for_good, 0);

  StepUntil(now_ns + kSecond + kSecond / 5);
  Welcome(subject);
  StepUntil(now_ns + kSecond);

  EXPECT_FALSE(client.is_put_off());
  EXPECT_TRUE(client.is_served());
  EXPECT_EQ(subject.gone_for_good, 0);
}

// Regression: an agent that closed before the first message counted as absent.
TEST_F(QueuedLeaseClientTest, ClientRefusedBeforeItsFirstMessageReadsTheReason) {
  subject.refuses = true;
  subject.agent.reset();

  StepUntil(190 * kSecond);

  EXPECT_TRUE(client.is_put_off());
  EXPECT_EQ(subject.gone_for_good, 0);
}

// Regression: the agent ended between admission and first grant, and the client never got memory.
TEST_F(QueuedLeaseClientTest, AdmittedClientWithoutAGrantStopsWaitingForALostAgent) {
  subject.agent->Send(protocol::Admission{
      .device = 0, .state = protocol::AdmissionState::kAdmitted, .position = 0});
  StepUntil(101 * kSecond);
  AgentEnds();

  StepUntil(135 * kSecond);
  EXPECT_EQ(subject.gone_for_good, 1);
}

// Regression: the client waited an hour for a stopped agent.
TEST_F(QueuedLeaseClientTest, HangingAgentIsAwaitedAsLongAsALostOne) {
  subject.hangs = true;

  StepUntil(104 * kSecond);
  EXPECT_EQ(subject.lost, 0) << "it may still answer";
  StepUntil(129 * kSecond);
  EXPECT_GE(subject.lost, 1);
  EXPECT_EQ(subject.gone_for_good, 0);
  StepUntil(141 * kSecond);
  EXPECT_EQ(subject.gone_for_good, 1);
  EXPECT_EQ(subject.absence, Absence::kSilent);
}

TEST_F(QueuedLeaseClientTest, ClientKeepsItsSessionWhileTheAgentAnswersProbes) {
  StepUntil(4000 * kSecond);

  EXPECT_TRUE(client.is_served());
  EXPECT_EQ(subject.lost, 0);
  EXPECT_EQ(subject.gone_for_good, 0);
  EXPECT_LE(subject.times_asked, 4000 / 15);
  ASSERT_TRUE(subject.asked_beside);
  const protocol::Received asked = subject.asked_beside->Receive();
  ASSERT_TRUE(std::holds_alternative<protocol::Hello>(asked.message));
  EXPECT_EQ(std::get<protocol::Hello>(asked.message).role, protocol::Role::kOperator)
      << "as a job it would have a second place in the queue";
  EXPECT_EQ(subject.asked_beside->Receive().what, protocol::Received::What::kClosed);
}

TEST_F(QueuedLeaseClientTest, RunningClientDoesNotProbeItsAgent) {
  subject.hangs = true;
  protocol::Grant grant;
  grant.serial = 1;
  grant.budget_bytes = 100;
  subject.agent->Send(grant);

  StepUntil(400 * kSecond);

  EXPECT_FALSE(subject.asked_beside);
  EXPECT_TRUE(client.is_served());
}

TEST_F(HoldingLeaseClientTest, ClientThatIsQueuedKeepsItsSession) {
  Admit(protocol::AdmissionState::kQueued);
  client.Step(3);

  client.Step(14 *
              kSecond);  // longer than the wait for a grant, and before a silent agent is probed

  EXPECT_TRUE(client.is_served());
}

}  // namespace
}  // namespace spillway::interposer
