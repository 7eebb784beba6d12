// Sessions that come through an allocation's socket.
#include "agent/node/holdings/allocations.h"
#include "tests/unit/agent/node_client.h"

namespace spillway::agent {
namespace {

class NodeAllocationsTest : public NodeTest {
 protected:
  class Services : public FakeServices {
   public:
    base::Result<std::string> OpenListener(const std::string& allocation) override {
      if (!refusal.empty()) return base::Error{refusal};
      open.insert(allocation);
      return "/run/spillway/allocations/" + allocation + "/agent.sock";
    }
    base::Status CloseListener(const std::string& allocation) override {
      open.erase(allocation);
      return base::Ok();
    }
    base::Status SaveState() override {
      return is_saved ? base::Ok() : base::Status(base::Error{"the disk is full"});
    }
    std::set<std::string> open;
    std::string refusal;
    bool is_saved = true;
  };

  NodeAllocationsTest() {
    node_ = std::make_unique<Node>(FakeConfig(), FakeDevices(), 64 * kGiB, 7, &world_, now_ns_);
  }
  std::shared_ptr<FakeProcess> InContainer(const std::string& id) {
    auto process = NewProcess(0);
    world_.identities[process->pid] = {
        "container-" + id, "container-" + id, JobSource::kContainer, "", "train", id};
    return process;
  }
  std::unique_ptr<Client> By(const std::string& allocation, std::shared_ptr<FakeProcess> process) {
    return std::make_unique<Client>(node_.get(), &now_ns_, std::move(process), 64,
                                    allocation.empty() ? Entrance::kAll : Entrance::kAllocation,
                                    allocation);
  }
  // Its budget; 0: refused.
  int64_t BudgetBy(const std::string& allocation, std::shared_ptr<FakeProcess> process) {
    clients_.push_back(By(allocation, std::move(process)));
    Client& client = *clients_.back();
    client.Say(protocol::Hello{});
    protocol::Message answer;
    if (!client.Receive(&answer) || !std::holds_alternative<protocol::Welcome>(answer)) return 0;
    client.Say(Wanting(4));
    Settle();
    client.Next<protocol::Admission>();
    return client.Next<protocol::Grant>().budget_bytes;
  }
  template <class Answer>
  Answer Ask(const protocol::Message& request) {
    auto client = Operator();
    client->Say(request);
    return client->Next<Answer>();
  }
  std::string Open(const std::string& name, int64_t limit_bytes = protocol::kUnchanged) {
    return std::string(Ask<protocol::ListenerPlace>(
                           protocol::OpenListener{.allocation = name, .limit_bytes = limit_bytes})
                           .socket.view());
  }

