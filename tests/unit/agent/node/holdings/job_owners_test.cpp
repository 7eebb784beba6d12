#include "agent/node/holdings/job_owners.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

class JobOwnersTest : public testing::Test {
 protected:
  JobOwnersTest() {
    facts_.devices = {{{9}, "GPU-1", "Simulated", 100}};
    arbiter_.SetDevice(DeviceId{0}, 100);
  }
  OwnerId Begin(uint64_t id, uid_t uid, JobSource source = JobSource::kLocal) {
    Job& job = jobs_[JobId{id}];
    job.id = JobId{id};
    job.key = "job-" + std::to_string(id);
    job.uid = uid;
    job.source = source;
    return job.owner = owners_.AddJob(job);
  }
  void End(uint64_t id) {
    owners_.TakeJob(jobs_.at(JobId{id}));
    jobs_.erase(JobId{id});
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const OwnerReport& report : owners_.Report({}, jobs_)) names.push_back(report.name);
    return names;
  }

  NodeFacts facts_;
  Arbiter arbiter_{ArbiterRules{}};
  JobOwners owners_{&facts_, &arbiter_};
  std::map<JobId, Job> jobs_;
};

using OwnerNames = std::vector<std::string>;

TEST_F(JobOwnersTest, JobsOfAUserHaveOneOwnerUntilTheLastEnds) {
  const OwnerId owner = Begin(1, 1000);

  EXPECT_EQ(Begin(2, 1000), owner);
  EXPECT_NE(Begin(3, 1001), owner);
  EXPECT_EQ(Names(), (OwnerNames{"user-1000", "user-1001"}));
  End(1);
  EXPECT_EQ(Names(), (OwnerNames{"user-1000", "user-1001"}));
  End(2);
  EXPECT_EQ(Names(), OwnerNames{"user-1001"});
}

TEST_F(JobOwnersTest, APodIsAnOwnerWhateverUserItsProcessesTake) {
  EXPECT_NE(Begin(1, 0, JobSource::kKubernetes), Begin(2, 0, JobSource::kKubernetes));
  EXPECT_EQ(Names(), (OwnerNames{"job-1", "job-2"}));
}

TEST_F(JobOwnersTest, ConfiguredOwnersStayWithoutJobs) {
  facts_.config.users = {{.uid = 1000, .terms = {.guaranteed_bytes = 40}}};
  owners_.Refresh();
  Begin(1, 1000);
  End(1);
  EXPECT_EQ(Names(), OwnerNames{"user-1000"});

  facts_.config.users = {};
  owners_.Refresh();

  EXPECT_EQ(Names(), OwnerNames{});
}

TEST_F(JobOwnersTest, ReportsAUsersJobsWithItsAccountToo) {
  facts_.config.accounts = {{.name = "physics", .uids = {1000}, .terms = {.limit_bytes = 60}}};
  owners_.Refresh();
  Begin(1, 1000);
  TenancyView first;
  first.job = JobId{1};
  first.state = TenancyState::kAdmitted;
  first.terms.memory.limit = 50;
  first.granted_bytes = 10;
  first.wanted_bytes = 80;

  const std::vector<OwnerReport> reports = owners_.Report({first}, jobs_);

  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].name, "account-physics");
  EXPECT_EQ(reports[0].devices.at(0).limit_bytes, 60);
  EXPECT_EQ(reports[1].account, "physics");
  EXPECT_EQ(reports[1].devices.at(0).limit_bytes, 100) << "no limit: all of the device";
  for (const OwnerReport& report : reports) {
    EXPECT_EQ(report.jobs, 1);
    EXPECT_EQ(report.devices.at(0).granted_bytes, 10);
    EXPECT_EQ(report.devices.at(0).wanted_bytes, 50) << "within its limit";
  }
}

}  // namespace
}  // namespace spillway::agent
