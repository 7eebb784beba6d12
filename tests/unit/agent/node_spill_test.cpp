// Which resting job stores its evicted memory in a file, when, and what counts against the quota.
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/unit/agent/node/fake_shares.h"
#include "tests/unit/agent/node_client.h"

namespace spillway::agent {
namespace {

using protocol::SpillFile;
using protocol::SpillUse;

constexpr int64_t kMs = 1'000'000;

class SpillShares : public FakeShares {
 public:
  int64_t SpillBytes() const override { return quota_bytes; }
  base::Result<base::UniqueFd> OpenSpillFile(int64_t bytes) override {
    if (is_full) return base::Error{"cannot reserve space", "No space left on device"};
    opened.push_back(bytes);
    return base::UniqueFd(memfd_create("spill", MFD_CLOEXEC));
  }

  int64_t quota_bytes = 100 * kGiB;
  bool is_full = false;
  std::vector<int64_t> opened;
};

// The host has 8 GiB. One job sleeps with 6 GiB there; another one wants as much.
class NodeSpillTest : public NodeTest {
 protected:
  void Start() {
    Config config = FakeConfig();
    config.spill_after_ms = 1000;
    node_ =
        std::make_unique<Node>(config, FakeDevices(), 8 * kGiB, 7, &services_, now_ns_, &shares_);
  }
  std::unique_ptr<Client> Begin(int64_t need_gib) { return BeginAs(NewProcess(), need_gib); }
  std::unique_ptr<Client> BeginAs(std::shared_ptr<FakeProcess> process, int64_t need_gib) {
    auto client = Job(12, std::move(process));
    Settle();
    client->ObeyAll();
    Report(*client, true, 0);
    client->Say(protocol::Footprint{3, 12 * kGiB});
    Need(*client, need_gib);
    Pass(10);
    client->ObeyAll();
    return client;
  }
  static void Report(Client& client, bool active, int64_t host_gib) {
    client.Say(protocol::Usage{.device = 3,
                               .active = active,
                               .wanted_bytes = 12 * kGiB,
                               .resident_bytes = kGiB,
                               .host_bytes = host_gib * kGiB});
  }
  // Beside what it is granted on the device.
  static void Need(Client& client, int64_t gib) {
    client.Say(protocol::HostNeed{3, 16 * kGiB + gib * kGiB});
  }
  void Pass(int64_t ms) {
    for (int64_t passed = 0; passed < ms; passed += 100) {
      now_ns_ += 100 * kMs;
      Settle();
    }
  }
  void Use(Client& client, uint64_t serial, int64_t stored_gib) {
    client.Say(SpillUse{.device = 3, .serial = serial, .stored_bytes = stored_gib * kGiB});
  }
  template <class M>
  static std::optional<M> Hear(Client& client) {
    std::optional<M> last;
    protocol::Message message;
    while (client.Receive(&message)) {
      if (const auto* one = std::get_if<M>(&message)) last = *one;
      if (const auto* grant = std::get_if<protocol::Grant>(&message)) client.Obey(*grant);
    }
    return last;
  }
  int64_t UsedGib() { return node_->Report(now_ns_).spill_used_bytes / kGiB; }

  SpillShares shares_;
};

TEST_F(NodeSpillTest, ARestingJobStoresWhenAnotherLacksHostMemory) {
  Start();
  auto sleeper = Begin(6);
  Report(*sleeper, false, 6);
  Pass(5000);
  EXPECT_FALSE(Hear<SpillFile>(*sleeper)) << "nobody else wants host memory";

  auto other = Begin(6);
  Pass(1000);

  const auto file = Hear<SpillFile>(*sleeper);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->serial, 1u);
  EXPECT_EQ(file->size_bytes, 6 * kGiB);
  EXPECT_FALSE(Hear<SpillFile>(*other)) << "it does not rest";
  EXPECT_EQ(UsedGib(), 6);
}

TEST_F(NodeSpillTest, ARestIsTooShortAtFirst) {
  Start();
  auto sleeper = Begin(6), other = Begin(6);
  Report(*sleeper, false, 6);
  Pass(900);
  EXPECT_FALSE(Hear<SpillFile>(*sleeper));
  Report(*sleeper, true, 6);
  Pass(300);
  Report(*sleeper, false, 6);
  Pass(900);
  EXPECT_FALSE(Hear<SpillFile>(*sleeper)) << "it was awake in between";
  Pass(600);
  EXPECT_TRUE(Hear<SpillFile>(*sleeper));
}

TEST_F(NodeSpillTest, FilesStayWithinTheQuota) {
  shares_.quota_bytes = 2 * kGiB;
  Start();
  auto first = Begin(6), second = Begin(6), other = Begin(6);
  Report(*first, false, 4);
  Report(*second, false, 4);
  Pass(3000);

  EXPECT_EQ(shares_.opened, std::vector<int64_t>{2 * kGiB});
  EXPECT_EQ(UsedGib(), 2);
}

TEST_F(NodeSpillTest, AWakingJobIsCalledBackAndItsFileEndsWithItsReport) {
  Start();
  auto sleeper = Begin(6), other = Begin(6);
  Report(*sleeper, false, 6);
  Pass(2000);
  ASSERT_TRUE(Hear<SpillFile>(*sleeper));
  Use(*sleeper, 0, 0);
  EXPECT_EQ(UsedGib(), 6) << "said before it had the file";
  Use(*sleeper, 1, 5);

  Report(*sleeper, true, 1);
  Pass(500);
  EXPECT_TRUE(Hear<protocol::ReturnSpilled>(*sleeper));
  EXPECT_EQ(UsedGib(), 6);
  Use(*sleeper, 0, 0);
  EXPECT_EQ(UsedGib(), 0);

  Report(*sleeper, false, 6);
  Pass(2000);
  const auto file = Hear<SpillFile>(*sleeper);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->serial, 2u);
}

