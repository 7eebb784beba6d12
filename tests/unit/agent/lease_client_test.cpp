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
  void SetBudget(const protocol::Grant&, int64_t) override {}
  void Admission(const protocol::Admission&) override {}
  std::unique_ptr<protocol::Channel> Connect() override {
    auto [near, far] = MemoryChannel::Pair(16);
    agent = std::move(far);
    return std::move(near);
  }

  std::unique_ptr<MemoryChannel> agent;
};

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
