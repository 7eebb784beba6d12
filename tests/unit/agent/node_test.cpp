#include "agent/node/node.h"

#include <gtest/gtest.h>

#include "protocol/bulk.h"
#include "tests/unit/agent/fake_node.h"

namespace spillway::agent {
namespace {

using protocol::ErrorCode;

constexpr int64_t kSecond = 1'000'000'000;

// Wants so much that, with the eighth that is added, it is about so many GiB.
protocol::Register Wanting(int64_t gib, int64_t held_bytes = 0) {
  protocol::Register asked;
  asked.device = 3;
  asked.uuid = kFirstDevice;
  asked.wanted_bytes = gib * kGiB / 9 * 8;
  asked.held_bytes = held_bytes;
  return asked;
}

class Client {
 public:
  Client(Node* node, const int64_t* now_ns, std::shared_ptr<FakeProcess> process, size_t queue = 64)
      : node_(*node), now_ns_(*now_ns), process_(std::move(process)) {
    auto [near, far] = protocol::MemoryChannel::Pair(queue);
    channel_ = std::move(near);
    const auto taken = node_.Connected(std::move(far), std::make_unique<FakePeer>(process_), now_ns_);
    if (taken) session = *taken;
  }

  void Say(const protocol::Message& message) {
    channel_->Send(message);
    node_.Readable(session, now_ns_);
  }
  void SayBytes(std::vector<uint8_t> bytes) {
    channel_->SendBytes(std::move(bytes));
    node_.Readable(session, now_ns_);
  }
  void Hangs() {
    channel_.reset();
    node_.Readable(session, now_ns_);
  }
  void Dies() {
    process_->alive = false;
    Hangs();
  }
  // The next message, which has to be of this kind.
  template <class M>
  M Next() {
    protocol::Received received = channel_->Receive();
    const M* message = std::get_if<M>(&received.message);
    if (received.what != protocol::Received::What::kMessage || message == nullptr) {
      ADD_FAILURE() << "no " << NameOf(protocol::Message(M{})) << " but " << static_cast<int>(received.what)
                    << " " << NameOf(received.message);
      return {};
    }
    files = std::move(received.files);
    return *message;
  }
  bool HearsNothing() { return channel_->Receive().what == protocol::Received::What::kNothing; }
  bool IsClosed() { return channel_->Receive().what == protocol::Received::What::kClosed; }
  void Obey(const protocol::Grant& grant) {
    Say(protocol::Obeyed{grant.device, grant.serial, grant.budget_bytes, grant.host_bytes});
  }

  SessionId session{};
  std::vector<base::UniqueFd> files;

 private:
  Node& node_;
  const int64_t& now_ns_;
  std::shared_ptr<FakeProcess> process_;
  std::unique_ptr<protocol::MemoryChannel> channel_;
};

class NodeTest : public testing::Test {
 protected:
  void Start(Config config = FakeConfig()) {
    node_ = std::make_unique<Node>(std::move(config), FakeDevices(), 64 * kGiB, 7, &services_, now_ns_);
  }
  std::shared_ptr<FakeProcess> NewProcess(uid_t uid = 1000) {
    return std::make_shared<FakeProcess>(FakeProcess{++last_pid_, uid, true});
  }
  std::unique_ptr<Client> Connect(std::shared_ptr<FakeProcess> process, size_t queue = 64) {
    return std::make_unique<Client>(node_.get(), &now_ns_, std::move(process), queue);
  }
  // A job that has said Hello and registered.
  std::unique_ptr<Client> Job(int64_t wanted_gib, std::shared_ptr<FakeProcess> process, pid_t leader = 0) {
    auto client = Connect(std::move(process));
    client->Say(protocol::Hello{.leader_pid = leader});
    client->Next<protocol::Welcome>();
    client->Say(Wanting(wanted_gib));
    return client;
  }
  std::unique_ptr<Client> Job(int64_t wanted_gib) { return Job(wanted_gib, NewProcess()); }
  std::unique_ptr<Client> Operator(uid_t uid = 0) {
    auto client = Connect(NewProcess(uid));
    client->Say(protocol::Hello{.role = protocol::Role::kOperator});
    client->Next<protocol::Welcome>();
    return client;
  }
  void Settle() { node_->Settle(now_ns_); }
  int64_t PromisedBytes() const { return node_->arbiter().PromisedOn(DeviceId{0}); }

