// Hard limits of the driver's above jobs' budgets, by a node whose HardLimits the test plays.
#include "tests/unit/agent/node_client.h"

namespace spillway::agent {
namespace {

class FakeLimits : public HardLimits {
 public:
  void Want(const WantedLimits& limits) override { wanted = limits; }
  std::shared_ptr<const LimitViews> Views() const override {
    return std::make_shared<const LimitViews>(views);
  }
  // As the driver would.
  void SetAll() {
    views.clear();
    for (const auto& [place, bytes] : wanted) views[place] = {LimitState::kSet, bytes};
  }

  WantedLimits wanted;
  LimitViews views;
};

class NodeBackstopTest : public NodeTest {
 protected:
  const LimitPlace place_{"GPU-1", "/sys/fs/cgroup/kubepods/pod7/c"};

  static Config BackstopConfig() {
    Config config = FakeConfig();
    config.sets_hard_limits = true;
    config.defaults.floor_bytes = 0;
    return config;
  }
  void Begin(Config config = BackstopConfig()) {
    node_ = std::make_unique<Node>(std::move(config), FakeDevices(), 64 * kGiB, 7, &services_,
                                   now_ns_, nullptr, nullptr, nullptr, &limits_);
  }
  std::shared_ptr<FakeProcess> InGroup(const std::string& job, const std::string& group,
                                       JobSource source = JobSource::kKubernetes) {
    auto process = NewProcess();
    services_.identities[process->pid] = {job, job, source, "", "train", "7", group};
    return process;
  }
  std::shared_ptr<FakeProcess> InPod() { return InGroup("pod-7", place_.group); }
  void Settle(int64_t later_ns = 0) {
    now_ns_ += later_ns;
    node_->Settle(now_ns_);
  }
  // To whole GiB: demands and limits are rounded up a little.
  static int64_t InGiB(int64_t bytes) { return (bytes + kGiB / 2) / kGiB; }
  std::map<LimitPlace, int64_t> WantedGiB() const {
    std::map<LimitPlace, int64_t> wanted;
    for (const auto& [place, bytes] : limits_.wanted) wanted[place] = InGiB(bytes);
    return wanted;
  }
  // The newest that has come; 0: none.
  static int64_t GrantTo(Client& client) {
    int64_t bytes = 0;
    for (protocol::Message message; client.Receive(&message);) {
      if (const auto* const grant = std::get_if<protocol::Grant>(&message)) {
        bytes = grant->budget_bytes;
        client.Obey(*grant);
      }
    }
    return bytes;
  }