  Services world_;
  std::vector<std::unique_ptr<Client>> clients_;
};

TEST_F(NodeAllocationsTest, AContainerHasTheAllocationsLimitWhicheverSocketItTakes) {
  EXPECT_EQ(Open("a", kGiB), "/run/spillway/allocations/a/agent.sock");
  EXPECT_EQ(BudgetBy("a", InContainer("1")), kGiB);
  clients_.back()->Dies();
  EXPECT_EQ(BudgetBy("", InContainer("1")), kGiB);
}

TEST_F(NodeAllocationsTest, NoAllocationRaisesALimit) {
  Config config = FakeConfig();
  config.defaults.limit_bytes = kGiB;
  node_ = std::make_unique<Node>(config, FakeDevices(), 64 * kGiB, 7, &world_, now_ns_);
  Open("a", 3 * kGiB);
  EXPECT_EQ(BudgetBy("a", InContainer("1")), kGiB);
}

TEST_F(NodeAllocationsTest, AnothersSocketIsRefusedWithOneWarning) {
  Open("a");
  Open("b");
  EXPECT_GT(BudgetBy("a", InContainer("1")), 0);
  EXPECT_GT(BudgetBy("b", InContainer("2")), 0);
  for (int times = 0; times < 2; ++times) {
    auto stranger = By("a", InContainer("2"));
    stranger->Say(protocol::Hello{});
    EXPECT_EQ(stranger->Next<protocol::Error>().code, ErrorCode::kOutOfOrder);
    EXPECT_TRUE(stranger->IsClosed());
  }
  // Neither may it ask as an operator.
  auto asking = By("a", InContainer("2"));
  asking->Say(protocol::Hello{.role = protocol::Role::kOperator});
  asking->Next<protocol::Error>();
  EXPECT_EQ(world_.warnings,
            std::vector<std::string>{
                "container-2 is refused at the socket of allocation a: this socket is of another "
                "allocation than the job's"});
}

TEST_F(NodeAllocationsTest, ByAnAllocationsSocketNobodyOperatesTheNode) {
  Open("a");
  for (const protocol::Message& request :
       {protocol::Message(protocol::Control{.action = protocol::Action::kDrain}),
        protocol::Message(protocol::OpenListener{.allocation = "b"}),
        protocol::Message(protocol::CloseListener{.allocation = "a"}),
        protocol::Message(protocol::Ask{.question = protocol::Question::kConfig})}) {
    auto root = By("a", InContainer("1"));
    root->Say(protocol::Hello{.role = protocol::Role::kOperator});
    root->Next<protocol::Welcome>();
    root->Say(request);
    EXPECT_EQ(root->Next<protocol::Done>().outcome, protocol::Outcome::kRefused)
        << protocol::NameOf(request);
  }
  EXPECT_EQ(world_.open, std::set<std::string>{"a"});
  EXPECT_TRUE(node_->allocations().at("a").jobs.empty()) << "a question takes nothing";
}

// Regression: a container had the whole device once its allocation was closed.
TEST_F(NodeAllocationsTest, RunningJobsKeepTheirLimitsAfterTheClose) {
  Open("a", kGiB);
  EXPECT_EQ(BudgetBy("a", InContainer("1")), kGiB);
  EXPECT_EQ(Ask<protocol::Done>(protocol::CloseListener{"a"}).outcome, protocol::Outcome::kDone);
  EXPECT_TRUE(world_.open.empty());
  Settle();
  EXPECT_EQ(BudgetedBytes(), kGiB);
  protocol::Message news;
  EXPECT_FALSE(clients_.back()->Receive(&news)) << protocol::NameOf(news);
  EXPECT_FALSE(clients_.back()->IsClosed());
  EXPECT_EQ(Ask<protocol::Done>(protocol::CloseListener{"a"}).outcome,
            protocol::Outcome::kUnknownJob);
  for (auto& client : clients_) client->Dies();
  Settle();
  EXPECT_GT(BudgetBy("", InContainer("1")), kGiB) << "another job: nobody bounds it";
}

TEST_F(NodeAllocationsTest, ANewAllocationReplacesTheLimitsOfAClosedOne) {
  Open("a", kGiB);
  EXPECT_EQ(BudgetBy("a", InContainer("1")), kGiB);
  Ask<protocol::Done>(protocol::CloseListener{"a"});
  Ask<protocol::ListenerPlace>(
      protocol::OpenListener{.allocation = "b", .job = "container-1", .limit_bytes = 2 * kGiB});
  Settle();
  EXPECT_EQ(BudgetedBytes(), 2 * kGiB);
}

// Regression: any of a node's jobs could take a container's allocation, and its place among those
// that the agent remembers.
TEST_F(NodeAllocationsTest, AJobOfSlurmTakesNoAllocationThatDoesNotNameIt) {
  Open("a");
  auto process = NewProcess(0);
  world_.identities[process->pid] = {"slurm-7", "slurm-7", JobSource::kSlurm, "", "train", "7"};
  EXPECT_EQ(BudgetBy("a", process), 0);
  EXPECT_GT(BudgetBy("a", InContainer("1")), 0);
  Ask<protocol::ListenerPlace>(protocol::OpenListener{.allocation = "b", .job = "slurm-7"});
  EXPECT_GT(BudgetBy("b", process), 0);
}

TEST(AllocationsTest, OthersThatAreRefusedKeepNoPodFromBeingHeard) {
  Allocations allocations;
  ASSERT_TRUE(allocations.Open({.allocation = "a", .job = "pod-1"}).ok());
  const auto refuse = [&](const std::string& prefix, JobSource source, size_t number, int64_t now) {
    const std::string id = std::to_string(number), key = prefix + id;
    return allocations.NoteRefused("a", {key, key, source, "", "train", id}, now);
  };
  for (size_t i = 0; i < Allocations::kMostRefused; ++i)
    EXPECT_TRUE(refuse("local-", JobSource::kLocal, i, 0));
  EXPECT_FALSE(refuse("pod-", JobSource::kKubernetes, 2, 1)) << "the log has enough lines";
  EXPECT_EQ(allocations.WaitingPods(1), std::vector<std::string>{"2"});
  for (size_t i = 0; i < Allocations::kMostRefused; ++i)
    refuse("pod-", JobSource::kKubernetes, 100 + i, 2);
  EXPECT_EQ(allocations.WaitingPods(2).size(), Allocations::kMostRefused);
  EXPECT_EQ(allocations.WaitingPods(2).front(), "100") << "pod 2 was the oldest";
}

TEST_F(NodeAllocationsTest, WhatTheNextAgentWouldNotKnowIsNotOpened) {
  world_.is_saved = false;
  const auto refused = Ask<protocol::Done>(protocol::OpenListener{.allocation = "a"});
  EXPECT_EQ(refused.outcome, protocol::Outcome::kRefused);
  EXPECT_EQ(refused.text.view(), "the disk is full");
  EXPECT_TRUE(world_.open.empty());
  EXPECT_TRUE(node_->allocations().empty());
  world_.refusal = "no folder";
  EXPECT_EQ(Ask<protocol::Done>(protocol::OpenListener{.allocation = "a"}).text.view(),
            "no folder");
  EXPECT_TRUE(node_->allocations().empty());
}

TEST_F(NodeAllocationsTest, TheNextAgentKnowsWhoHasAnAllocation) {
  Open("a", kGiB);
  EXPECT_EQ(BudgetBy("a", InContainer("1")), kGiB);
  const SavedState saved = node_->Saved();
  clients_.clear();
  node_ = std::make_unique<Node>(FakeConfig(), FakeDevices(), 64 * kGiB, 8, &world_, now_ns_);
  node_->Restore(saved);
  EXPECT_EQ(BudgetBy("a", InContainer("2")), 0);
  EXPECT_EQ(BudgetBy("a", InContainer("1")), kGiB);
}

// Regression: all containers' root was one user, so one container took the others' connections.
TEST_F(NodeAllocationsTest, ACrowdOfOneAllocationDelaysNoOther) {
  Config config = FakeConfig();
  config.limits.connections_per_second_per_user = 2;
  node_ = std::make_unique<Node>(config, FakeDevices(), 64 * kGiB, 7, &world_, now_ns_);
  Open("a");
  now_ns_ += kSecond;
  Open("b");
  for (uid_t uid = 0; uid < 3; ++uid) {
    auto process = InContainer("1");
    process->uid = uid;
    EXPECT_EQ(BudgetBy("a", process) > 0, uid < 2) << "its root can become any user";
  }
  EXPECT_GT(BudgetBy("b", InContainer("2")), 0);
}

}  // namespace
}  // namespace spillway::agent
