#include "agent/node/holdings/expected_jobs.h"

#include "agent/node/holdings/job_terms.h"
#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

class ExpectedJobsTest : public PartTest {
 protected:
  ExpectedJobsTest() {
    facts_.config.defaults.floor_bytes = 0;
    facts_.host_bytes = 50 * kGigabyte;
    arbiter_.SetDevice(kDevice, 10 * kGigabyte);
    arbiter_.SetHost(facts_.host_bytes);
  }
  // A process of the job that wants all of the device.
  Session& Begin(const std::string& job, pid_t pid, const std::string& part = "") {
    Session& session = NewJobSession(job, pid);
    session.part = part;
    Registration& registration = Register(session, 3);
    registration.part = expected_.PartOf(job, part);
    registration.usage.wanted_bytes = 10 * kGigabyte;
    arbiter_.Join(ProcessOf(session, kDevice), terms_.Of(JobOf(job), kDevice),
                  DemandOf(registration), 0);
    terms_.Refresh(JobOf(job));
    return session;
  }
  int64_t GrantedTo(const Session& session) {
    arbiter_.Decide(0);
    return arbiter_.BudgetedTo(ProcessOf(session, kDevice));
  }

  NodeFacts facts_;
  Arbiter arbiter_{ArbiterRules{.headroom_bytes = 0}};
  ExpectedJobs expected_{&table_};
  Allocations allocations_;
  JobTerms terms_{&facts_, &table_, &expected_, &arbiter_, &allocations_};
};

TEST_F(ExpectedJobsTest, StatedTermsHoldFromTheFirstProcessOn) {
  ASSERT_TRUE(
      expected_
          .Expect({.job = "slurm-5", .guaranteed_bytes = kGigabyte, .limit_bytes = 4 * kGigabyte})
          .ok());

  const Session& session = Begin("slurm-5", 7);

  EXPECT_EQ(GrantedTo(session), 4 * kGigabyte);
  EXPECT_EQ(arbiter_.Tenancies().at(0).terms.memory.guaranteed, kGigabyte);
}

TEST_F(ExpectedJobsTest, AStatedLimitOnlyLowersTheOperators) {
  facts_.config.rules.push_back({"slurm-*", {}, {.limit_bytes = 3 * kGigabyte}});
  ASSERT_TRUE(expected_.Expect({.job = "slurm-5", .limit_bytes = 4 * kGigabyte}).ok());
  ASSERT_TRUE(expected_.Expect({.job = "slurm-6", .limit_bytes = 2 * kGigabyte}).ok());

  EXPECT_EQ(terms_.Of(JobOf("slurm-5"), kDevice).memory.limit, 3 * kGigabyte);
  EXPECT_EQ(terms_.Of(JobOf("slurm-6"), kDevice).memory.limit, 2 * kGigabyte);
}

TEST_F(ExpectedJobsTest, AStepsProcessesStayTogetherWithinItsBound) {
  ASSERT_TRUE(expected_.Expect({.job = "slurm-5", .limit_bytes = 8 * kGigabyte}).ok());
  ASSERT_TRUE(expected_.Expect({.job = "slurm-5", .part = "0", .limit_bytes = 3 * kGigabyte}).ok());

  const Session &first = Begin("slurm-5", 7, "0"), &second = Begin("slurm-5", 8, "0"),
                &other = Begin("slurm-5", 9, "1");
  const int64_t step_bytes = GrantedTo(first) + GrantedTo(second);

  EXPECT_LE(step_bytes, 3 * kGigabyte);
  EXPECT_GT(step_bytes, 29 * kGigabyte / 10);
  EXPECT_GT(GrantedTo(other), 49 * kGigabyte / 10) << "the rest of the job's";
}

// Regression: the job's floor was above a step's bound, so the step got no grant.
TEST_F(ExpectedJobsTest, AStepBelowTheJobsFloorGetsItsBound) {
  facts_.config.defaults.floor_bytes = 9 * kGigabyte;
  ASSERT_TRUE(expected_.Expect({.job = "slurm-5", .limit_bytes = 8 * kGigabyte}).ok());
  ASSERT_TRUE(expected_.Expect({.job = "slurm-5", .part = "0", .limit_bytes = 3 * kGigabyte}).ok());

  const Session& session = Begin("slurm-5", 7, "0");

  EXPECT_EQ(GrantedTo(session), 3 * kGigabyte);
}

