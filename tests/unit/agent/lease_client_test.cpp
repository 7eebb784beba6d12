// A job that began while there was no agent holds memory that no agent has granted. It said that it held nothing, and the agent
// promised the same memory to others (found by tests/chaos, seed 7: an agent killed while a job began).
#include "interposer/lease/lease_client.h"

#include <gtest/gtest.h>

#include "protocol/memory_channel.h"

namespace spillway::interposer {
namespace {

using protocol::MemoryChannel;

constexpr protocol::DeviceUuid kDevice = {1};

class HoldingSubject : public LeaseSubject, public LeaseConnector {
 public:
  DeviceUse Read(uint32_t) override {
    DeviceUse use;
    use.resident_bytes = 80;
    use.host_bytes = 30;
    return use;
  }
  void SetHostLimit(const protocol::Grant& grant) override { host_limits.push_back(grant.host_bytes); }
  void SetBudget(const protocol::Grant& grant, int64_t) override {
    budgets.push_back(grant.budget_bytes);
    if (agent) said_before_budget = agent->Receive();
  }
  void Admission(const protocol::Admission&) override {}
  std::unique_ptr<protocol::Channel> Connect() override {
    auto [near, far] = MemoryChannel::Pair(16);
    agent = std::move(far);
    return std::move(near);
  }

  std::unique_ptr<MemoryChannel> agent;
  std::vector<int64_t> budgets, host_limits;
  protocol::Received said_before_budget;
};

class ServedLeaseClientTest : public ::testing::Test {
 protected:
  ServedLeaseClientTest() {
    client.Use(0, kDevice, 1000);
    client.Step(1);
    protocol::Welcome welcome;
    welcome.agent_instance = 7;
    welcome.session = 1;
    welcome.usage_interval_ms = 500;
    welcome.job = "local-1";
    subject.agent->Send(welcome);
    client.Step(2);
    while (subject.agent->Receive().what == protocol::Received::What::kMessage) {
    }
  }

  void Grant(uint64_t serial, int64_t budget_bytes, int64_t host_bytes) {
    protocol::Grant grant;
    grant.serial = serial;
    grant.budget_bytes = budget_bytes;
    grant.host_bytes = host_bytes;
    subject.agent->Send(grant);
  }

  HoldingSubject subject;
  LeaseClient client{{}, &subject, &subject};
};

// The subject holds 80 bytes of the device and 30 of the host. Who waits for host memory waited until the device's was emptied, and
// that waited for the one that waited (tests/bench/tenants).
TEST_F(ServedLeaseClientTest, HostMemoryIsGivenBackBeforeTheDevicesIsEmptied) {
  Grant(1, 50, 40);

  client.Step(3);

  const auto* obeyed = std::get_if<protocol::Obeyed>(&subject.said_before_budget.message);
  ASSERT_NE(obeyed, nullptr);
  EXPECT_EQ(obeyed->held_bytes, 80);
  EXPECT_EQ(obeyed->host_bytes, 60) << "30, and 30 that leave the device now";
  EXPECT_EQ(subject.host_limits, std::vector<int64_t>{40});
}

TEST_F(ServedLeaseClientTest, OnlyTheNewestOfManyGrantsIsFollowed) {
  Grant(1, 50, 40);
  Grant(2, 70, 40);
  Grant(3, 100, 40);

  client.Step(3);

  EXPECT_EQ(subject.budgets, std::vector<int64_t>{100});
}

TEST(LeaseClientTest, WhoBeganWithoutAnAgentTellsTheFirstOneWhatItHolds) {
  HoldingSubject subject;
  LeaseClient client({}, &subject, &subject);
  client.Use(0, kDevice, 1000);
  client.Step(1);
  subject.agent->Receive();  // Hello
  protocol::Welcome welcome;
  welcome.agent_instance = 7;
  welcome.session = 1;
  welcome.usage_interval_ms = 500;
  welcome.job = "local-1";
  subject.agent->Send(welcome);

  client.Step(2);

  auto received = subject.agent->Receive();
  if (std::holds_alternative<protocol::HeldSlabs>(received.message)) received = subject.agent->Receive();
  ASSERT_EQ(received.what, protocol::Received::What::kMessage);
  const auto* asked = std::get_if<protocol::Register>(&received.message);
  ASSERT_NE(asked, nullptr) << protocol::NameOf(received.message);
  EXPECT_EQ(asked->held_bytes, 80);
  EXPECT_EQ(asked->held_host_bytes, 30);
}

}  // namespace
}  // namespace spillway::interposer
