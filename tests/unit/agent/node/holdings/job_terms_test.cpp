#include "agent/node/holdings/job_terms.h"

#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

class JobTermsTest : public PartTest {
 protected:
  JobTermsTest() {
    facts_.config.defaults.floor_bytes = 0;
    facts_.host_bytes = 50 * kGigabyte;
    facts_.devices = {{{}, "GPU-0", ""}};
    arbiter_.SetDevice(kDevice, 10 * kGigabyte);
    arbiter_.SetHost(facts_.host_bytes);
    Register(session_, 3);
    arbiter_.Join(ProcessOf(session_, kDevice), terms_.Of(job_, kDevice), {kGigabyte}, 0);
    arbiter_.Decide(0);
  }

  NodeFacts facts_;
  Arbiter arbiter_{ArbiterRules{}};
  ExpectedJobs expected_{&table_};
  Allocations allocations_;
  JobTerms terms_{&facts_, &table_, &expected_, &arbiter_, &allocations_};
  Session& session_ = NewJobSession("job", 7);
  Job& job_ = JobOf("job");
};

TEST_F(JobTermsTest, OwnLimitsOnlyLower) {
  session_.Find(3)->asked.own_limit_bytes = 4 * kGigabyte;
  Registration& other = Register(NewJobSession("job", 8), 0);
  other.asked.own_limit_bytes = 3 * kGigabyte;
  EXPECT_EQ(terms_.Of(job_, kDevice).memory.limit, 3 * kGigabyte) << "the least";

  job_.set_by_operator.limit_bytes = 2 * kGigabyte;

  EXPECT_EQ(terms_.Of(job_, kDevice).memory.limit, 2 * kGigabyte);
}

TEST_F(JobTermsTest, TheDriversOwnLimitsLowerARunningJobsLimit) {
  const auto count = [&](std::optional<NativeLimits> limits) {
    facts_.processes = std::make_shared<DeviceProcesses>(
        DeviceProcesses{{"GPU-0"}, {{7, "GPU-0", 1, "train", "/a", limits}}});
    terms_.RefreshIfLimitsChanged();
    return arbiter_.Tenancies().at(0).terms.memory.limit;
  };

  EXPECT_EQ(count(NativeLimits{1600 << 20, INT64_MAX}), 1500 << 20);
  EXPECT_EQ(terms_.Of(job_, kDevice).memory.limit, 1500 << 20);
  facts_.processes = nullptr;
  terms_.RefreshIfLimitsChanged();
  facts_.processes = std::make_shared<DeviceProcesses>();
  terms_.RefreshIfLimitsChanged();
  EXPECT_EQ(terms_.Of(job_, kDevice).memory.limit, 1500 << 20) << "the driver does not tell";
  EXPECT_EQ(count(std::nullopt), 1500 << 20) << "the driver does not tell of the group";
  facts_.processes = std::make_shared<DeviceProcesses>(DeviceProcesses{{"GPU-0"}, {}});
  terms_.RefreshIfLimitsChanged();
  EXPECT_EQ(terms_.Of(job_, kDevice).memory.limit, 1500 << 20) << "the process is not listed";
  EXPECT_EQ(count(NativeLimits{}), 10 * kGigabyte) << "the driver's limit is gone";
}

TEST_F(JobTermsTest, TheArbiterGetsAChange) {
  const base::Status status = terms_.Change(job_, {.limit_bytes = 2 * kGigabyte});

  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(arbiter_.Tenancies().at(0).terms.memory.limit, 2 * kGigabyte);
  EXPECT_EQ(terms_.Saved().terms.at("job").limit_bytes, 2 * kGigabyte);
  EXPECT_EQ(terms_.saved_version(), 1U);
}

TEST_F(JobTermsTest, ADryOrRefusedChangeLeavesAllAsItWas) {
  EXPECT_TRUE(terms_.Change(job_, {.dry_run = true, .limit_bytes = kGigabyte}).ok());
  EXPECT_EQ(terms_.Change(job_, {.guaranteed_bytes = 11 * kGigabyte}).text(),
            "device 0 has only 9.3 GiB");
  EXPECT_EQ(
      terms_.Change(job_, {.guaranteed_bytes = 2 * kGigabyte, .limit_bytes = kGigabyte}).text(),
      "its limit on device 0 is 954 MiB");

  EXPECT_EQ(job_.set_by_operator, TermsChange{});
  EXPECT_EQ(arbiter_.Tenancies().at(0).terms.memory.limit, 10 * kGigabyte);
  EXPECT_EQ(terms_.saved_version(), 0U);
}

TEST_F(JobTermsTest, AJobThatReturnsInTimeGetsItsTerms) {
  const SavedState saved = {true, {{"first", {.limit_bytes = 1}}, {"second", {.limit_bytes = 2}}}};
  terms_.Restore(saved, true);
  EXPECT_TRUE(arbiter_.draining());
  EXPECT_EQ(terms_.Saved(), saved) << "kept for a next agent, too";

  EXPECT_EQ(terms_.TakeRestored("first").limit_bytes, 1);
  terms_.EndReturn();

  EXPECT_EQ(terms_.TakeRestored("second"), TermsChange{}) << "too late";
  EXPECT_EQ(terms_.saved_version(), 1U) << "its terms are no longer kept";
}

TEST_F(JobTermsTest, AJobsEndIsAChangeIfAnOperatorHadSetItsTerms) {
  terms_.NoteEnd(job_);
  EXPECT_EQ(terms_.saved_version(), 0U);

  job_.set_by_operator.limit_bytes = 1;
  terms_.NoteEnd(job_);

  EXPECT_EQ(terms_.saved_version(), 1U);
}

}  // namespace
}  // namespace spillway::agent
