// The node's host slabs and link shares: real slabs and link pages, clients in memory.
#include "agent/shares/node_shares.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <cstring>

#include "base/mapping.h"
#include "tests/unit/agent/fake_node.h"
#include "tests/unit/agent/units.h"

namespace spillway::agent {
namespace {

using protocol::SlabName;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kSlab = kMiB;
constexpr int kPatienceMs = 10'000;
constexpr int kMomentMs = 300;  // waits this long for events that must not happen

// Stands for systemd's file store.
class FakeKeeper : public FileKeeper {
 public:
  bool Keep(const std::string& name, int file) override {
    files[name] = base::UniqueFd(fcntl(file, F_DUPFD_CLOEXEC, 0));
    return true;
  }
  bool Drop(const std::string& name) override { return files.erase(name) > 0; }

  std::map<std::string, base::UniqueFd> files;
};

// A job's side of a session, and its slabs.
class SharingJob {
 public:
  SharingJob(std::shared_ptr<FakeProcess> process, uint16_t version)
      : process(std::move(process)), version_(version) {}

  void Connect(Node& node, int64_t now_ns) {
    auto [near, far] = protocol::MemoryChannel::Pair();
    channel_ = std::move(near);
    node_ = &node;
    session = *node.Connected(std::move(far), std::make_unique<FakePeer>(process), now_ns);
    Say({protocol::Hello{.newest_version = version_, .leader_pid = leader_pid}}, now_ns);
    channel_->SetVersion(version_);
  }
  void Say(const protocol::Message& message, int64_t now_ns) {
    channel_->Send(message);
    node_->Readable(session, now_ns);
  }
  // Keeps the last message of each kind.
  void Listen() {
    for (;;) {
      protocol::Received received = channel_->Receive();
      if (received.what != protocol::Received::What::kMessage) return;
      if (const auto* told = std::get_if<protocol::Grant>(&received.message)) grant = *told;
      if (std::holds_alternative<protocol::LinkPlace>(received.message))
        place_files = std::move(received.files);
      const auto* slabs = std::get_if<protocol::Slabs>(&received.message);
      for (uint32_t i = 0; slabs != nullptr && i < slabs->slabs.count; ++i) {
        slab_names.push_back(slabs->slabs.names[i]);
        memory.emplace_back(received.files.at(i).get(), static_cast<size_t>(slabs->slab_bytes));
      }
    }
  }
  void NameHeld(std::vector<SlabName> names, int64_t now_ns) {
    protocol::HeldSlabs held;
    held.last = true;
    for (SlabName name : names) held.slabs.names[held.slabs.count++] = name;
    Say(held, now_ns);
  }
  bool ReadsAs(int value) const {
    return std::all_of(memory.begin(), memory.end(), [value](const base::Mapping& slab) {
      const auto* bytes = static_cast<const unsigned char*>(slab.address());
      return std::all_of(bytes, bytes + slab.size_bytes(),
                         [value](int byte) { return byte == value; });
    });
  }
  void Poison(int value) {
    for (const base::Mapping& slab : memory) std::memset(slab.address(), value, slab.size_bytes());
  }
  void Hangs(int64_t now_ns) {
    channel_.reset();
    node_->Readable(session, now_ns);
  }

  std::shared_ptr<FakeProcess> process;
  pid_t leader_pid = 0;  // not 0: a process of another process's job
  SessionId session{};
  protocol::Grant grant;
  std::vector<SlabName> slab_names;
  std::vector<base::Mapping> memory;
  std::vector<base::UniqueFd> place_files;