  int64_t now_ns_ = 1000 * kSecond;
  pid_t last_pid_ = 100;
  FakeServices services_;
  std::unique_ptr<Node> node_;
};

TEST_F(NodeTest, AJobIsWelcomedAdmittedAndGranted) {
  Start();
  auto client = Connect(NewProcess());

  client->Say(protocol::Hello{});
  const auto welcome = client->Next<protocol::Welcome>();
  EXPECT_EQ(welcome.version, protocol::kNewestVersion);
  EXPECT_EQ(welcome.agent_instance, 7u);
  EXPECT_EQ(welcome.job.view(), "local-101");
  EXPECT_EQ(services_.started, (std::vector<std::string>{"local-101"}));

  client->Say(Wanting(9));
  Settle();
  EXPECT_EQ(client->Next<protocol::Admission>().state, protocol::AdmissionState::kAdmitted);
  const auto grant = client->Next<protocol::Grant>();
  EXPECT_EQ(grant.device, 3u) << "the client's own number";
  EXPECT_EQ(grant.reason, protocol::GrantReason::kFirst);
  EXPECT_NEAR(static_cast<double>(grant.budget_bytes), 9.0 * kGiB, 0.1 * kGiB);
  EXPECT_TRUE(client->HearsNothing());
}

TEST_F(NodeTest, TheHighestCommonVersionIsSpoken) {
  Start();
  auto old = Connect(NewProcess()), young = Connect(NewProcess());

  old->Say(protocol::Hello{.oldest_version = 1, .newest_version = 1});
  young->Say(protocol::Hello{.oldest_version = 2, .newest_version = 9});

  EXPECT_EQ(old->Next<protocol::Welcome>().version, 1);
  EXPECT_EQ(young->Next<protocol::Welcome>().version, protocol::kNewestVersion);
}

TEST_F(NodeTest, VersionsWithoutOverlapAreRefusedWithTheAgents) {
  Start();
  auto client = Connect(NewProcess());

  client->Say(protocol::Hello{.oldest_version = protocol::kNewestVersion + 1, .newest_version = 99});

  const auto error = client->Next<protocol::Error>();
  EXPECT_EQ(error.code, ErrorCode::kVersion);
  EXPECT_EQ(error.newest_version, protocol::kNewestVersion);
  EXPECT_TRUE(client->IsClosed());
}

TEST_F(NodeTest, WhoBreaksARuleIsToldWhichAndNobodyElseNotices) {
  Start();
  auto good = Job(4);
  const auto refused = [&](const std::vector<protocol::Message>& messages) {
    auto client = Connect(NewProcess());
    for (const protocol::Message& message : messages) client->Say(message);
    if (messages.size() > 1) client->Next<protocol::Welcome>();
    const ErrorCode code = client->Next<protocol::Error>().code;
    EXPECT_TRUE(client->IsClosed());
    return code;
  };
  protocol::Register stranger = Wanting(1);
  stranger.uuid = {9, 9};

  EXPECT_EQ(refused({Wanting(1)}), ErrorCode::kOutOfOrder);
  EXPECT_EQ(refused({protocol::Hello{}, protocol::Hello{}}), ErrorCode::kOutOfOrder);
  EXPECT_EQ(refused({protocol::Hello{}, protocol::Usage{}}), ErrorCode::kOutOfOrder);
  EXPECT_EQ(refused({protocol::Hello{}, protocol::Control{}}), ErrorCode::kOutOfOrder);
  EXPECT_EQ(refused({protocol::Hello{}, stranger}), ErrorCode::kUnknownDevice);
  EXPECT_EQ(refused({protocol::Hello{}, Wanting(1), Wanting(1)}), ErrorCode::kOutOfOrder);
  auto garbled = Connect(NewProcess());
  garbled->SayBytes({1, 2, 3});
  EXPECT_EQ(garbled->Next<protocol::Error>().code, ErrorCode::kMalformed);
  Settle();
  EXPECT_EQ(good->Next<protocol::Admission>().state, protocol::AdmissionState::kAdmitted);
}

TEST_F(NodeTest, LimitsOnSessionsOfAUserAndInAllAreSaid) {
  Config config = FakeConfig();
  config.limits.sessions = 3;
  config.limits.sessions_per_user = 2;
  Start(config);
  auto first = Connect(NewProcess(1)), second = Connect(NewProcess(1)), third = Connect(NewProcess(1));
  EXPECT_EQ(third->Next<protocol::Error>().code, ErrorCode::kTooManySessions);
  auto other = Connect(NewProcess(2)), last = Connect(NewProcess(3));
  EXPECT_EQ(last->Next<protocol::Error>().code, ErrorCode::kTooManySessions);

  first->Hangs();

  auto again = Connect(NewProcess(3));
  EXPECT_TRUE(again->HearsNothing());
}

TEST_F(NodeTest, LimitsOnRatesAreSaid) {
  Config config = FakeConfig();
  config.limits.connections_per_second_per_user = 2;
  config.limits.messages_per_second = 3;
  Start(config);
  auto one = Connect(NewProcess(1)), two = Connect(NewProcess(1)), three = Connect(NewProcess(1));
  EXPECT_EQ(three->Next<protocol::Error>().code, ErrorCode::kTooFast);
  now_ns_ += kSecond;
  auto four = Connect(NewProcess(1));
  EXPECT_TRUE(four->HearsNothing());

  one->Say(protocol::Hello{});
  one->Say(Wanting(1));
  one->Say(protocol::Usage{.device = 3});
  one->Say(protocol::Usage{.device = 3});
  one->Next<protocol::Welcome>();
  EXPECT_EQ(one->Next<protocol::Error>().code, ErrorCode::kTooFast);
}

TEST_F(NodeTest, AKilledProcessGivesEverythingBackAtOnce) {
  Start();
  auto first = Job(16);
  Settle();
  auto second = Job(16);

  first->Dies();
  Settle();

  second->Next<protocol::Admission>();
  EXPECT_EQ(second->Next<protocol::Grant>().budget_bytes, PromisedBytes());
  EXPECT_EQ(services_.ended, (std::vector<std::string>{"local-101"}));
}

TEST_F(NodeTest, AProcessThatOnlyHangsUpKeepsItsMemoryUntilItEnds) {
  Start();
  auto process = NewProcess();
  auto first = Job(16, process);
  Settle();
  const int64_t granted_bytes = PromisedBytes();

  first->Hangs();
  Settle();
  EXPECT_EQ(PromisedBytes(), granted_bytes);
  EXPECT_TRUE(services_.ended.empty());

  process->alive = false;
  node_->PeerEnded(first->session, now_ns_);
  EXPECT_EQ(PromisedBytes(), 0);
  EXPECT_EQ(services_.ended.size(), 1u);
}

TEST_F(NodeTest, AProcessThatComesBackHasWhatItHadAndNothingTwice) {
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
  EXPECT_LE(PromisedBytes(), 16 * kGiB);
  EXPECT_EQ(node_->session_count(), 1u);
}

// A process that came back left its job and joined it again. Its job kept what both had been promised, was promised what came back
// once more, and the device was promised twice (found by AgentLifeTest, seed 65).
TEST_F(NodeTest, AProcessOfSeveralThatComesBackIsNotCountedTwice) {
  // Given a job of two processes that have all of the device
  Start();
  auto process = NewProcess();
  auto one = Job(8, process, 50), two = Job(8, NewProcess(), 50);
  Settle();
  one->Next<protocol::Admission>();
  const auto grant = one->Next<protocol::Grant>();
  one->Obey(grant);
  const int64_t promised_bytes = PromisedBytes();
  ASSERT_GT(promised_bytes, 15 * kGiB);

  // When one is cut off and comes back with what it has
  one->Hangs();
  auto again = Connect(process);
  again->Say(protocol::Hello{.leader_pid = 50});
  again->Next<protocol::Welcome>();
  again->Say(Wanting(8, grant.budget_bytes));

  // Then nothing more is promised, at that moment and later
  EXPECT_EQ(PromisedBytes(), promised_bytes);
  Settle();
  EXPECT_EQ(PromisedBytes(), promised_bytes);
  again->Next<protocol::Admission>();
  EXPECT_EQ(again->Next<protocol::Grant>().budget_bytes, grant.budget_bytes);
}

TEST_F(NodeTest, WhoIsLateIsStillLateWhenItComesBack) {
  // Given a job that has not given back in time what another wants
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

  // When it hangs up and comes back with all that it has, then it is not believed to have obeyed
  owner->Hangs();
  auto again = Connect(process);
  again->Say(protocol::Hello{});
  again->Next<protocol::Welcome>();
  again->Say(Wanting(16, 16 * kGiB));
  Settle();
  EXPECT_TRUE(is_overdue());

  // And what it is told is what it was asked for
  again->Next<protocol::Admission>();
  const auto grant = again->Next<protocol::Grant>();
  EXPECT_LE(grant.budget_bytes, 9 * kGiB);
  again->Obey(grant);
  Settle();
  EXPECT_FALSE(is_overdue());
  other->Next<protocol::Admission>();
  EXPECT_GE(other->Next<protocol::Grant>().budget_bytes, 7 * kGiB);
}

TEST_F(NodeTest, WhoWaitsAndComesBackWaitsAtItsPlace) {
  // Given two that wait for the guarantee of a third
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
  EXPECT_TRUE(second->HearsNothing());
}

TEST_F(NodeTest, AfterARestartTheBooksAgreeWithWhatIsHeld) {
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
  EXPECT_EQ(PromisedBytes(), 15 * kGiB);
  EXPECT_TRUE(late->HearsNothing()) << "until all are back";

  now_ns_ += 100 * kSecond;
  Settle();
  EXPECT_TRUE(late->HearsNothing()) << "a clock that jumps, or an agent that was stopped, shortens nothing";
  for (int64_t passed_ns = 0; passed_ns < 3 * kSecond - kSecond / 4; passed_ns += kSecond / 4) {
    EXPECT_LE(node_->NextWake(), now_ns_ + kSecond / 4);
    now_ns_ += kSecond / 4;
    Settle();
  }
  EXPECT_EQ(late->Next<protocol::Admission>().state, protocol::AdmissionState::kAdmitted);
  EXPECT_LE(PromisedBytes(), 16 * kGiB);
}

TEST_F(NodeTest, LaterNobodyHoldsSomethingBecauseItSaysSo) {
  Start();
  auto owner = Job(16);
  Settle();
  auto liar = Connect(NewProcess());
  liar->Say(protocol::Hello{});
  liar->Next<protocol::Welcome>();

  liar->Say(Wanting(16, 16 * kGiB));
  Settle();

  liar->Next<protocol::Admission>();
  EXPECT_TRUE(liar->HearsNothing());
  EXPECT_LE(PromisedBytes(), 16 * kGiB);
}

// What a job held that had begun while the agent was stopped was promised to others (found by tests/chaos, seed 7).
TEST_F(NodeTest, AJobThatRanWithoutAnAgentIsBelievedWhatItHoldsAsFarAsThatIsNobodys) {
  // Given a job that has 10 of 16 GiB
  Start();
  auto owner = Job(10);
  Settle();
  owner->Next<protocol::Admission>();
  owner->Obey(owner->Next<protocol::Grant>());

  // When one comes that wants 1 GiB and says that it holds 4
  auto client = Connect(NewProcess());
  client->Say(protocol::Hello{});
  client->Next<protocol::Welcome>();
  client->Say(Wanting(1, 4 * kGiB));
  Settle();

  // Then these count, and it is asked for what others need
  client->Next<protocol::Admission>();
  const auto grant = client->Next<protocol::Grant>();
  EXPECT_EQ(grant.budget_bytes, 4 * kGiB);
  EXPECT_GE(PromisedBytes(), 14 * kGiB - (int64_t{4} << 20));
  auto third = Job(6);
  Settle();
  EXPECT_LT(client->Next<protocol::Grant>().budget_bytes, 4 * kGiB);
  EXPECT_LE(PromisedBytes(), 16 * kGiB);

  // And one that says that it holds all has the little that is free, no more
  const int64_t promised_bytes = PromisedBytes();
  auto liar = Connect(NewProcess());
  liar->Say(protocol::Hello{});
  liar->Next<protocol::Welcome>();
  liar->Say(Wanting(16, 16 * kGiB));
  Settle();
  EXPECT_LE(PromisedBytes(), 16 * kGiB);
  EXPECT_GE(PromisedBytes(), promised_bytes);
}

TEST_F(NodeTest, AJobThatRunsAndWaitsIsBelievedWhatItsReportsSay) {
  // Given a node that is drained, and a job that ran without it and says that it has 1 GiB, later 4
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

TEST_F(NodeTest, ProcessesOfOneLeaderAreOneJob) {
  Start();
  auto one = Job(16, NewProcess(), 50), two = Job(16, NewProcess(), 50);
  Settle();

  EXPECT_EQ(services_.started, (std::vector<std::string>{"local-50"}));
  ASSERT_EQ(node_->Report(now_ns_).jobs.size(), 1u);
  EXPECT_EQ(node_->Report(now_ns_).jobs[0].processes, 2u);
}

TEST_F(NodeTest, OneThatDoesNotReadIsToldTheNewestWhenItDoes) {
  Start();
  auto sleeper = Job(16);
  Settle();
  // Given one that has answered nothing while its budget changed often
  auto op = Operator();
  for (int i = 0; i < 20; ++i) {
    op->Say(protocol::SetBudget{.job = "local-101", .limit_bytes = (i % 2 == 0 ? 6 : 12) * kGiB});
    Settle();
    op->Next<protocol::Done>();
  }

  // When it reads
  sleeper->Next<protocol::Admission>();
  protocol::Grant last;
  int heard = 0;
  for (; !sleeper->HearsNothing(); ++heard) {
  }
  EXPECT_LE(heard, static_cast<int>(Node::kMostUnread));
  EXPECT_EQ(PromisedBytes(), 16 * kGiB) << "all that it may still hold";
  sleeper->Say(protocol::Obeyed{3, UINT64_MAX, 12 * kGiB, 0});
  Settle();
  last = sleeper->Next<protocol::Grant>();

  EXPECT_EQ(last.budget_bytes, 12 * kGiB);
}

TEST_F(NodeTest, OperatorsChangeBudgetsOfRunningJobs) {
  Start();
  auto job = Job(16);
  Settle();
  job->Next<protocol::Admission>();
  job->Obey(job->Next<protocol::Grant>());
  auto op = Operator();

  op->Say(protocol::SetBudget{.job = "local-101", .dry_run = true, .limit_bytes = 6 * kGiB});
  EXPECT_EQ(op->Next<protocol::Done>().outcome, protocol::Outcome::kWouldBeDone);
  Settle();
  EXPECT_TRUE(job->HearsNothing());

  op->Say(protocol::SetBudget{.job = "local-101", .limit_bytes = 6 * kGiB});
  EXPECT_EQ(op->Next<protocol::Done>().outcome, protocol::Outcome::kDone);
  Settle();
  const auto grant = job->Next<protocol::Grant>();
  EXPECT_EQ(grant.budget_bytes, 6 * kGiB);
  EXPECT_EQ(grant.deadline_ms, 2000u);

  op->Say(protocol::SetBudget{.job = "local-101", .guaranteed_bytes = 20 * kGiB, .limit_bytes = 20 * kGiB});
  EXPECT_EQ(op->Next<protocol::Done>().text.view(), "device 0 has only 16.0 GiB");
  op->Say(protocol::SetBudget{.job = "local-9", .limit_bytes = 6 * kGiB});
  EXPECT_EQ(op->Next<protocol::Done>().outcome, protocol::Outcome::kUnknownJob);
}

TEST_F(NodeTest, OnlyOperatorsChangeSomethingAndEverybodyMayLook) {
  Start();
  auto job = Job(16);
  auto user = Operator(1000);

  user->Say(protocol::SetBudget{.job = "local-101", .limit_bytes = 6 * kGiB});
  EXPECT_EQ(user->Next<protocol::Done>().outcome, protocol::Outcome::kRefused);
  user->Say(protocol::Control{protocol::Action::kDrain, ""});
  EXPECT_EQ(user->Next<protocol::Done>().outcome, protocol::Outcome::kRefused);
  EXPECT_FALSE(node_->arbiter().draining());

  user->Say(protocol::Ask{});
  const auto document = user->Next<protocol::Document>();
  EXPECT_EQ(protocol::ReadSealed(user->files.at(0).get(), document.size_bytes), "1 jobs");
}

TEST_F(NodeTest, ARefusedReloadSaysWhy) {
  Start();
  auto op = Operator();

  op->Say(protocol::Control{protocol::Action::kReload, ""});

  const auto done = op->Next<protocol::Done>();
  EXPECT_EQ(done.outcome, protocol::Outcome::kRefused);
  EXPECT_EQ(done.text.view(), "the file has an error");
}

TEST_F(NodeTest, RulesOfTheConfigurationGiveTermsByNameAndUser) {
  Config config = FakeConfig();
  config.defaults.limit_bytes = 8 * kGiB;
  config.rules = {{.job = "local-*", .uid = 2000, .terms = {.limit_bytes = 4 * kGiB}},
                  {.job = "local-103", .uid = {}, .terms = {.limit_bytes = 2 * kGiB}}};
  Start(config);
  auto plain = Job(16), of_user = Job(16, NewProcess(2000)), named = Job(16);
  Settle();

  for (const auto& [client, gib] :
       {std::pair(plain.get(), 8), std::pair(of_user.get(), 4), std::pair(named.get(), 2)}) {
    client->Next<protocol::Admission>();
    EXPECT_EQ(client->Next<protocol::Grant>().budget_bytes, gib * kGiB);
  }
}

TEST_F(NodeTest, AJobMayAskForLessNeverForMore) {
  Config config = FakeConfig();
  config.defaults.limit_bytes = 8 * kGiB;
  Start(config);
  auto modest = Connect(NewProcess()), greedy = Connect(NewProcess());
  for (const auto& [client, own_limit] :
       {std::pair(modest.get(), 2 * kGiB), std::pair(greedy.get(), 12 * kGiB)}) {
    client->Say(protocol::Hello{});
    client->Next<protocol::Welcome>();
    protocol::Register asked = Wanting(16);
    asked.own_limit_bytes = own_limit;
    client->Say(asked);
  }
  Settle();

  modest->Next<protocol::Admission>();
  EXPECT_EQ(modest->Next<protocol::Grant>().budget_bytes, 2 * kGiB);
  greedy->Next<protocol::Admission>();
  EXPECT_EQ(greedy->Next<protocol::Grant>().budget_bytes, 8 * kGiB);
}

TEST_F(NodeTest, AStoppingAgentTakesNothingAway) {
  Start();
  auto job = Job(16);
  Settle();

  node_->Stop();

  job->Next<protocol::Admission>();
  job->Next<protocol::Grant>();
  EXPECT_EQ(job->Next<protocol::Error>().code, ErrorCode::kAgentStops);
}

// Each answer costs a page of the whole node; a thousand sessions of one user had the loop for seconds at a turn.
TEST_F(NodeTest, AUsersSessionsTogetherAskNoMoreThanOneMay) {
  Config config = FakeConfig();
  config.limits.messages_per_second = 10;
  Start(config);
  auto one = Operator(1001), two = Operator(1001), other = Operator(1002);
  for (int i = 0; i < 8; ++i) one->Say(protocol::Ask{});
  for (int i = 0; i < 8; ++i) one->Next<protocol::Document>();
  for (int i = 0; i < 3; ++i) two->Say(protocol::Ask{});
  other->Say(protocol::Ask{});
  for (int i = 0; i < 2; ++i) two->Next<protocol::Document>();
  EXPECT_EQ(two->Next<protocol::Error>().code, protocol::ErrorCode::kTooFast);
  other->Next<protocol::Document>();
}

}  // namespace
}  // namespace spillway::agent