  FakeLimits limits_;
};

TEST_F(NodeBackstopTest, AGrantGoesOutOnceItsLimitIsSet) {
  Begin();
  const auto job = Job(4, InPod());
  Settle();
  EXPECT_EQ(WantedGiB(), (WantedLimits{{place_, 5}})) << "budget and reserve";
  EXPECT_EQ(GrantTo(*job), 0) << "its limit comes first";

  limits_.SetAll();
  Settle();
  EXPECT_EQ(InGiB(GrantTo(*job)), 4);
}

TEST_F(NodeBackstopTest, TheLimitRisesBeforeAGrantAndFallsAfterTheProcessObeyed) {
  Begin();
  const auto job = Job(4, InPod());
  Settle();
  limits_.SetAll();
  Settle();
  EXPECT_EQ(InGiB(GrantTo(*job)), 4);

  protocol::Usage usage;
  usage.device = 3;
  usage.wanted_bytes = 8 * kGiB / 9 * 8;
  usage.resident_bytes = kGiB;
  job->Say(usage);
  Settle();
  EXPECT_EQ(WantedGiB().at(place_), 9);
  EXPECT_EQ(GrantTo(*job), 0);
  limits_.SetAll();
  Settle();
  EXPECT_EQ(InGiB(GrantTo(*job)), 8);

  const auto other = Job(16, InGroup("pod-8", "/sys/fs/cgroup/kubepods/pod8/c"));
  const auto third = Job(16, InGroup("pod-9", "/sys/fs/cgroup/kubepods/pod9/c"));
  limits_.views.clear();  // the driver is late
  Settle(Backstop::kLowerAfterNs / 2);
  Settle(Backstop::kLowerAfterNs / 2);
  EXPECT_GE(WantedGiB().at(place_), 9) << "it may still hold that";
  const int64_t lowered_bytes = GrantTo(*job);
  EXPECT_GT(lowered_bytes, 0) << "a grant that shrinks needs no limit";
  EXPECT_LT(InGiB(lowered_bytes), 8);
  Settle();
  Settle(Backstop::kLowerAfterNs);
  const int64_t over_bytes = limits_.wanted.at(place_) - lowered_bytes - kGiB;
  EXPECT_TRUE(over_bytes >= 0 && over_bytes < Backstop::kStepBytes) << over_bytes;
}

TEST_F(NodeBackstopTest, NothingWaitsWhereTheLimitIsAnothersOrRefused) {
  for (const LimitState state : {LimitState::kForeign, LimitState::kRefused}) {
    limits_ = {};
    limits_.views[place_] = {state, LimitView::kNone};
    Begin();
    const auto job = Job(4, InPod());
    Settle();
    EXPECT_EQ(InGiB(GrantTo(*job)), 4);
  }
}

TEST_F(NodeBackstopTest, ASilentDriverDelaysAGrantByTwoSecondsAtMost) {
  Begin();
  const auto job = Job(4, InPod());
  Settle();
  Settle(Backstop::kPatienceNs - 1);
  EXPECT_EQ(GrantTo(*job), 0);
  EXPECT_LE(node_->NextWake(), now_ns_ + kSecond);

  Settle(1);

  EXPECT_EQ(InGiB(GrantTo(*job)), 4);
  Settle(kSecond);
  EXPECT_EQ(services_.warnings.size(), 1U);
}

TEST_F(NodeBackstopTest, EachProcessOfAGroupHasAReserve) {
  Begin();
  const auto first = Job(4, InPod());
  const auto second = Job(2, InPod());
  Settle();

  EXPECT_EQ(WantedGiB(), (WantedLimits{{place_, 8}}));
}

TEST_F(NodeBackstopTest, LocalJobsAndSharedGroupsHaveNone) {
  Begin();
  const auto local = Job(1);
  const auto first = Job(1, InPod());
  const auto second = Job(1, InGroup("pod-8", place_.group));
  Settle();
  Settle(kSecond);

  EXPECT_TRUE(limits_.wanted.empty());
  for (Client* const client : {local.get(), first.get(), second.get()})
    EXPECT_EQ(InGiB(GrantTo(*client)), 1);
}

TEST_F(NodeBackstopTest, TheEndOfAJobAndAReloadClearIt) {
  Begin();
  const auto process = InPod();
  const auto job = Job(4, process);
  Settle();
  EXPECT_FALSE(limits_.wanted.empty());
  job->Dies();
  Settle(Backstop::kLowerAfterNs);
  EXPECT_TRUE(limits_.wanted.empty());

  const auto next = Job(4, InPod());
  Settle();
  EXPECT_FALSE(limits_.wanted.empty());
  node_->SetConfig(FakeConfig());
  Settle(Backstop::kLowerAfterNs);
  EXPECT_TRUE(limits_.wanted.empty());
}

TEST_F(NodeBackstopTest, ByDefaultThereIsNone) {
  Begin(FakeConfig());
  const auto job = Job(4, InPod());
  Settle();

  EXPECT_TRUE(limits_.wanted.empty());
  EXPECT_EQ(InGiB(GrantTo(*job)), 4);
  EXPECT_FALSE(node_->Report(now_ns_).hard_limits);
}

TEST_F(NodeBackstopTest, WhileJobsReturnNothingIsChanged) {
  Config config = BackstopConfig();
  config.resume_ms = 3000;
  Begin(config);
  limits_.wanted = {{place_, 7 * kGiB}};  // an earlier agent's
  const auto job = Connect(InPod());
  job->Say(protocol::Hello{});
  job->Next<protocol::Welcome>();
  job->Say(Wanting(4, 3 * kGiB));
  Settle();
  EXPECT_EQ(WantedGiB(), (WantedLimits{{place_, 7}}));

  for (int i = 0; i < 20; ++i) Settle(kSecond / 4);
  EXPECT_EQ(WantedGiB(), (WantedLimits{{place_, 5}}));
}

TEST_F(NodeBackstopTest, ItsOwnLimitsDoNotBoundAJob) {
  Begin();
  const auto process = InPod();
  const auto job = Job(16, process);
  Settle();
  limits_.SetAll();
  const auto count = [&](int64_t hard_bytes) {
    node_->NoteProcesses(std::make_shared<DeviceProcesses>(DeviceProcesses{
        {"GPU-1"}, {{process->pid, "GPU-1", 1, "train", place_.group, {{0, hard_bytes}}}}}));
    return node_->arbiter().Tenancies().at(0).terms.memory.limit;
  };

  EXPECT_EQ(count(4 * kGiB), 16 * kGiB) << "a little old";
  limits_.views[place_] = {LimitState::kForeign, LimitView::kNone};
  EXPECT_LT(count(4 * kGiB), 4 * kGiB);
}

TEST_F(NodeBackstopTest, ReportsSayWhatBecameOfIt) {
  Begin();
  const auto job = Job(4, InPod());
  Settle();
  limits_.SetAll();
  Settle();

  const NodeReport report = node_->Report(now_ns_);
  const TenancyReport& tenancy = report.jobs.at(0).tenancies.at(0);
  EXPECT_EQ(InGiB(tenancy.hard_limit_bytes.value_or(0)), 5);
  EXPECT_EQ(tenancy.hard_limit_state, LimitState::kSet);
  EXPECT_EQ((*report.hard_limits)[static_cast<size_t>(LimitState::kSet)], 1);
}

}  // namespace
}  // namespace spillway::agent