 private:
  const uint16_t version_;
  Node* node_ = nullptr;
  std::unique_ptr<protocol::MemoryChannel> channel_;
};

class NodeSharesTest : public testing::Test {
 protected:
  void Start(int64_t slabs, int64_t resume_ms = 0, std::vector<NodeShares::KeptFile> kept = {}) {
    Config config = FakeConfig();
    config.resume_ms = resume_ms;
    config.slab_bytes = kSlab;
    config.huge_pages = false;
    config.link_to_device_bytes_per_second = config.link_to_host_bytes_per_second = 1'000'000'000;
    shares_ = std::make_unique<NodeShares>(config, FakeDevices(), slabs * kSlab, std::move(kept),
                                           &keeper_,
                                           [](const std::string& line) { ADD_FAILURE() << line; });
    node_ = std::make_unique<Node>(config, FakeDevices(), slabs * kSlab, ++instance_, &services_,
                                   now_ns_, shares_.get());
  }
  void Settle() {
    node_->Settle(now_ns_);
    shares_->KeepFiles();
  }
  std::unique_ptr<SharingJob> Job(uid_t uid, uint16_t version = 2, pid_t leader_pid = 0) {
    auto process = std::make_shared<FakeProcess>(FakeProcess{++last_pid_, uid, true});
    auto job = std::make_unique<SharingJob>(process, version);
    job->leader_pid = leader_pid;
    Join(*job);
    return job;
  }
  void Join(SharingJob& job, std::vector<SlabName> held = {}, int64_t held_bytes = 0) {
    job.Connect(*node_, now_ns_);
    if (!old_) job.NameHeld(std::move(held), now_ns_);
    protocol::Register asked;
    asked.uuid = kFirstDevice;
    asked.wanted_bytes = kGiB;
    asked.held_bytes = held_bytes;
    asked.held_host_bytes = held_bytes > 0 ? job.grant.host_bytes : 0;
    job.Say(asked, now_ns_);
    Settle();
    job.Listen();
    Obey(job);
  }
  void Obey(SharingJob& job) {
    const protocol::Grant& grant = job.grant;
    job.Say(protocol::Obeyed{grant.device, grant.serial, grant.budget_bytes, grant.host_bytes},
            now_ns_);
    // Only holders of device memory get slabs.
    job.Say(protocol::Usage{.wanted_bytes = kGiB, .resident_bytes = grant.budget_bytes}, now_ns_);
  }
  // The earlier job obeys, so that the later one has its part.
  void YieldMemoryTo(SharingJob& earlier, SharingJob& later) {
    Settle();
    earlier.Listen();
    Obey(earlier);
    Settle();
    later.Listen();
  }
  void Ask(SharingJob& job, int64_t slabs) {
    job.Say(protocol::AskSlabs{0, slabs * kSlab}, now_ns_);
    job.Listen();
  }
  template <class Done>
  bool Await(Done done, const std::vector<SharingJob*>& jobs, int patience_ms = kPatienceMs) {
    for (int waited_ms = 0; waited_ms < patience_ms; waited_ms += 100) {
      Settle();
      for (SharingJob* job : jobs) job->Listen();
      if (done()) return true;
      pollfd made{shares_->file(), POLLIN, 0};
      poll(&made, 1, 100);
    }
    return false;
  }
  bool AwaitSlabs(SharingJob& job, size_t count) {
    return Await([&] { return job.slab_names.size() >= count; }, {&job});
  }
  std::vector<NodeShares::KeptFile> Kept() {
    std::vector<NodeShares::KeptFile> kept;
    for (const auto& [name, file] : keeper_.files)
      kept.push_back({name, base::UniqueFd(fcntl(file.get(), F_DUPFD_CLOEXEC, 0))});
    return kept;
  }

