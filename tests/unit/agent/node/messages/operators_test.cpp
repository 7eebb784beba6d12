#include "agent/node/messages/operators.h"

#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

constexpr uid_t kUser = 54321;

class OperatorsTest : public PartTest {
 protected:
  OperatorsTest() { JobOf("train"); }
  protocol::Done Answer(const protocol::Message& request, uid_t uid = 0) {
    Session& session = NewSession(1, uid);
    EXPECT_FALSE(operators_.Take(session, request, kSecond));
    return Next<protocol::Done>(session);
  }

  NodeFacts facts_;
  Arbiter arbiter_{ArbiterRules{}};
  FakeServices services_;
  NodeCounters counters_;
  Users users_{&services_};
  UnknownDevices unknown_;
  ResumePeriod resume_{0, 0};
  JobOwners owners_{&facts_, &arbiter_};
  ExpectedJobs expected_{&table_};
  Allocations allocations_;
  JobTerms terms_{&facts_, &table_, &expected_, &arbiter_, &allocations_};
  DeviceTurns turns_{{.facts = &facts_,
                      .table = &table_,
                      .arbiter = &arbiter_,
                      .services = &services_,
                      .shares = nullptr}};
  SessionSpill spill_{{.facts = &facts_,
                       .table = &table_,
                       .arbiter = &arbiter_,
                       .turns = &turns_,
                       .shares = nullptr,
                       .services = &services_}};
  Backstop backstop_{{&facts_, &table_, &arbiter_, &resume_, &services_, nullptr}};
  NodeReporter reporter_{{.facts = &facts_,
                          .table = &table_,
                          .arbiter = &arbiter_,
                          .turns = &turns_,
                          .spill = &spill_,
                          .owners = &owners_,
                          .allocations = &allocations_,
                          .unknown = &unknown_,
                          .resume = &resume_,
                          .counters = &counters_,
                          .shares = nullptr,
                          .planning = nullptr,
                          .backstop = &backstop_}};
  Operators operators_{{.facts = &facts_,
                        .table = &table_,
                        .users = &users_,
                        .terms = &terms_,
                        .expected = &expected_,
                        .allocations = &allocations_,
                        .reporter = &reporter_,
                        .services = &services_,
                        .counters = &counters_}};
};

TEST_F(OperatorsTest, ChangesAJobsTerms) {
  const protocol::SetBudget half = {.job = "train", .limit_bytes = kGigabyte};

  EXPECT_EQ(Answer(half).outcome, protocol::Outcome::kDone);

  EXPECT_EQ(JobOf("train").set_by_operator.limit_bytes, kGigabyte);
  EXPECT_EQ((counters_.api_requests.count({"set_budget", "done"})), 1U);
}

TEST_F(OperatorsTest, OnlyOperatorsMayChangeSomething) {
  const protocol::Control drain = {.action = protocol::Action::kDrain};
  EXPECT_EQ(Answer(drain, kUser).outcome, protocol::Outcome::kRefused);
  EXPECT_FALSE(arbiter_.draining());

  facts_.config.operators = {kUser};

  EXPECT_EQ(Answer(drain, kUser).outcome, protocol::Outcome::kDone);
  EXPECT_TRUE(arbiter_.draining());
}

TEST_F(OperatorsTest, RefusesWhatCannotBe) {
  using protocol::SetBudget;
  EXPECT_EQ(Answer(SetBudget{.job = "other"}).outcome, protocol::Outcome::kUnknownJob);
  EXPECT_EQ(Answer(SetBudget{.job = "train", .device = 0}).outcome, protocol::Outcome::kRefused);
  EXPECT_EQ(Answer(SetBudget{.job = "train", .limit_bytes = 0}).outcome,
            protocol::Outcome::kRefused);
  EXPECT_EQ(Answer(protocol::Control{.action = protocol::Action::kReload}).text.view(),
            "the file has an error");
}

