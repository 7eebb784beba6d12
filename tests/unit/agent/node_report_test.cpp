// What the node reports: figures summed over a job's living and ended processes.
#include <gtest/gtest.h>

#include "agent/node/node.h"
#include "tests/unit/agent/fake_node.h"
#include "tests/unit/agent/units.h"

namespace spillway::agent {
namespace {

class TickingServices : public FakeServices {
 public:
  int64_t NowNs() const override { return ticks_ns_ += 1'000'000; }

 private:
  mutable int64_t ticks_ns_ = 0;
};

class NodeReportTest : public testing::Test {
 protected:
  struct Client {
    std::shared_ptr<FakeProcess> process;
    std::unique_ptr<protocol::MemoryChannel> channel;
    SessionId session{};
  };

  Client Connect(protocol::Role role, pid_t leader = 0) {
    Client client{std::make_shared<FakeProcess>(FakeProcess{++last_pid_, 0, true}), nullptr, {}};
    auto [near, far] = protocol::MemoryChannel::Pair(64);
    client.channel = std::move(near);
    client.session =
        *node_.Connected(std::move(far), std::make_unique<FakePeer>(client.process), now_ns_);
    Say(client, protocol::Hello{.role = role, .leader_pid = leader});
    return client;
  }
  Client Job(int64_t wanted_bytes, pid_t leader = 0) {
    Client client = Connect(protocol::Role::kJob, leader);
    Say(client,
        protocol::Register{.device = 3, .uuid = kFirstDevice, .wanted_bytes = wanted_bytes});
    node_.Settle(now_ns_);
    return client;
  }
  void Say(Client& client, const protocol::Message& message) {
    client.channel->Send(message);
    node_.Readable(client.session, now_ns_);
  }
  void Ends(Client& client) {
    client.process->alive = false;
    client.channel.reset();
    node_.Readable(client.session, now_ns_);
    node_.Settle(now_ns_);
  }
  TenancyReport OnlyTenancy() const { return node_.Report(now_ns_).jobs.at(0).tenancies.at(0); }

  static Config GuaranteeingTen() {
    Config config = FakeConfig();
    config.defaults.guaranteed_bytes = 10 * kGiB;
    config.defaults.floor_bytes = 10 * kGiB;
    return config;
  }