TEST_F(NodeSpillTest, ADeadProcessUsesNothing) {
  Start();
  auto sleeper = Begin(6), other = Begin(6);
  Report(*sleeper, false, 6);
  Pass(2000);
  Use(*sleeper, 1, 6);
  sleeper->Dies();
  node_->PeerEnded(sleeper->session, now_ns_);
  Pass(100);
  EXPECT_EQ(UsedGib(), 0);
}

TEST_F(NodeSpillTest, FilesOfAnEarlierAgentCount) {
  Start();
  auto sleeper = Begin(6);
  Use(*sleeper, 9, 5);
  EXPECT_EQ(UsedGib(), 5);
  auto other = Begin(6);
  Report(*sleeper, false, 6);
  Pass(3000);
  EXPECT_FALSE(Hear<SpillFile>(*sleeper)) << "one file at a time";
  Use(*sleeper, 0, 0);
  Pass(2000);
  const auto file = Hear<SpillFile>(*sleeper);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->serial, 10u);
}

// Regression (TierLifeTest, seed 6): after a cut connection the agent did not count the file until
// the next report, and gave the process another one.
TEST_F(NodeSpillTest, AProcessThatReturnsHasItsFileStill) {
  Start();
  const auto process = NewProcess();
  auto other = Begin(6);
  auto sleeper = BeginAs(process, 6);
  Report(*sleeper, false, 6);
  Pass(2000);
  ASSERT_TRUE(Hear<SpillFile>(*sleeper));
  Use(*sleeper, 1, 5);
  sleeper->Hangs();
  Pass(100);
  EXPECT_EQ(UsedGib(), 6);

  sleeper = BeginAs(process, 6);
  Report(*sleeper, false, 6);
  Pass(3000);
  EXPECT_FALSE(Hear<SpillFile>(*sleeper));
  EXPECT_EQ(UsedGib(), 6);
  Use(*sleeper, 0, 0);
  EXPECT_EQ(UsedGib(), 0);
}

// Otherwise a file that it has from before would come on top.
TEST_F(NodeSpillTest, AProcessThatHasNotSaidWhatItHasGetsNoFile) {
  Start();
  auto other = Begin(6);
  auto sleeper = Job(12);
  Settle();
  sleeper->ObeyAll();
  Report(*sleeper, false, 6);
  Pass(3000);
  EXPECT_FALSE(Hear<SpillFile>(*sleeper));
  sleeper->Say(protocol::Footprint{3, 12 * kGiB});
  Pass(1000);
  EXPECT_TRUE(Hear<SpillFile>(*sleeper));
}