TEST_F(OperatorsTest, AManagerGetsTheTotalsOfAJobThatItForgets) {
  const protocol::ExpectJob job = {.job = "slurm-5", .limit_bytes = kGigabyte};
  EXPECT_EQ(Answer(job, kUser).outcome, protocol::Outcome::kRefused);
  EXPECT_EQ(Answer(protocol::ExpectJob{.job = "slurm-5", .part = "0"}).outcome,
            protocol::Outcome::kUnknownJob);
  EXPECT_EQ(Answer(job).outcome, protocol::Outcome::kDone);
  EXPECT_EQ(Answer(protocol::ForgetJob{.job = "slurm-5", .part = "0"}).outcome,
            protocol::Outcome::kUnknownJob);

  Session& session = NewSession(1, 0);
  EXPECT_FALSE(operators_.Take(session, protocol::ForgetJob{.job = "slurm-5"}, kSecond));

  EXPECT_EQ(Next<protocol::JobTotals>(session).job.view(), "slurm-5");
  EXPECT_EQ(Answer(protocol::ForgetJob{.job = "slurm-5"}).outcome, protocol::Outcome::kUnknownJob);
}

TEST_F(OperatorsTest, AnybodyMayAskAndGetsTheReport) {
  Session& session = NewSession(1, kUser);

  EXPECT_FALSE(operators_.Take(session, protocol::Ask{}, kSecond));

  EXPECT_EQ(Next<protocol::Document>(session).size_bytes, std::string("1 jobs").size());
}

TEST_F(OperatorsTest, ThroughTheJobsSocketNobodyOperatesTheNode) {
  const protocol::Message requests[] = {
      protocol::SetBudget{.job = "train", .limit_bytes = kGigabyte},
      protocol::SetWorkspace{.job = "train", .limit_bytes = kGigabyte},
      protocol::ExpectJob{.job = "pod-5", .limit_bytes = kGigabyte},
      protocol::ForgetJob{.job = "train"},
      protocol::Control{.action = protocol::Action::kDrain},
      protocol::Control{.action = protocol::Action::kReload},
      protocol::Ask{.question = protocol::Question::kConfig}};
  for (const protocol::Message& request : requests) {
    Session& root = NewSession(1, 0);
    root.entrance = Entrance::kJobsOnly;
    EXPECT_FALSE(operators_.Take(root, request, kSecond));
    EXPECT_EQ(Next<protocol::Done>(root).outcome, protocol::Outcome::kRefused)
        << protocol::NameOf(request);
  }
  EXPECT_FALSE(arbiter_.draining());
  EXPECT_EQ(expected_.TermsOf("pod-5"), nullptr);
}

TEST_F(OperatorsTest, ThroughTheJobsSocketAJobSeesItselfAlone) {
  const auto pages = [&](pid_t pid, const protocol::Ask& ask) {
    Session& session = NewSession(pid, 0);
    session.entrance = Entrance::kJobsOnly;
    EXPECT_FALSE(operators_.Take(session, ask, kSecond));
    return session.id;
  };
  Session& asking = table_.At(pages(1, {}));
  EXPECT_EQ(Next<protocol::Document>(asking).size_bytes, std::string("0 jobs").size());
  const protocol::Ask of_job = {.question = protocol::Question::kJob, .job = "train"};
  EXPECT_EQ(Next<protocol::Done>(table_.At(pages(1, of_job))).outcome,
            protocol::Outcome::kUnknownJob);

  services_.identities[2] = JobIdentity{"train", "train", JobSource::kLocal, "", "train"};
  EXPECT_EQ(Next<protocol::Document>(table_.At(pages(2, of_job))).size_bytes,
            std::string("1 jobs").size());
}

TEST_F(OperatorsTest, QuestionsThatComeTooFastBreakARule) {
  facts_.config.limits.messages_per_second = 1;
  Session& session = NewSession(1, kUser);
  EXPECT_FALSE(operators_.Take(session, protocol::Ask{}, kSecond));

  const std::optional<Refusal> refusal = operators_.Take(session, protocol::Ask{}, kSecond);

  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, protocol::ErrorCode::kTooFast);
}

TEST_F(OperatorsTest, AJobsMessageBreaksARule) {
  EXPECT_TRUE(operators_.Take(NewSession(1, 0), protocol::Usage{}, kSecond));
}

}  // namespace
}  // namespace spillway::agent