  int64_t now_ns_ = 1000 * kSecond;
  pid_t last_pid_ = 100;
  TickingServices services_;
  Node node_{GuaranteeingTen(), FakeDevices(), 64 * kGiB, 7, &services_, now_ns_};
};

// Regression: the sum over 160 processes overflowed and became negative.
TEST_F(NodeReportTest, SumsOfProcessReportsSaturate) {
  std::vector<Client> clients;
  for (int i = 0; i < 160; ++i) {
    now_ns_ += kSecond;
    clients.push_back(Job(protocol::kMostBytes, 4711));
    Say(clients.back(), protocol::Usage{.device = 3,
                                        .active = true,
                                        .wanted_bytes = protocol::kMostBytes,
                                        .resident_bytes = protocol::kMostBytes,
                                        .unmovable_bytes = protocol::kMostBytes,
                                        .host_bytes = protocol::kMostBytes});
  }
  node_.Settle(now_ns_);

  const NodeReport report = node_.Report(now_ns_);
  const TenancyReport& tenancy = report.jobs.at(0).tenancies.at(0);
  EXPECT_EQ(tenancy.resident_bytes, INT64_MAX);
  EXPECT_EQ(tenancy.host_bytes, INT64_MAX);
  EXPECT_EQ(tenancy.unmovable_bytes, INT64_MAX);
  EXPECT_EQ(report.devices.at(0).resident_bytes, INT64_MAX);
  EXPECT_GT(tenancy.view.wanted_bytes, 0);
  EXPECT_EQ(tenancy.view.granted_bytes, report.devices.at(0).memory_bytes)
      << "it wants all that there is";
}

TEST_F(NodeReportTest, PartsAreSummedOverLivingAndEndedProcesses) {
  Client first = Job(kGiB, 4711), second = Job(kGiB, 4711);
  protocol::Account parts = {.device = 3, .ordinary_bytes = 100, .planned_to_host_bytes = 10};
  parts.stall_ns = {1, 2, 3, 4, 5, 6, 7};
  parts.prefetches_late = 20;
  parts.replans = {1, 0, 2, 0};

  Say(first, parts);
  Say(second, parts);
  EXPECT_EQ(OnlyTenancy().parts.ordinary_bytes, 200);
  Ends(second);

  const TenancyReport tenancy = OnlyTenancy();
  EXPECT_EQ(tenancy.parts.ordinary_bytes, 100) << "what was held ends with its process";
  EXPECT_EQ(tenancy.parts.planned_to_host_bytes, 20);
  EXPECT_EQ(tenancy.parts.stall_ns[6], 14);
  EXPECT_EQ(tenancy.parts.prefetches_late, 40);
  EXPECT_EQ(tenancy.parts.replans[2], 4);
}

TEST_F(NodeReportTest, SumsWithoutPartsAreCountedSeparately) {
  Client old = Job(kGiB, 4711), young = Job(kGiB, 4711);
  const protocol::Usage usage = {
      .device = 3, .to_host_bytes = 50, .to_device_bytes = 60, .stall_ns = 70};

  Say(old, usage);
  Say(young, usage);
  Say(young, protocol::Account{.device = 3, .pressure_to_host_bytes = 50});

  const TenancyReport tenancy = OnlyTenancy();
  EXPECT_EQ(tenancy.to_host_bytes, 100);
  EXPECT_EQ(tenancy.unparted_to_host_bytes, 50) << "the old one's";
  EXPECT_EQ(tenancy.unparted_to_device_bytes, 60);
  EXPECT_EQ(tenancy.unparted_stall_ns, 70);
  EXPECT_EQ(tenancy.parts.pressure_to_host_bytes, 50);
}

TEST_F(NodeReportTest, SumsOfClientReportsSaturate) {
  Client first = Job(kGiB, 4711), second = Job(kGiB, 4711);
  protocol::StepTimes steps = {.device = 3, .sum_ns = INT64_MAX};
  steps.counts[0] = INT64_MAX;

  for (Client* client : {&first, &second}) {
    Say(*client, protocol::Usage{.device = 3, .stall_ns = INT64_MAX});
    Say(*client, protocol::Account{.device = 3, .prefetch_hits = INT64_MAX});
    Say(*client, steps);
    Say(*client,
        protocol::PlanUse{.device = 3, .missed_iterations = 5, .fingerprint_ns = INT64_MAX});
  }

  const TenancyReport tenancy = OnlyTenancy();
  EXPECT_EQ(tenancy.stall_ns, INT64_MAX);
  EXPECT_EQ(tenancy.parts.prefetch_hits, INT64_MAX);
  EXPECT_EQ(tenancy.steps.sum_ns, INT64_MAX);
  EXPECT_EQ(tenancy.steps.counts[0], INT64_MAX);
  EXPECT_EQ(tenancy.plans.missed_iterations, 10);
  EXPECT_EQ(tenancy.plans.fingerprint_ns, INT64_MAX);
}

TEST_F(NodeReportTest, PartsOfADeviceThatIsNotRegisteredEndTheSession) {
  Client client = Job(kGiB);

  Say(client, protocol::Account{.device = 4});

  EXPECT_EQ(node_.Report(now_ns_).jobs.at(0).processes.detached, 1u);
}

TEST_F(NodeReportTest, ProcessesAreCountedByJobStep) {
  const auto in_step = [this](const char* step) {
    services_.identities[last_pid_ + 1] =
        JobIdentity{"slurm-1201", "slurm-1201", JobSource::kSlurm, step, "train", "1201"};
    return Job(kGiB);
  };
  const Client first = in_step("0"), second = in_step("0");
  Client batch = in_step("batch");

  const JobReport job = node_.Report(now_ns_).jobs.at(0);
  EXPECT_EQ(job.source_id, "1201");
  EXPECT_EQ(job.processes.all, 3u);
  EXPECT_EQ(job.parts.at("0").all, 2u);
  EXPECT_EQ(job.parts.at("batch").all, 1u);
  Ends(batch);
  EXPECT_FALSE(node_.Report(now_ns_).jobs.at(0).parts.contains("batch"));
}

TEST_F(NodeReportTest, QueueTimeIsCountedWhenAJobIsAdmitted) {
  Client first = Job(12 * kGiB);
  Client waiting = Job(12 * kGiB);
  Client given_up = Job(12 * kGiB);

  now_ns_ += 30 * kSecond;
  Ends(given_up);
  Ends(first);

  const auto waits = node_.Report(now_ns_).counters.admission_waits;
  EXPECT_EQ(waits.counts[0], 1) << "the first one's";
  EXPECT_EQ(waits.counts[4], 1) << "10 to 60 s";
  EXPECT_EQ(waits.sum_ns, 30 * kSecond);
}

TEST_F(NodeReportTest, SecondProcessOfAnAdmittedJobAddsNoQueueTime) {
  Client first = Job(kGiB, 4711), second = Job(kGiB, 4711);

  EXPECT_EQ(node_.Report(now_ns_).counters.admission_waits.counts[0], 1);
}

TEST_F(NodeReportTest, OperatorRequestsAreCountedByMethodAndOutcome) {
  Client client = Connect(protocol::Role::kOperator);

  Say(client, protocol::Ask{});
  Say(client, protocol::Ask{.question = protocol::Question::kJob, .job = "local-9"});
  Say(client, protocol::SetBudget{.job = "local-9"});
  Say(client, protocol::Control{protocol::Action::kReload, ""});
  Say(client, protocol::Control{protocol::Action::kDrain, ""});
  Say(client, protocol::Control{protocol::Action::kDrain, ""});

  const auto requests = node_.Report(now_ns_).counters.api_requests;
  const auto count = [&](const char* method, const char* code) {
    const auto found = requests.find({method, code});
    return found == requests.end() ? 0 : found->second.counts[2];  // a tick: 0.3 to 1 ms
  };
  EXPECT_EQ(requests.size(), 5u);
  EXPECT_EQ(count("status", "done"), 1);
  EXPECT_EQ(count("job", "unknown_job"), 1);
  EXPECT_EQ(count("set_budget", "unknown_job"), 1);
  EXPECT_EQ(count("reload", "refused"), 1);
  EXPECT_EQ(count("drain", "done"), 2);
}

}  // namespace
}  // namespace spillway::agent