TEST_F(NodeSpillTest, NobodyGetsAFileWhileProcessesOfAnEarlierAgentReturn) {
  Config config = FakeConfig();
  config.spill_after_ms = 0;
  config.resume_ms = 5000;
  node_ = std::make_unique<Node>(config, FakeDevices(), 8 * kGiB, 7, &services_, now_ns_, &shares_);
  auto sleeper = Begin(6);
  Report(*sleeper, false, 6);
  auto other = Begin(6);
  Pass(3000);
  EXPECT_TRUE(shares_.opened.empty());
  Pass(40'000);
  EXPECT_FALSE(shares_.opened.empty());
}

// Regression (TierLifeTest, seed 113): a stopped process has not read the message with its file,
// and the agent gave the space to others.
TEST_F(NodeSpillTest, AFileCountsUntilAStoppedProcessHasReadOfIt) {
  Start();
  auto sleeper = Begin(6), other = Begin(6);
  Report(*sleeper, false, 6);
  Pass(2000);
  ASSERT_EQ(UsedGib(), 6);
  Pass(90'000);
  EXPECT_EQ(UsedGib(), 6);

  EXPECT_TRUE(Hear<protocol::ReturnSpilled>(*sleeper)) << "it reads all, and has not got the file";
  for (int i = 0; i < 450; ++i) {
    Pass(100);
    Hear<protocol::Grant>(*sleeper);
  }
  EXPECT_EQ(UsedGib(), 0);
}

TEST_F(NodeSpillTest, AFileThatStoresNothingIsCalledBackAndNotGivenAgainSoon) {
  Start();
  auto sleeper = Begin(6), other = Begin(6);
  Report(*sleeper, false, 6);
  Pass(2000);
  Use(*sleeper, 1, 0);
  Pass(25'000);
  EXPECT_TRUE(Hear<protocol::ReturnSpilled>(*sleeper));
  Use(*sleeper, 0, 0);
  Pass(30'000);
  EXPECT_EQ(shares_.opened.size(), 1u);
  Pass(40'000);
  EXPECT_EQ(shares_.opened.size(), 2u);
}

// One of three has its turn. The next one keeps its memory on the host, and gets back what it has
// stored.
TEST_F(NodeSpillTest, OfJobsThatWaitForTheirTurnTheNextOneStoresNothing) {
  Config config = FakeConfig();
  config.spill_after_ms = 0;
  config.defaults.turns = static_cast<int64_t>(TurnsChoice::kAlways);
  node_ = std::make_unique<Node>(config, FakeDevices(), 8 * kGiB, 7, &services_, now_ns_, &shares_);
  std::vector<std::unique_ptr<Client>> jobs;
  for (int i = 0; i < 3; ++i) jobs.push_back(Begin(6));
  std::map<size_t, uint64_t> files;
  std::set<size_t> called_back;
  for (int64_t operations = 1; operations < 600 && called_back.empty(); ++operations) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      jobs[i]->Say(protocol::TurnUse{.device = 3, .operations = operations});
      Report(*jobs[i], true, 4);
    }
    Pass(100);
    const NodeReport report = node_->Report(now_ns_);
    const JobId next = report.devices[0].turns.next;
    for (size_t i = 0; i < jobs.size(); ++i) {
      protocol::Message message;
      while (jobs[i]->Receive(&message)) {
        if (const auto* grant = std::get_if<protocol::Grant>(&message)) jobs[i]->Obey(*grant);
        if (const auto* file = std::get_if<SpillFile>(&message)) {
          files[i] = file->serial;
          Use(*jobs[i], file->serial, 4);
          EXPECT_NE(static_cast<uint64_t>(next), i + 1) << "the next one";
        }
        if (std::get_if<protocol::ReturnSpilled>(&message)) called_back.insert(i);
      }
    }
  }
  EXPECT_FALSE(files.empty());
  ASSERT_EQ(called_back.size(), 1u);
  EXPECT_TRUE(files.contains(*called_back.begin()));
}

TEST_F(NodeSpillTest, AFullDiskIsToldOnce) {
  shares_.is_full = true;
  Start();
  auto sleeper = Begin(6), other = Begin(6);
  Report(*sleeper, false, 6);
  Pass(5000);
  EXPECT_EQ(std::count(services_.warnings.begin(), services_.warnings.end(),
                       "evicted memory stays in host memory: cannot reserve space: No space left "
                       "on device"),
            1);
  EXPECT_EQ(UsedGib(), 0);
}

TEST_F(NodeSpillTest, WithoutAFolderNobodyStores) {
  shares_.quota_bytes = 0;
  Start();
  auto sleeper = Begin(6), other = Begin(6);
  Report(*sleeper, false, 6);
  Pass(5000);
  EXPECT_TRUE(shares_.opened.empty());
}

TEST_F(NodeSpillTest, AFileOfAnEarlierAgentCountsWithItsWholeSize) {
  Start();
  auto sleeper = Begin(6);
  Report(*sleeper, false, 6);
  sleeper->Say(SpillUse{.device = 3, .serial = 9, .stored_bytes = kGiB, .file_bytes = 5 * kGiB});
  Pass(1000);
  EXPECT_EQ(UsedGib(), 5);
}

TEST_F(NodeSpillTest, AFileThatIsBeingWrittenIsNotCalledBack) {
  Start();
  auto sleeper = Begin(6);
  Report(*sleeper, false, 6);
  auto other = Begin(6);
  Pass(2000);
  ASSERT_TRUE(Hear<SpillFile>(*sleeper));
  for (int64_t second = 1; second <= 60; ++second) {
    sleeper->Say(
        SpillUse{.device = 3, .serial = 1, .written_bytes = second << 20, .file_bytes = 6 * kGiB});
    Pass(1000);
  }
  EXPECT_FALSE(Hear<protocol::ReturnSpilled>(*sleeper)) << "its first range is not whole yet";
}

}  // namespace
}  // namespace spillway::agent