  int64_t now_ns_ = 1000 * kSecond;
  pid_t last_pid_ = 100;
  uint64_t instance_ = 0;
  bool old_ = false;  // clients speak version 1
  FakeServices services_;
  FakeKeeper keeper_;
  std::unique_ptr<NodeShares> shares_;
  std::unique_ptr<Node> node_;
};

TEST_F(NodeSharesTest, JobGetsSlabsWithinItsQuotaAndALinkSlot) {
  Start(4);
  const auto anna = Job(1000);
  EXPECT_EQ(anna->grant.host_bytes, 4 * kSlab);
  EXPECT_EQ(anna->place_files.size(), 2u);

  Ask(*anna, 10);
  ASSERT_TRUE(AwaitSlabs(*anna, 4));

  EXPECT_EQ(anna->slab_names.size(), 4u);
  EXPECT_EQ(shares_->View()->leased_bytes, 4 * kSlab);
  EXPECT_TRUE(anna->ReadsAs(0));
}

TEST_F(NodeSharesTest, ClientOfProtocolVersionOneGetsNeither) {
  old_ = true;
  Start(4);
  const auto old = Job(1000, 1);

  EXPECT_GT(old->grant.budget_bytes, 0);
  EXPECT_TRUE(old->place_files.empty());
}

TEST_F(NodeSharesTest, SlabsOfADeadProcessAreScrubbedBeforeAnotherUserSeesThem) {
  Start(2);
  const auto anna = Job(1000);
  Ask(*anna, 2);
  ASSERT_TRUE(AwaitSlabs(*anna, 2));
  anna->Poison(0xa5);

  anna->process->alive = false;
  anna->memory.clear();
  node_->PeerEnded(anna->session, now_ns_);
  EXPECT_EQ(shares_->View()->leased_bytes, 0);
  const auto bert = Job(1001);
  Ask(*bert, 2);
  ASSERT_TRUE(AwaitSlabs(*bert, 2));

  EXPECT_TRUE(bert->ReadsAs(0));
}

TEST_F(NodeSharesTest, SlabsOfAnEndedProcessServeItsJobsOtherProcesses) {
  Start(2);
  const auto first = Job(1000);
  const auto second = Job(1000, 2, first->process->pid);
  Ask(*first, 1);
  ASSERT_TRUE(AwaitSlabs(*first, 1));

  first->process->alive = false;
  node_->PeerEnded(first->session, now_ns_);

  EXPECT_EQ(shares_->View()->leased_bytes, 0);
  EXPECT_EQ(shares_->View()->kept_bytes, kSlab);
  Settle();
  second->Listen();
  EXPECT_EQ(second->grant.host_bytes, 2 * kSlab) << "the quota that it left, too";
  Ask(*second, 1);
  EXPECT_EQ(second->slab_names, first->slab_names) << "at once: it is there";
}

TEST_F(NodeSharesTest, MappedSlabIsNotLeasedAgain) {
  Start(2);
  const auto anna = Job(1000);
  Ask(*anna, 2);
  ASSERT_TRUE(AwaitSlabs(*anna, 2));
  anna->process->alive = false;
  node_->PeerEnded(anna->session, now_ns_);
  const auto bert = Job(1001);
  Ask(*bert, 2);

  EXPECT_FALSE(Await([&] { return !bert->slab_names.empty(); }, {bert.get()}, kMomentMs))
      << "a child of hers may see it";
  EXPECT_EQ(shares_->View()->ending_bytes, 2 * kSlab);
}

TEST_F(NodeSharesTest, HostMemoryThatJobsPinReducesThePool) {
  Start(4);
  const auto anna = Job(1000);
  protocol::Usage usage;
  usage.wanted_bytes = kGiB;
  usage.host_bytes = 3 * kSlab;
  anna->Say(usage, now_ns_);
  now_ns_ += 2 * kSecond;
  Settle();

  Ask(*anna, 4);
  ASSERT_TRUE(AwaitSlabs(*anna, 1));
  Await([] { return false; }, {anna.get()}, kMomentMs);

  EXPECT_EQ(anna->slab_names.size(), 1u);
}

// Regression: one process's report emptied the pool for all others.
TEST_F(NodeSharesTest, ReportedPinnedMemoryCountsUpToTheBudget) {
  Start(4);
  const auto liar = Job(1001);
  const auto anna = Job(1000);
  YieldMemoryTo(*liar, *anna);
  ASSERT_EQ(anna->grant.host_bytes, 2 * kSlab);

  liar->Say(protocol::Usage{.wanted_bytes = kGiB, .host_bytes = protocol::kMostBytes}, now_ns_);
  now_ns_ += 2 * kSecond;
  Settle();
  Ask(*anna, 2);

  EXPECT_TRUE(AwaitSlabs(*anna, 2));
}

// Regression: job names are short, and process numbers are reused. The end of one job emptied the
// slabs of a living job of the same name.
TEST_F(NodeSharesTest, JobsOfOneNameDoNotShareSlabs) {
  Start(4);
  services_.identities[101] = {"pod-1f2e3d4c", "pod-1f2e3d4c-aaaa", JobSource::kKubernetes, "",
                               "train"};
  services_.identities[102] = {"pod-1f2e3d4c", "pod-1f2e3d4c-bbbb", JobSource::kKubernetes, "",
                               "train"};
  const auto first = Job(1000);
  const auto second = Job(1000);
  YieldMemoryTo(*first, *second);
  Ask(*first, 1);
  Ask(*second, 1);
  ASSERT_TRUE(Await([&] { return first->slab_names.size() == 1 && second->slab_names.size() == 1; },
                    {first.get(), second.get()}));
  second->Poison(0x5a);

  first->process->alive = false;
  node_->PeerEnded(first->session, now_ns_);
  Await([] { return false; }, {second.get()}, kMomentMs);

  EXPECT_TRUE(second->ReadsAs(0x5a));
  EXPECT_EQ(shares_->View()->leased_bytes, kSlab);
}

TEST_F(NodeSharesTest, NextAgentKnowsHoldersToTheByte) {
  Start(4);
  const auto anna = Job(1000);
  Ask(*anna, 3);
  ASSERT_TRUE(AwaitSlabs(*anna, 3));
  anna->Poison(0x5a);
  Settle();

  node_.reset();
  shares_.reset();
  Start(4, 3000, Kept());
  Join(*anna, {anna->slab_names[0], anna->slab_names[2]}, anna->grant.budget_bytes);

  EXPECT_EQ(shares_->View()->leased_bytes, 2 * kSlab)
      << "the one that it did not name is not leased";
  EXPECT_EQ(shares_->View()->kept_bytes, 1 * kSlab);
  EXPECT_TRUE(anna->ReadsAs(0x5a)) << "what it has is untouched";
}

// Regression (AgentLifeTest, seed 8): the job counted as ended, and its slabs were scrubbed.
TEST_F(NodeSharesTest, ProcessCutOffBeforeItRegistersKeepsItsSlabs) {
  Start(2);
  const auto anna = Job(1000);
  Ask(*anna, 2);
  ASSERT_TRUE(AwaitSlabs(*anna, 2));
  anna->Poison(0x5a);
  Settle();
  node_.reset();
  shares_.reset();
  Start(2, 3000, Kept());

  for (int i = 0; i < 2; ++i) {
    anna->Connect(*node_, now_ns_);
    anna->Hangs(now_ns_);
    Settle();
  }

  EXPECT_EQ(shares_->View()->leased_bytes, 2 * kSlab);
  EXPECT_FALSE(Await([&] { return !anna->ReadsAs(0x5a); }, {}, kMomentMs));
  EXPECT_EQ(node_->session_count(), 1u);
  anna->memory.clear();
  anna->process->alive = false;
  node_->PeerEnded(anna->session, now_ns_);
  EXPECT_EQ(shares_->View()->leased_bytes, 0);
  EXPECT_EQ(node_->session_count(), 0u);
}

TEST_F(NodeSharesTest, SlabsOfProcessesThatDoNotReturnAreReleased) {
  Start(2);
  const auto anna = Job(1000);
  Ask(*anna, 2);
  ASSERT_TRUE(AwaitSlabs(*anna, 2));
  Settle();
  node_.reset();
  shares_.reset();
  anna->memory.clear();

  Start(2, 100, Kept());
  for (int i = 0; i < 4; ++i) {
    now_ns_ += kSecond / 10;
    Settle();
  }

  EXPECT_EQ(shares_->View()->leased_bytes, 0);
  EXPECT_TRUE(Await([&] { return shares_->View()->ending_bytes == 0; }, {}));
  EXPECT_EQ(keeper_.files.size(), 1u) << "the records alone";
}

TEST_F(NodeSharesTest, ProcessThatLeavesKeepsItsSlabsUntilItEnds) {
  Start(2);
  const auto anna = Job(1000);
  Ask(*anna, 1);
  ASSERT_TRUE(AwaitSlabs(*anna, 1));

  anna->Say(protocol::Leaving{3}, now_ns_);
  anna->Hangs(now_ns_);
  EXPECT_EQ(shares_->View()->leased_bytes, kSlab);
  EXPECT_GT(node_->arbiter().BudgetedOn(DeviceId{0}), 0);

  anna->process->alive = false;
  node_->PeerEnded(anna->session, now_ns_);
  EXPECT_EQ(shares_->View()->leased_bytes, 0);
  EXPECT_EQ(node_->arbiter().BudgetedOn(DeviceId{0}), 0);
  EXPECT_EQ(node_->Report(now_ns_).counters.reclaimed, 0) << "it ended cleanly";
}

TEST_F(NodeSharesTest, MissingPoolIsReportedAndDoneWithout) {
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none = {3, usual.rlim_max};
  std::vector<std::string> said;
  const Config config = FakeConfig();

  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  NodeShares shares(config, FakeDevices(), 4 * kSlab, {}, &keeper_,
                    [&](const std::string& line) { said.push_back(line); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);

  EXPECT_GE(said.size(), 3u) << "two links and the pool";
  EXPECT_FALSE(shares.View().has_value());
  EXPECT_FALSE(shares.JoinLink(DeviceId{0}, 1).has_value());
  EXPECT_TRUE(shares.AskForSlabs({{1000, "anna"}, 7}, DeviceId{0}, kSlab, SlabKinds::kAll).empty());
  shares.MendLinks(now_ns_);
  shares.KeepFiles();
  EXPECT_TRUE(keeper_.files.empty());
}

TEST_F(NodeSharesTest, WithoutAPoolTheLinkIsStillShared) {
  Start(0);
  const auto anna = Job(1000);
  Ask(*anna, 1);
  Settle();
  anna->Listen();

  EXPECT_TRUE(anna->slab_names.empty());
  EXPECT_EQ(anna->place_files.size(), 2u);
}

}  // namespace
}  // namespace spillway::agent
