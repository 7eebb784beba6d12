#include "protocol/bulk.h"
#include "tests/unit/agent/node_client.h"

namespace spillway::agent {
namespace {

TEST_F(NodeTest, JobReceivesWelcomeAdmissionAndGrant) {
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
  EXPECT_TRUE(client->ReceivesNothing());
}

TEST_F(NodeTest, WorkspaceLimitIsSentBeforeTheGrantAndWhenItChanges) {
  Config config = FakeConfig();
  config.defaults.workspace_limit_bytes = 1000;
  Start(config);
  auto job = Job(4);
  Settle();
  job->Next<protocol::Admission>();
  EXPECT_EQ(job->Next<protocol::WorkspaceGrant>(), (protocol::WorkspaceGrant{3, 1000}));
  job->Next<protocol::Grant>();

  auto root = Operator(0);
  root->Say(protocol::SetWorkspace{"local-101", true, 500});
  EXPECT_EQ(root->Next<protocol::Done>().outcome, protocol::Outcome::kWouldBeDone);
  Settle();
  EXPECT_TRUE(job->ReceivesNothing()) << "a dry run";
  root->Say(protocol::SetWorkspace{"local-101", false, 500});
  EXPECT_EQ(root->Next<protocol::Done>().outcome, protocol::Outcome::kDone);
  Settle();
  EXPECT_EQ(job->Next<protocol::WorkspaceGrant>().limit_bytes, 500);
  EXPECT_EQ(node_->Report(now_ns_).jobs[0].tenancies[0].view.terms.workspace_limit, 500);

  root->Say(protocol::SetWorkspace{"local-101", false, protocol::kMostBytes});
  root->Next<protocol::Done>();
  job->Next<protocol::Grant>();
  Settle();
  EXPECT_EQ(job->Next<protocol::WorkspaceGrant>().limit_bytes, protocol::kMostBytes);
  root->Say(protocol::SetWorkspace{"local-999", false, 500});
  EXPECT_EQ(root->Next<protocol::Done>().outcome, protocol::Outcome::kUnknownJob);
}

TEST_F(NodeTest, WorkspaceLimitIsNotSentToAnOlderJob) {
  Config config = FakeConfig();
  config.defaults.workspace_limit_bytes = 1000;
  Start(config);
  auto job = Connect(NewProcess());
  job->Say(protocol::Hello{.oldest_version = 1, .newest_version = 7});
  job->Next<protocol::Welcome>();
  job->Say(Wanting(4));
  Settle();
  job->Next<protocol::Admission>();
  job->Next<protocol::Grant>();
  EXPECT_TRUE(job->ReceivesNothing());
}

TEST_F(NodeTest, UseOfWorkspacesIsShown) {
  Start();
  auto job = Job(4);
  job->Say(protocol::WorkspaceUse{3, 70, 80, 2});
  Settle();
  const TenancyReport tenancy = node_->Report(now_ns_).jobs[0].tenancies[0];
  EXPECT_EQ(tenancy.idle_workspace_bytes, 70);
  EXPECT_EQ(tenancy.dropped_workspace_bytes, 80);
  EXPECT_EQ(tenancy.other_algorithms, 2);
}

TEST_F(NodeTest, UseOfPlansIsShown) {
  Start();
  auto job = Job(4);
  job->Say(protocol::PlanUse{3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13});
  Settle();
  const protocol::PlanUse plans = node_->Report(now_ns_).jobs[0].tenancies[0].plans;
  EXPECT_EQ(plans, (protocol::PlanUse{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
}

TEST_F(NodeTest, HighestCommonVersionIsUsed) {
  Start();
  auto old = Connect(NewProcess()), young = Connect(NewProcess());

  old->Say(protocol::Hello{.oldest_version = 1, .newest_version = 1});
  young->Say(protocol::Hello{.oldest_version = 2, .newest_version = 99});

  EXPECT_EQ(old->Next<protocol::Welcome>().version, 1);
  EXPECT_EQ(young->Next<protocol::Welcome>().version, protocol::kNewestVersion);
}

TEST_F(NodeTest, RefusalOfAVersionNamesTheAgentsVersions) {
  Start();
  auto client = Connect(NewProcess());

  client->Say(
      protocol::Hello{.oldest_version = protocol::kNewestVersion + 1, .newest_version = 99});

  const auto error = client->Next<protocol::Error>();
  EXPECT_EQ(error.code, ErrorCode::kVersion);
  EXPECT_EQ(error.newest_version, protocol::kNewestVersion);
  EXPECT_TRUE(client->IsClosed());
}

TEST_F(NodeTest, ProtocolViolationEndsOnlyItsOwnSessionWithAReason) {
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

TEST_F(NodeTest, SessionLimitsPerUserAndInTotalAreReported) {
  Config config = FakeConfig();
  config.limits.sessions = 3;
  config.limits.sessions_per_user = 2;
  Start(config);
  auto first = Job(1, NewProcess(1)), second = Job(1, NewProcess(1)),
       third = Connect(NewProcess(1));
  EXPECT_EQ(third->Next<protocol::Error>().code, ErrorCode::kTooManySessions);
  auto other = Job(1, NewProcess(2)), last = Connect(NewProcess(3));
  EXPECT_EQ(last->Next<protocol::Error>().code, ErrorCode::kTooManySessions);

  first->Dies();

  auto again = Connect(NewProcess(3));
  EXPECT_TRUE(again->ReceivesNothing());
}

// Regression: such sessions kept all others out.
TEST_F(NodeTest, SessionsWithoutMemoryAreEvictedAndEndWithoutHello) {
  Config config = FakeConfig();
  config.limits.sessions = 3;
  config.limits.sessions_per_user = 2;
  Start(config);
  // Given a user whose silent connections fill the user's limit
  auto oldest = Connect(NewProcess(1)), older = Connect(NewProcess(1));

  // When the user connects once more, and another user comes to the full node
  auto newest = Connect(NewProcess(1));
  EXPECT_EQ(oldest->Next<protocol::Error>().code, ErrorCode::kTooManySessions);
  auto other = Operator(2);
  auto last = Connect(NewProcess(3));

  // Then the user with most sessions loses one, and silent sessions end
  EXPECT_EQ(older->Next<protocol::Error>().code, ErrorCode::kTooManySessions);
  EXPECT_TRUE(last->ReceivesNothing());
  EXPECT_TRUE(other->ReceivesNothing());
  now_ns_ += 5 * kSecond;
  Settle();
  EXPECT_EQ(newest->Next<protocol::Error>().code, ErrorCode::kOutOfOrder);
  EXPECT_EQ(node_->session_count(), 1u);
}

TEST_F(NodeTest, UnconfiguredDeviceIsReportedOnce) {
  Start();
  protocol::Register stranger = Wanting(1);
  stranger.uuid = {0xab};
  for (int i = 0; i < 2; ++i) {
    auto job = Connect(NewProcess());
    job->Say(protocol::Hello{});
    job->Say(stranger);
  }

  ASSERT_EQ(services_.warnings.size(), 1u);
  EXPECT_TRUE(services_.warnings[0].starts_with(
      "device GPU-ab000000-0000-0000-0000-000000000000, which local-101"))
      << services_.warnings[0];
  EXPECT_EQ(node_->Report(now_ns_).unknown_devices.size(), 1u);
}

// Regression: at first a job of 304 MiB was shown with all memory that it might get.
TEST_F(NodeTest, FootprintCountsAllocationsNotClaims) {
  Start();
  auto job = Connect(NewProcess());
  job->Say(protocol::Hello{});
  job->Next<protocol::Welcome>();
  job->Say(Wanting(157));
  EXPECT_EQ(node_->Report(now_ns_).jobs[0].tenancies[0].footprint_bytes, 0)
      << "nothing is said yet";

  job->Say(protocol::Footprint{3, 304 << 20});

  const TenancyReport tenancy = node_->Report(now_ns_).jobs[0].tenancies[0];
  EXPECT_EQ(tenancy.footprint_bytes, 304 << 20);
  EXPECT_GT(tenancy.view.wanted_bytes, 130 * kGiB);
}

TEST_F(NodeTest, BudgetOfZeroIsRefused) {
  Start();
  auto job = Job(16);
  Settle();
  auto op = Operator();

  op->Say(protocol::SetBudget{.job = "local-101", .limit_bytes = 0});

  EXPECT_EQ(op->Next<protocol::Done>().outcome, protocol::Outcome::kRefused);
}

TEST_F(NodeTest, RateLimitsAreReported) {
  Config config = FakeConfig();
  config.limits.connections_per_second_per_user = 2;
  config.limits.messages_per_second = 3;
  Start(config);
  auto one = Connect(NewProcess(1)), two = Connect(NewProcess(1)), three = Connect(NewProcess(1));
  EXPECT_EQ(three->Next<protocol::Error>().code, ErrorCode::kTooFast);
  now_ns_ += kSecond;
  auto four = Connect(NewProcess(1));
  EXPECT_TRUE(four->ReceivesNothing());

  one->Say(protocol::Hello{});
  one->Say(Wanting(1));
  one->Say(protocol::Usage{.device = 3});
  one->Say(protocol::Usage{.device = 3});
  one->Next<protocol::Welcome>();
  EXPECT_EQ(one->Next<protocol::Error>().code, ErrorCode::kTooFast);
}

TEST_F(NodeTest, KilledProcessReleasesAllMemoryAtOnce) {
  Start();
  auto first = Job(16);
  Settle();
  auto second = Job(16);

  first->Dies();
  Settle();

  second->Next<protocol::Admission>();
  EXPECT_EQ(second->Next<protocol::Grant>().budget_bytes, BudgetedBytes());
  EXPECT_EQ(services_.ended, (std::vector<std::string>{"local-101"}));
}

TEST_F(NodeTest, ProcessesOfOneLeaderAreOneJob) {
  Start();
  auto one = Job(16, NewProcess(), 50), two = Job(16, NewProcess(), 50);
  Settle();

  EXPECT_EQ(services_.started, (std::vector<std::string>{"local-50"}));
  ASSERT_EQ(node_->Report(now_ns_).jobs.size(), 1u);
  EXPECT_EQ(node_->Report(now_ns_).jobs[0].processes.all, 2u);
}

TEST_F(NodeTest, SlowReaderReceivesTheNewestGrant) {
  Start();
  auto sleeper = Job(16);
  Settle();
  auto op = Operator();
  for (int i = 0; i < 20; ++i) {
    op->Say(protocol::SetBudget{.job = "local-101", .limit_bytes = (i % 2 == 0 ? 6 : 12) * kGiB});
    Settle();
    op->Next<protocol::Done>();
  }

  sleeper->Next<protocol::Admission>();
  protocol::Grant last;
  int heard = 0;
  for (; !sleeper->ReceivesNothing(); ++heard) {
  }
  EXPECT_LE(heard, static_cast<int>(Node::kMostUnread));
  EXPECT_EQ(BudgetedBytes(), 16 * kGiB) << "all that it may still hold";
  sleeper->Say(protocol::Obeyed{3, UINT64_MAX, 12 * kGiB, 0});
  Settle();
  last = sleeper->Next<protocol::Grant>();

  EXPECT_EQ(last.budget_bytes, 12 * kGiB);
}

TEST_F(NodeTest, OperatorChangesTheBudgetOfARunningJob) {
  Start();
  auto job = Job(16);
  Settle();
  job->Next<protocol::Admission>();
  job->Obey(job->Next<protocol::Grant>());
  auto op = Operator();

  op->Say(protocol::SetBudget{.job = "local-101", .dry_run = true, .limit_bytes = 6 * kGiB});
  EXPECT_EQ(op->Next<protocol::Done>().outcome, protocol::Outcome::kWouldBeDone);
  Settle();
  EXPECT_TRUE(job->ReceivesNothing());

  op->Say(protocol::SetBudget{.job = "local-101", .limit_bytes = 6 * kGiB});
  EXPECT_EQ(op->Next<protocol::Done>().outcome, protocol::Outcome::kDone);
  Settle();
  const auto grant = job->Next<protocol::Grant>();
  EXPECT_EQ(grant.budget_bytes, 6 * kGiB);
  EXPECT_EQ(grant.deadline_ms, 2000u);

  op->Say(protocol::SetBudget{
      .job = "local-101", .guaranteed_bytes = 20 * kGiB, .limit_bytes = 20 * kGiB});
  EXPECT_EQ(op->Next<protocol::Done>().text.view(), "device 0 has only 16.0 GiB");
  op->Say(protocol::SetBudget{.job = "local-9", .limit_bytes = 6 * kGiB});
  EXPECT_EQ(op->Next<protocol::Done>().outcome, protocol::Outcome::kUnknownJob);
}

TEST_F(NodeTest, OnlyOperatorsMayChangeSettingsAndAllUsersMayRead) {
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

// Regression: hundreds of unread pages lay in each such connection. They took the agent's memory,
// and an agent without privileges could pass no more files to anybody.
TEST_F(NodeTest, OperatorThatReadsNoAnswersIsClosed) {
  Start();
  auto reader = Operator(), deaf = Operator();

  for (size_t i = 0; i <= Operators::kMostUnread; ++i) {
    deaf->Say(protocol::Ask{});
    reader->Say(protocol::Ask{});
    reader->Next<protocol::Document>();
  }

  for (size_t i = 0; i < Operators::kMostUnread; ++i) deaf->Next<protocol::Document>();
  EXPECT_EQ(deaf->Next<protocol::Error>().code, ErrorCode::kTooFast);
  EXPECT_TRUE(deaf->IsClosed());
}

TEST_F(NodeTest, RefusedReloadGivesTheReason) {
  Start();
  auto op = Operator();

  op->Say(protocol::Control{protocol::Action::kReload, ""});

  const auto done = op->Next<protocol::Done>();
  EXPECT_EQ(done.outcome, protocol::Outcome::kRefused);
  EXPECT_EQ(done.text.view(), "the file has an error");
}

TEST_F(NodeTest, ConfiguredRulesSetTermsByNameAndUser) {
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

TEST_F(NodeTest, JobMayRequestLessThanItsTermsNeverMore) {
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

TEST_F(NodeTest, StoppingAgentRevokesNothing) {
  Start();
  auto job = Job(16);
  Settle();

  node_->Stop();

  job->Next<protocol::Admission>();
  job->Next<protocol::Grant>();
  EXPECT_EQ(job->Next<protocol::Error>().code, ErrorCode::kAgentStops);
}

// Regression: each answer costs a page of the node. A thousand sessions of one user occupied the
// loop for seconds.
TEST_F(NodeTest, SessionsOfAUserShareOneRequestRate) {
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

protocol::Usage Using(int64_t resident_bytes, bool active = true) {
  return {
      .device = 3, .active = active, .wanted_bytes = 16 * kGiB, .resident_bytes = resident_bytes};
}

// Regression: twenty idle jobs that claimed to work got twenty of twenty-two parts.
TEST_F(NodeTest, JobThatLeavesItsGrantUnusedLosesItsClaimAfterAWhile) {
  Start();
  auto worker = Job(16), bully = Job(16);
  const auto budget = [&](size_t which) {
    return node_->arbiter().Tenancies().at(which).granted_bytes;
  };
  const auto obey = [&] {
    for (int i = 0; i < 4; ++i) {
      Settle();
      for (Client* client : {worker.get(), bully.get()}) client->ObeyAll();
    }
  };
  obey();
  worker->Say(Using(8 * kGiB));
  bully->Say(Using(0));
  ASSERT_LE(budget(1), 8 * kGiB);
  ASSERT_EQ(node_->NextWake(), now_ns_ + FakeConfig().unused_ms * 1'000'000);

  now_ns_ += FakeConfig().unused_ms * 1'000'000;
  bully->Say(Using(0));
  obey();
  EXPECT_EQ(budget(0), 16 * kGiB);
  EXPECT_EQ(budget(1), 0);

  protocol::Usage more = Using(0);
  more.wanted_bytes += kGiB;
  bully->Say(more);
  obey();
  EXPECT_GT(budget(1), 7 * kGiB);
}

TEST_F(NodeTest, IdleJobWithoutMemoryLosesItsClaimAtOnceUnlessItsDataIsOnTheHost) {
  Start();
  auto one = Job(16), other = Job(16);
  Settle();
  const auto has_claim = [&](size_t which) {
    return node_->arbiter().Tenancies().at(which).has_claim;
  };
  one->Say(Using(kGiB));
  other->Say(Using(0, false));
  EXPECT_TRUE(has_claim(0));
  EXPECT_FALSE(has_claim(1));

  protocol::Usage away = Using(0, false);
  away.host_bytes = kGiB;
  one->Say(away);
  EXPECT_TRUE(has_claim(0));
}

TEST_F(NodeTest, JobsOfAUserStayWithinItsLimitAlsoWhenItChanges) {
  Config config = FakeConfig();
  config.users = {{1000, {.limit_bytes = 4 * kGiB, .jobs = 2}}};
  config.accounts = {{"lab", {1001, 1002}, {.limit_bytes = 6 * kGiB}}};
  Start(config);
  auto one = Job(16), two = Job(16), three = Job(16);
  auto of_lab = Job(16, NewProcess(1001)), also_of_lab = Job(16, NewProcess(1002));
  const auto sum = [&](size_t first, size_t last) {
    int64_t bytes = 0;
    for (size_t i = first; i <= last; ++i)
      bytes += node_->arbiter().Tenancies().at(i).granted_bytes;
    return bytes;
  };
  const auto obey = [&] {
    for (int i = 0; i < 6; ++i) {
      Settle();
      for (Client* client : {one.get(), two.get(), three.get(), of_lab.get(), also_of_lab.get()})
        client->ObeyAll();
    }
  };
  obey();
  EXPECT_EQ(sum(0, 2), 4 * kGiB);
  EXPECT_EQ(sum(3, 4), 6 * kGiB);
  EXPECT_EQ(node_->arbiter().Tenancies().at(2).state, TenancyState::kQueued);

  config.users = {};
  config.accounts = {};
  node_->SetConfig(config);
  obey();
  EXPECT_EQ(sum(0, 4), 16 * kGiB);
  EXPECT_NEAR(sum(0, 2), 16 * kGiB / 3, kGiB / 10) << "a third, as of each user";
}

}  // namespace
}  // namespace spillway::agent
