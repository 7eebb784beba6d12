// A lease client that the test's agent has greeted, and the memory that it reports.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "interposer/lease/lease_client.h"
#include "protocol/memory_channel.h"

namespace spillway::interposer {

using protocol::MemoryChannel;

constexpr protocol::DeviceUuid kDevice = {1};
constexpr int64_t kSecond = 1'000'000'000;

class HoldingSubject : public LeaseSubject, public LeaseConnector {
 public:
  DeviceUse Read(uint32_t) override {
    DeviceUse use;
    use.resident_bytes = 80;
    use.host_bytes = 30;
    use.host_need_bytes = host_need_bytes;
    use.account.ordinary_bytes = ordinary_bytes;
    use.steps.sum_ns = ordinary_bytes;
    use.workspaces.idle_bytes = idle_workspace_bytes;
    use.plans.recomputes = recomputes;
    use.lost.steps_lost_ns = lost_ns;
    return use;
  }
  void SetHostLimit(const protocol::Grant& grant) override {
    host_limits.push_back(grant.host_bytes);
  }
  void SetWorkspaceLimit(const protocol::WorkspaceGrant& grant) override {
    workspace_limits.push_back(grant.limit_bytes);
  }
  void SetBudget(const protocol::Grant& grant, int64_t) override {
    budgets.push_back(grant.budget_bytes);
  }
  void Admission(const protocol::Admission&) override {}
  std::unique_ptr<protocol::Channel> Connect() override {
    auto [near, far] = MemoryChannel::Pair(16);
    agent = std::move(far);
    return std::move(near);
  }

  std::unique_ptr<MemoryChannel> agent;
  std::vector<int64_t> budgets, host_limits, workspace_limits;
  int64_t host_need_bytes = 10, ordinary_bytes = 0, idle_workspace_bytes = 0, recomputes = 0,
          lost_ns = 0;
};

template <class Subject>
class ServedLeaseClient : public ::testing::Test {
 protected:
  explicit ServedLeaseClient(uint16_t version = protocol::kNewestVersion) {
    client.Use(0, kDevice, 1000);
    client.Step(1);
    Greet(version);
    client.Step(2);
    Hear<protocol::Goodbye>();
  }

  void Greet(uint16_t version = protocol::kNewestVersion) {
    protocol::Welcome welcome;
    welcome.agent_instance = 7;
    welcome.session = 1;
    welcome.usage_interval_ms = 500;
    welcome.version = version;
    welcome.job = "local-1";
    subject.agent->Send(welcome);
  }

  static constexpr int64_t kTurnNs = 500'000'000;

  template <class Kind>
  std::optional<Kind> Hear() {
    std::optional<Kind> last;
    protocol::Received said;
    while ((said = subject.agent->Receive()).what == protocol::Received::What::kMessage) {
      if (const auto* one = std::get_if<Kind>(&said.message)) last = *one;
    }
    EXPECT_NE(said.what, protocol::Received::What::kFault) << "not of the session's version";
    return last;
  }

  void Grant(uint64_t serial, int64_t budget_bytes, int64_t host_bytes) {
    protocol::Grant grant;
    grant.serial = serial;
    grant.budget_bytes = budget_bytes;
    grant.host_bytes = host_bytes;
    subject.agent->Send(grant);
  }

  Subject subject;
  LeaseClient client{{}, &subject, &subject};
};

}  // namespace spillway::interposer
