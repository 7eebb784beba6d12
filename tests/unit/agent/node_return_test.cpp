// Processes that return after a lost connection, an agent restart, or a run without an agent.
#include "tests/unit/agent/node_client.h"

namespace spillway::agent {
namespace {

TEST_F(NodeTest, DisconnectedProcessKeepsItsMemoryUntilItEnds) {
  Start();
  auto process = NewProcess();
  auto first = Job(16, process);
  Settle();
  const int64_t granted_bytes = BudgetedBytes();

  first->Hangs();
  Settle();
  EXPECT_EQ(BudgetedBytes(), granted_bytes);
  EXPECT_TRUE(services_.ended.empty());

  process->alive = false;
  node_->PeerEnded(first->session, now_ns_);
  EXPECT_EQ(BudgetedBytes(), 0);
  EXPECT_EQ(services_.ended.size(), 1u);
}

TEST_F(NodeTest, ReturningProcessHasItsMemoryOnce) {
  Start();
  auto process = NewProcess();
  auto client = Job(16, process);
  Settle();
  client->Hangs();

  auto again = Connect(process);
  again->Say(protocol::Hello{});
  again->Next<protocol::Welcome>();
  again->Say(Wanting(16, 10 * kGiB));
  Settle();

  again->Next<protocol::Admission>();
  EXPECT_EQ(again->Next<protocol::Grant>().reason, protocol::GrantReason::kFirst);
  EXPECT_LE(BudgetedBytes(), 16 * kGiB);
  EXPECT_EQ(node_->session_count(), 1u);
}

// Regression (AgentLifeTest, seed 65): a returning process left its job and joined it again. The
// job kept both budgets, so the device was budgeted twice.
TEST_F(NodeTest, ReturningProcessOfSeveralIsNotCountedTwice) {
  Start();
  auto process = NewProcess();
  auto one = Job(8, process, 50), two = Job(8, NewProcess(), 50);
  Settle();
  one->Next<protocol::Admission>();
  const auto grant = one->Next<protocol::Grant>();
  one->Obey(grant);
  const int64_t budgeted_bytes = BudgetedBytes();
  ASSERT_GT(budgeted_bytes, 15 * kGiB);

  one->Hangs();
  auto again = Connect(process);
  again->Say(protocol::Hello{.leader_pid = 50});
  again->Next<protocol::Welcome>();
  again->Say(Wanting(8, grant.budget_bytes));

  EXPECT_EQ(BudgetedBytes(), budgeted_bytes);
  Settle();
  EXPECT_EQ(BudgetedBytes(), budgeted_bytes);
  again->Next<protocol::Admission>();
  EXPECT_EQ(again->Next<protocol::Grant>().budget_bytes, grant.budget_bytes);
}

TEST_F(NodeTest, LateJobIsStillLateWhenItReturns) {
  Start();
  auto process = NewProcess();
  auto owner = Job(16, process);
  Settle();
  auto other = Job(8);
  Settle();
  now_ns_ += 2 * kSecond;
  Settle();
  const auto is_overdue = [this] { return node_->arbiter().Tenancies().front().overdue; };
  ASSERT_TRUE(is_overdue());

  owner->Hangs();
  auto again = Connect(process);
  again->Say(protocol::Hello{});
  again->Next<protocol::Welcome>();
  again->Say(Wanting(16, 16 * kGiB));
  Settle();
  EXPECT_TRUE(is_overdue());

  again->Next<protocol::Admission>();
  const auto grant = again->Next<protocol::Grant>();
  EXPECT_LE(grant.budget_bytes, 9 * kGiB);
  again->Obey(grant);
  Settle();
  EXPECT_FALSE(is_overdue());
  other->Next<protocol::Admission>();
  EXPECT_GE(other->Next<protocol::Grant>().budget_bytes, 7 * kGiB);
}

TEST_F(NodeTest, WaitingJobThatReturnsKeepsItsPlace) {
  Config config = FakeConfig();
  config.defaults.guaranteed_bytes = 12 * kGiB;
  Start(config);
  auto begun = Job(12);
  Settle();
  auto process = NewProcess();
  auto first = Job(12, process);
  now_ns_ += kSecond;
  auto second = Job(12);
  Settle();
  ASSERT_EQ(first->Next<protocol::Admission>().position, 1u);
  ASSERT_EQ(second->Next<protocol::Admission>().position, 2u);

  now_ns_ += kSecond;
  first->Hangs();
  auto again = Job(12, process);
  Settle();

  EXPECT_EQ(again->Next<protocol::Admission>().position, 1u);
  EXPECT_TRUE(second->ReceivesNothing());
}

TEST_F(NodeTest, AfterARestartRecordsMatchHeldMemory) {
  Config config = FakeConfig();
  config.resume_ms = 3000;
  Start(config);
  auto one = Connect(NewProcess()), two = Connect(NewProcess());
  for (Client* client : {one.get(), two.get()}) {
    client->Say(protocol::Hello{});
    client->Next<protocol::Welcome>();
  }
  one->Say(Wanting(16, 10 * kGiB));
  two->Say(Wanting(16, 5 * kGiB));
  auto late = Job(16);
  Settle();

  one->Next<protocol::Admission>();
  const auto kept = one->Next<protocol::Grant>();
  EXPECT_EQ(kept.reason, protocol::GrantReason::kKept);
  EXPECT_EQ(kept.budget_bytes, 10 * kGiB);
  EXPECT_EQ(BudgetedBytes(), 15 * kGiB);
  EXPECT_EQ(late->Next<protocol::Admission>().state, protocol::AdmissionState::kQueued)
      << "until all are back";

  now_ns_ += 100 * kSecond;
  Settle();
  EXPECT_TRUE(late->ReceivesNothing())
      << "a clock that jumps, or an agent that was stopped, shortens nothing";
  for (int64_t passed_ns = 0; passed_ns < 3 * kSecond - kSecond / 4; passed_ns += kSecond / 4) {
    EXPECT_LE(node_->NextWake(), now_ns_ + kSecond / 4);
    now_ns_ += kSecond / 4;
    Settle();
  }
  EXPECT_EQ(late->Next<protocol::Admission>().state, protocol::AdmissionState::kAdmitted);
  EXPECT_LE(BudgetedBytes(), 16 * kGiB);
}

TEST_F(NodeTest, AfterTheRestartReportedHoldingsAreNotBelieved) {
  Start();
  auto owner = Job(16);
  Settle();
  auto liar = Connect(NewProcess());
  liar->Say(protocol::Hello{});
  liar->Next<protocol::Welcome>();

  liar->Say(Wanting(16, 16 * kGiB));
  Settle();

  liar->Next<protocol::Admission>();
  EXPECT_TRUE(liar->ReceivesNothing());
  EXPECT_LE(BudgetedBytes(), 16 * kGiB);
}

// Regression (tests/chaos, seed 7): such a job's memory was budgeted to others.
TEST_F(NodeTest, JobThatRanWithoutAgentIsBelievedUpToFreeMemory) {
  // Given a job that has 10 of 16 GiB
  Start();
  auto owner = Job(10);
  Settle();
  owner->Next<protocol::Admission>();
  owner->Obey(owner->Next<protocol::Grant>());

  // When a job comes that wants 1 GiB and reports that it holds 4
  auto client = Connect(NewProcess());
  client->Say(protocol::Hello{});
  client->Next<protocol::Welcome>();
  client->Say(Wanting(1, 4 * kGiB));
  Settle();

  // Then these 4 GiB count, and the job must give back what others need
  client->Next<protocol::Admission>();
  const auto grant = client->Next<protocol::Grant>();
  EXPECT_EQ(grant.budget_bytes, 4 * kGiB);
  EXPECT_GE(BudgetedBytes(), 14 * kGiB - (int64_t{4} << 20));
  auto third = Job(6);
  Settle();
  EXPECT_LT(client->Next<protocol::Grant>().budget_bytes, 4 * kGiB);
  EXPECT_LE(BudgetedBytes(), 16 * kGiB);

  // And a job that reports all of the device gets only the little free memory
  const int64_t budgeted_bytes = BudgetedBytes();
  auto liar = Connect(NewProcess());
  liar->Say(protocol::Hello{});
  liar->Next<protocol::Welcome>();
  liar->Say(Wanting(16, 16 * kGiB));
  Settle();
  EXPECT_LE(BudgetedBytes(), 16 * kGiB);
  EXPECT_GE(BudgetedBytes(), budgeted_bytes);
}

TEST_F(NodeTest, RunningJobThatWaitsIsBelievedByItsReports) {
  // Given a drained node, and a job that ran without it
  Start();
  Operator()->Say(protocol::Control{protocol::Action::kDrain, ""});
  auto client = Connect(NewProcess());
  client->Say(protocol::Hello{});
  client->Next<protocol::Welcome>();
  client->Say(Wanting(1, kGiB));
  Settle();
  EXPECT_EQ(client->Next<protocol::Admission>().state, protocol::AdmissionState::kQueued);
  protocol::Usage usage;
  usage.device = 3;
  usage.wanted_bytes = usage.resident_bytes = 4 * kGiB;
  client->Say(usage);
  usage.wanted_bytes = kGiB;
  client->Say(usage);

  Operator()->Say(protocol::Control{protocol::Action::kUndrain, ""});
  Settle();

  client->Next<protocol::Admission>();
  EXPECT_EQ(client->Next<protocol::Grant>().budget_bytes, 4 * kGiB);
}

Config Guaranteeing(int64_t to_one, int64_t to_other) {
  Config config = FakeConfig();
  config.rules.push_back({.job = "local-7", .uid = {}, .terms = {.guaranteed_bytes = to_one}});
  config.rules.push_back({.job = "local-8", .uid = {}, .terms = {.guaranteed_bytes = to_other}});
  return config;
}

// Regression: the limit remained after its process had ended.
TEST_F(NodeTest, LimitRequestedByAProcessEndsWithTheProcess) {
  // Given two processes of one job. One limits the job to 2 GiB; only then the neighbour's
  // guarantee fits
  Start(Guaranteeing(12 * kGiB, 10 * kGiB));
  auto modest_process = NewProcess();
  auto modest = Connect(modest_process);
  modest->Say(protocol::Hello{.leader_pid = 7});
  modest->Next<protocol::Welcome>();
  protocol::Register asked = Wanting(1);
  asked.own_limit_bytes = 2 * kGiB;
  modest->Say(asked);
  Settle();
  auto other = Job(4, NewProcess(), 7), neighbour = Job(10, NewProcess(), 8);
  Settle();
  other->Next<protocol::Admission>();
  EXPECT_LE(other->Next<protocol::Grant>().budget_bytes, 2 * kGiB);
  neighbour->Next<protocol::Admission>();
  neighbour->Obey(neighbour->Next<protocol::Grant>());

  modest->Dies();
  node_->PeerEnded(modest->session, now_ns_);
  Settle();

  // Then the other process gets its demand, and the neighbour keeps its guarantee
  EXPECT_GE(other->Next<protocol::Grant>().budget_bytes, 4 * kGiB - kGiB / 16);
  const std::vector<TenancyView> tenancies = node_->arbiter().Tenancies();
  ASSERT_EQ(tenancies.size(), 2u);
  EXPECT_EQ(tenancies[0].terms.memory.guaranteed, 6 * kGiB);
  EXPECT_EQ(tenancies[1].terms.memory.guaranteed, 10 * kGiB);
}

// Regression: the next process raised the job's smaller guarantee to the rule's: 22 GiB of 16 were
// guaranteed.
TEST_F(NodeTest, JoiningProcessTakesNoOtherJobsGuarantee) {
  // Given a job that a process had limited, and a neighbour whose guarantee fitted only then
  Start(Guaranteeing(12 * kGiB, 10 * kGiB));
  auto modest = Connect(NewProcess());
  modest->Say(protocol::Hello{.leader_pid = 7});
  protocol::Register asked = Wanting(1);
  asked.own_limit_bytes = 2 * kGiB;
  modest->Say(asked);
  Settle();
  auto other = Job(4, NewProcess(), 7), neighbour = Job(10, NewProcess(), 8);
  Settle();
  modest->Dies();
  node_->PeerEnded(modest->session, now_ns_);
  Settle();

  auto late = Job(4, NewProcess(), 7);
  Settle();

  std::vector<TenancyView> tenancies = node_->arbiter().Tenancies();
  ASSERT_EQ(tenancies.size(), 2u);
  EXPECT_EQ(tenancies[0].terms.memory.guaranteed, 6 * kGiB);
  EXPECT_EQ(tenancies[1].terms.memory.guaranteed, 10 * kGiB);
}

TEST_F(NodeTest, ReloadedRuleTakesNoOtherJobsGuarantee) {
  Config config = Guaranteeing(6 * kGiB, 10 * kGiB);
  Start(config);
  auto one = Job(4, NewProcess(), 7), other = Job(10, NewProcess(), 8);
  Settle();
  const auto guaranteed = [&](size_t i) {
    return node_->arbiter().Tenancies().at(i).terms.memory.guaranteed;
  };

  config.rules[0].terms.guaranteed_bytes = 12 * kGiB;
  node_->SetConfig(config);
  EXPECT_EQ(guaranteed(0), 6 * kGiB);
  EXPECT_EQ(guaranteed(1), 10 * kGiB);

  // One job may gain what another loses by the same reload, in any order.
  config.rules[1].terms.guaranteed_bytes = 4 * kGiB;
  node_->SetConfig(config);
  EXPECT_EQ(guaranteed(0), 12 * kGiB);
  EXPECT_EQ(guaranteed(1), 4 * kGiB);
}

TEST_F(NodeTest, ClientThatNeverRegistersDelaysNoOther) {
  Start();
  const auto restless = NewProcess();
  auto neighbour = Job(1);
  Settle();
  neighbour->Next<protocol::Admission>();
  neighbour->Obey(neighbour->Next<protocol::Grant>());

  for (int gib = 2; gib <= 15; ++gib) {
    auto greeting = Connect(restless);
    greeting->Say(protocol::Hello{});
    greeting->Next<protocol::Welcome>();
    protocol::Usage usage;
    usage.device = 3;
    usage.active = true;
    usage.wanted_bytes = gib * kGiB / 9 * 8;
    neighbour->Say(usage);
    Settle();

    const auto grant = neighbour->Next<protocol::Grant>();
    EXPECT_GE(grant.budget_bytes, gib * kGiB - kGiB / 16);
    neighbour->Obey(grant);
    greeting->Hangs();
    now_ns_ += kSecond / 20;
  }

  EXPECT_EQ(node_->session_count(), 1u);
}

// Regression: after a restart, the first process to claim the device got it from its real holder.
class Record : public HeldRecord {
 public:
  Held Before(const HolderOnDevice& holder) const override {
    const auto known = before.find(holder);
    return known == before.end() ? Held{} : known->second;
  }
  void Note(const HolderOnDevice& holder, const Held& budgeted) override {
    noted[holder] = budgeted;
  }
  std::map<HolderOnDevice, Held> NotReturned() const override {
    std::map<HolderOnDevice, Held> absent = before;
    std::erase_if(absent, [this](const auto& entry) { return noted.count(entry.first) != 0; });
    return absent;
  }
  void ForgetBefore() override { before.clear(); }
  std::map<HolderOnDevice, Held> before, noted;
};

class NodeRecordTest : public NodeTest {
 protected:
  void Start(int64_t resume_ms) {
    Config config = FakeConfig();
    config.resume_ms = resume_ms;
    node_ = std::make_unique<Node>(std::move(config), FakeDevices(), 64 * kGiB, 7, &services_,
                                   now_ns_, nullptr, nullptr, &record_);
  }
  HolderOnDevice Holder(pid_t pid) const {
    return {"local-" + std::to_string(pid), pid, kFirstDevice};
  }
  void EndOfResuming() {
    for (int i = 0; i < 20; ++i) {
      now_ns_ += kSecond / 4;
      Settle();
    }
  }

