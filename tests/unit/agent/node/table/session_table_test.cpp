#include "agent/node/table/session_table.h"

#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

class SessionTableTest : public PartTest {};

TEST_F(SessionTableTest, UsesNoIdTwice) {
  const SessionId first = NewSession(1).id;
  table_.Remove(first);

  EXPECT_NE(NewSession(2).id, first);
  EXPECT_EQ(table_.Find(first), nullptr);
}

TEST_F(SessionTableTest, FindsJobsByIdKeyAndName) {
  Job& job = table_.AddJob("slurm-7@node");
  job.name = "slurm-7";

  EXPECT_EQ(table_.FindJob(job.id), &job);
  EXPECT_EQ(table_.FindJobByKey("slurm-7@node"), &job);
  EXPECT_EQ(table_.FindJobByName("slurm-7"), &job);
  const JobId id = job.id;
  table_.RemoveJob(id);

  EXPECT_EQ(table_.FindJob(id), nullptr);
  EXPECT_EQ(table_.FindJobByKey("slurm-7@node"), nullptr);
  EXPECT_EQ(table_.FindJobByName("slurm-7"), nullptr);
  EXPECT_NE(table_.AddJob("slurm-7@node").id, id);
}

TEST_F(SessionTableTest, KnowsWhetherAnotherSessionIsOfTheSameProcess) {
  Session& first = NewJobSession("job", 7);
  Session& second = NewJobSession("job", 7);
  NewJobSession("job", 8);
  EXPECT_FALSE(table_.IsOnlyOneOfProcess(first));

  table_.LeaveJob(second);

  EXPECT_TRUE(table_.IsOnlyOneOfProcess(first));
  EXPECT_EQ(table_.JobOf(second).name, "job") << "a session still says which job it had";
}

TEST_F(SessionTableTest, ListsTheDevicesOfAllProcessesOfAJob) {
  Session& first = NewJobSession("job", 7);
  Register(NewJobSession("job", 8), 0, DeviceId{2});
  Register(NewJobSession("other", 9), 0, DeviceId{3});
  Register(first, 0, DeviceId{1});
  Register(first, 5, DeviceId{2});

  EXPECT_EQ(table_.DevicesOf(JobOf("job")), (std::set<DeviceId>{DeviceId{1}, DeviceId{2}}));
}

}  // namespace
}  // namespace spillway::agent
