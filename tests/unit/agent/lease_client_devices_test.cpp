// Regression: one device that the agent did not know ended the session again and again. The grants
// of the process's other devices were not followed for 30 s at a time.
#include <algorithm>
#include <map>
#include <set>

#include "tests/unit/agent/served_lease_client.h"

namespace spillway::interposer {
namespace {

// An agent that knows the devices of some numbers, and admits the process there.
class Agent {
 public:
  Agent(HoldingSubject* subject, std::set<uint32_t> known)
      : subject_(*subject), known_(std::move(known)) {}

  // Answers all that the client has sent.
  void Answer() {
    if (subject_.agent == nullptr) return;
    std::set<uint32_t> admitted;
    for (protocol::Received said;
         (said = subject_.agent->Receive()).what == protocol::Received::What::kMessage;) {
      if (std::holds_alternative<protocol::Hello>(said.message)) Greet();
      const auto* const asked = std::get_if<protocol::Register>(&said.message);
      if (asked == nullptr) continue;
      own_limits[asked->device] = asked->own_limit_bytes;
      if (known_.count(asked->device) == 0) return Refuse();
      admitted.insert(asked->device);
    }
    for (const uint32_t device : admitted)
      subject_.agent->Send(protocol::Grant{.device = device, .serial = 1, .budget_bytes = 100});
  }

  uint64_t instance = 7;
  int sessions = 0;
  std::map<uint32_t, int64_t> own_limits;

 private:
  void Greet() {
    ++sessions;
    protocol::Welcome welcome;
    welcome.agent_instance = instance;
    welcome.session = 1;
    welcome.usage_interval_ms = 500;
    subject_.agent->Send(welcome);
  }
  void Refuse() {
    subject_.agent->Send(protocol::Error{.code = protocol::ErrorCode::kUnknownDevice});
    subject_.agent.reset();
  }

  HoldingSubject& subject_;
  const std::set<uint32_t> known_;
};

class DeviceSubject : public HoldingSubject {
 public:
  void SetBudget(const protocol::Grant& grant, int64_t) override { granted.insert(grant.device); }
  std::set<uint32_t> granted;
};

class LeaseClientDevicesTest : public ::testing::Test {
 protected:
  void StepFor(Agent& agent, int64_t time_ns) {
    for (const int64_t end_ns = now_ns + time_ns; now_ns < end_ns; now_ns += kSecond / 100) {
      client.Step(now_ns);
      agent.Answer();
    }
  }

  DeviceSubject subject;
  LeaseClient client{{}, &subject, &subject};
  int64_t now_ns = kSecond;
};

TEST_F(LeaseClientDevicesTest, UnknownDeviceCostsTheOthersASecondAtMost) {
  Agent agent(&subject, {0, 2});
  for (const uint32_t device : {0u, 1u, 2u}) client.Use(device, {uint8_t(device)}, 1000);

  StepFor(agent, kSecond);
  EXPECT_TRUE(client.is_served());
  EXPECT_EQ(subject.granted, (std::set<uint32_t>{0, 2}));
  const int sessions = agent.sessions;
  EXPECT_LE(sessions, 4);

  StepFor(agent, 100 * kSecond);
  EXPECT_EQ(agent.sessions, sessions) << "the session lasts";
  EXPECT_TRUE(client.is_served());
}

TEST_F(LeaseClientDevicesTest, EachDeviceHasItsOwnLimit) {
  Agent agent(&subject, {0, 1});
  client.Use(0, {0}, 1000, 400);
  client.Use(1, {1}, 1000);

  StepFor(agent, kSecond);

  EXPECT_EQ(agent.own_limits, (std::map<uint32_t, int64_t>{{0, 400}, {1, 0}}));
}

TEST_F(LeaseClientDevicesTest, AnotherAgentIsAskedAgain) {
  Agent agent(&subject, {0}), later(&subject, {0, 1});
  for (const uint32_t device : {0u, 1u}) client.Use(device, {uint8_t(device)}, 1000);
  StepFor(agent, kSecond);
  ASSERT_EQ(subject.granted, std::set<uint32_t>{0});

  later.instance = 8;
  subject.agent.reset();
  StepFor(later, kSecond);

  EXPECT_EQ(subject.granted, (std::set<uint32_t>{0, 1}));
}

// The agent was restarted, and a device is gone.
TEST_F(LeaseClientDevicesTest, GrantedDeviceThatBecameUnknownCostsTheOthersASecondAtMost) {
  Agent agent(&subject, {0, 1}), later(&subject, {0, 2});
  for (const uint32_t device : {0u, 1u}) client.Use(device, {uint8_t(device)}, 1000);
  StepFor(agent, kSecond);
  ASSERT_EQ(subject.granted, (std::set<uint32_t>{0, 1}));

  subject.granted.clear();
  later.instance = 8;
  client.Use(2, {2}, 1000);
  subject.agent.reset();
  StepFor(later, kSecond);
  EXPECT_EQ(subject.granted, (std::set<uint32_t>{0, 2}));
  const int sessions = later.sessions;

  StepFor(later, 100 * kSecond);
  EXPECT_EQ(later.sessions, sessions) << "the session lasts";
}

TEST_F(LeaseClientDevicesTest, AgentThatKnowsNoDeviceIsAskedSeldom) {
  Agent agent(&subject, {});
  for (const uint32_t device : {0u, 1u}) client.Use(device, {uint8_t(device)}, 1000);

  StepFor(agent, 100 * kSecond);

  EXPECT_LE(agent.sessions, 12);
}

}  // namespace
}  // namespace spillway::interposer