  Record record_;
};

TEST_F(NodeRecordTest, AfterARestartProcessesAreBelievedUpToTheirRecord) {
  // Given two processes that an earlier agent had budgeted 8 GiB each
  auto anna = NewProcess(), bert = NewProcess();
  record_.before = {{Holder(anna->pid), {8 * kGiB, 0}}, {Holder(bert->pid), {8 * kGiB, 0}}};
  Start(3000);

  // When a process without a record and one of the two claim too much
  auto liar = Connect(NewProcess());
  auto first = Connect(anna), second = Connect(bert);
  for (Client* client : {liar.get(), first.get(), second.get()}) {
    client->Say(protocol::Hello{});
    client->Next<protocol::Welcome>();
  }
  liar->Say(Wanting(16, 16 * kGiB));
  first->Say(Wanting(16, 12 * kGiB));
  second->Say(Wanting(16, 8 * kGiB));
  Settle();

  // Then the two have their recorded memory, and the liar waits
  first->Next<protocol::Admission>();
  second->Next<protocol::Admission>();
  EXPECT_EQ(first->Next<protocol::Grant>().budget_bytes, 8 * kGiB);
  EXPECT_EQ(second->Next<protocol::Grant>().budget_bytes, 8 * kGiB);
  EXPECT_EQ(liar->Next<protocol::Admission>().state, protocol::AdmissionState::kQueued);
  EXPECT_TRUE(liar->ReceivesNothing());
  EXPECT_EQ(BudgetedBytes(), 16 * kGiB);
}

// Regression: a process that was stopped while the agent restarted lost its budget. Its memory was
// budgeted a second time until it ran again.
TEST_F(NodeRecordTest, AbsentProcessKeepsItsBudgetUntilItReturnsOrEnds) {
  // Given that of three processes with budgets one lives and is stopped, one has ended, and the pid
  // of one is now another job's
  auto anna = NewProcess(), bert = NewProcess(), carl = NewProcess();
  record_.before = {{Holder(anna->pid), {8 * kGiB, kGiB}},
                    {Holder(bert->pid), {4 * kGiB, 0}},
                    {{"local-99", carl->pid, kFirstDevice}, {4 * kGiB, 0}}};
  bert->alive = false;
  services_.processes = {{anna->pid, anna}, {bert->pid, bert}, {carl->pid, carl}};
  services_.identities[carl->pid] = {"local-7", "local-7", JobSource::kLocal, "", "train"};
  Start(3000);
  auto neighbour = Job(16);

  // When the time for returning is over, then the neighbour gets the rest
  EndOfResuming();
  neighbour->ObeyAll();
  EndOfResuming();
  EXPECT_EQ(BudgetedBytes(), 16 * kGiB);
  EXPECT_EQ(services_.watched.size(), 1u);
  EXPECT_EQ(record_.noted[Holder(anna->pid)].memory_bytes, 8 * kGiB);

  // And the process that returns has its memory once
  auto again = Connect(anna);
  again->Say(protocol::Hello{});
  again->Next<protocol::Welcome>();
  again->Say(Wanting(8, 8 * kGiB));
  Settle();
  EXPECT_EQ(BudgetedBytes(), 16 * kGiB);
  EXPECT_EQ(node_->session_count(), 2u);
}

TEST_F(NodeRecordTest, AbsentProcessThatEndsGivesItsBudgetUp) {
  auto anna = NewProcess();
  record_.before = {{Holder(anna->pid), {8 * kGiB, kGiB}}};
  services_.processes = {{anna->pid, anna}};
  Start(3000);
  EndOfResuming();
  ASSERT_EQ(services_.watched.size(), 1u);

  anna->alive = false;
  node_->PeerEnded(services_.watched[0], now_ns_);

  EXPECT_EQ(BudgetedBytes(), 0);
  EXPECT_EQ(record_.noted[Holder(anna->pid)].memory_bytes, 0);
}

TEST_F(NodeRecordTest, BudgetIsRecordedBeforeItIsSentAndErasedWithItsProcess) {
  Start(0);
  auto process = NewProcess();
  auto client = Job(8, process);
  Settle();
  EXPECT_GE(record_.noted[Holder(process->pid)].memory_bytes, 8 * kGiB - 1024);

  client->Dies();
  EXPECT_EQ(record_.noted[Holder(process->pid)].memory_bytes, 0);
}

}  // namespace
}  // namespace spillway::agent