TEST_F(ExpectedJobsTest, AForgottenStepHasNoBound) {
  ASSERT_TRUE(expected_.Expect({.job = "slurm-5", .limit_bytes = 8 * kGigabyte}).ok());
  ASSERT_TRUE(expected_.Expect({.job = "slurm-5", .part = "0", .limit_bytes = 3 * kGigabyte}).ok());
  const Session& session = Begin("slurm-5", 7, "0");
  ASSERT_EQ(GrantedTo(session), 3 * kGigabyte);

  EXPECT_TRUE(expected_.ForgetPart("slurm-5", "0"));
  terms_.Refresh(JobOf("slurm-5"));

  EXPECT_GT(GrantedTo(session), 79 * kGigabyte / 10);
  EXPECT_FALSE(expected_.ForgetPart("slurm-5", "0"));
}

TEST_F(ExpectedJobsTest, TotalsOutliveProcessesUntilTheJobIsForgotten) {
  ASSERT_TRUE(expected_.Expect({.job = "slurm-5"}).ok());
  Session &ended = Begin("slurm-5", 7), &living = Begin("slurm-5", 8);
  Job& job = JobOf("slurm-5");
  ended.Find(3)->usage.resident_bytes = kGigabyte;
  living.Find(3)->usage.resident_bytes = 2 * kGigabyte;
  expected_.NoteUse(job, kDevice);
  living.Find(3)->usage.resident_bytes = 0;
  expected_.NoteUse(job, kDevice);
  job.finished[kDevice].to_host_bytes = 5;
  expected_.NoteEnd(job);
  job.finished.clear();
  living.Find(3)->usage.to_host_bytes = 6;
  living.Find(3)->usage.stall_ns = 7;

  const std::optional<protocol::JobTotals> totals = expected_.Forget("slurm-5");

  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->job.view(), "slurm-5");
  EXPECT_EQ(totals->peak_bytes, 3 * kGigabyte);
  EXPECT_EQ(totals->to_host_bytes, 5 + 6);
  EXPECT_EQ(totals->stall_ns, 7);
  EXPECT_FALSE(expected_.Forget("slurm-5"));
}

TEST_F(ExpectedJobsTest, ARequeuedJobBeginsAnew) {
  ASSERT_TRUE(expected_.Expect({.job = "slurm-5"}).ok());
  ASSERT_TRUE(expected_.Expect({.job = "slurm-5", .part = "0"}).ok());
  JobOf("slurm-5").finished[kDevice].to_host_bytes = 5;
  expected_.NoteEnd(JobOf("slurm-5"));
  table_.RemoveJob(JobOf("slurm-5").id);

  ASSERT_TRUE(expected_.Expect({.job = "slurm-5"}).ok());

  EXPECT_EQ(expected_.PartOf("slurm-5", "0"), kNobody);
  EXPECT_EQ(expected_.Forget("slurm-5")->to_host_bytes, 0);
}

TEST_F(ExpectedJobsTest, RefusesWhatCannotBe) {
  EXPECT_FALSE(expected_.Expect({.job = "local-5"}).ok());
  EXPECT_FALSE(expected_.Expect({.job = "slurm-5", .limit_bytes = 0}).ok());
  EXPECT_FALSE(expected_.Expect({.job = "slurm-5", .guaranteed_bytes = 2, .limit_bytes = 1}).ok());
  EXPECT_EQ(expected_.Expect({.job = "slurm-5", .part = "0"}).text(), "no job slurm-5 is expected");
  EXPECT_EQ(expected_.saved_version(), 0U);

  ASSERT_TRUE(expected_.Expect({.job = "slurm-5", .limit_bytes = int64_t{2} << 30}).ok());
  EXPECT_EQ(
      expected_.Expect({.job = "slurm-5", .part = "0", .limit_bytes = int64_t{3} << 30}).text(),
      "3.0 GiB is more than the job has, 2.0 GiB");
}

TEST_F(ExpectedJobsTest, TheNextAgentExpectsThemToo) {
  ASSERT_TRUE(expected_.Expect({.job = "slurm-5", .limit_bytes = 8 * kGigabyte}).ok());
  ASSERT_TRUE(expected_.Expect({.job = "slurm-5", .part = "0", .limit_bytes = 3 * kGigabyte}).ok());
  ExpectedJobs next(&table_);

  next.Restore(expected_.Saved());

  EXPECT_EQ(next.Saved(), expected_.Saved());
  EXPECT_NE(next.PartOf("slurm-5", "0"), kNobody);
  EXPECT_EQ(next.TermsOf("slurm-5")->limit_bytes, 8 * kGigabyte);
}

TEST_F(ExpectedJobsTest, TheirNumberIsBounded) {
  for (size_t i = 0; i < ExpectedJobs::kMostJobs; ++i)
    ASSERT_TRUE(expected_.Expect({.job = "slurm-" + std::to_string(i)}).ok());

  EXPECT_FALSE(expected_.Expect({.job = "slurm-one-more"}).ok());
  EXPECT_TRUE(expected_.Expect({.job = "slurm-7"}).ok()) << "anew";
}

}  // namespace
}  // namespace spillway::agent
