#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agent/identity/job_identity.h"
#include "tests/unit/slurm_groups.h"

namespace spillway::agent {
namespace {

using Identity = ControlGroupIdentity;

const std::string kId(64, 'a');

TEST(ControlGroupTest, FindsSlurmJobsAndStepsInBothHierarchies) {
  EXPECT_EQ(IdentityInControlGroups(
                "9:name=systemd:/\n4:memory:/slurm_node7/uid_5/job_1201/step_0/task_0\n0::/\n"),
            (Identity{JobSource::kSlurm, "1201", "0"}));
  EXPECT_EQ(IdentityInControlGroups(
                "0::/system.slice/slurmstepd.scope/job_1201/step_batch/user/task_0\n"),
            (Identity{JobSource::kSlurm, "1201", "batch"}));
}

// Regression: jobs in another slice (CgroupSlice) were local ones, without their budgets.
TEST(ControlGroupTest, KnowsTheGroupsOfSlurmsNodes) {
  for (const test::SlurmGroup& group : test::SlurmGroups()) {
    const std::string file = "0::" + group.path + "\n";
    const Identity identity = IdentityInControlGroups(file);
    const Identity expected =
        group.job.empty() ? Identity{} : Identity{JobSource::kSlurm, group.job, group.step};
    EXPECT_EQ(identity, expected) << group.path << ": " << identity.job << " " << identity.part;
    EXPECT_EQ(OwnGroupOf(identity, file), group.job.empty() ? "" : "/sys/fs/cgroup" + group.path);
  }
}

// Regression: one byte that was not UTF-8 made Prometheus reject the whole page.
TEST(ControlGroupTest, StepWithUnexpectedLettersIsLeftOut) {
  const std::string job = "0::/system.slice/slurmstepd.scope/job_1201/";
  EXPECT_EQ(IdentityInControlGroups(job + "step_0+1/user\n").part, "0+1");
  for (const char* step : {"step_\xff", "step_0\"} 1", "step_0\\n", "step_", "user"}) {
    EXPECT_EQ(IdentityInControlGroups(job + step + "\n"), (Identity{JobSource::kSlurm, "1201", ""}))
        << step;
  }
}

TEST(ControlGroupTest, FindsPodsOfEveryCgroupDriver) {
  EXPECT_EQ(IdentityInControlGroups(
                "0::/kubepods.slice/kubepods-burstable.slice/"
                "kubepods-burstable-pod1f2e3d4c_0000_4000_8000_123456789abc.slice/cri-containerd-" +
                kId + ".scope\n"),
            (Identity{JobSource::kKubernetes, "1f2e3d4c-0000-4000-8000-123456789abc", kId}));
  EXPECT_EQ(
      IdentityInControlGroups(
          "4:memory:/kubepods/burstable/pod1f2e3d4c-0000-4000-8000-123456789abc/" + kId + "\n"),
      (Identity{JobSource::kKubernetes, "1f2e3d4c-0000-4000-8000-123456789abc", kId}));
}

// Regression: such a process was a job of the node's own, without its pod's budget.
TEST(ControlGroupTest, FindsPodsWhereContainerdMakesGroupsItself) {
  const std::string segment =
      "/kubepods-burstable-pod1f2e3d4c_0000_4000_8000_123456789abc.slice:cri-containerd:" + kId;
  const Identity pod{JobSource::kKubernetes, "1f2e3d4c-0000-4000-8000-123456789abc", kId};
  EXPECT_EQ(IdentityInControlGroups("0::" + segment + "\n"), pod);
  EXPECT_EQ(IdentityInControlGroups("0::/system.slice/containerd.service" + segment + "\n"), pod);
  EXPECT_EQ(IdentityInControlGroups("4:memory:/system.slice/containerd.service" + segment + "\n"),
            pod);
  // A user's own group, and names that are cut off or made up.
  for (const std::string& other :
       {"/user.slice" + segment, "/system.slice/cron.service" + segment, segment.substr(0, 80),
        "/x-pod1f2e3d4c_0000_4000_8000_123456789abc.slice:cri-containerd:" + kId, segment + ":x"})
    EXPECT_EQ(IdentityInControlGroups("0::" + other + "\n"), Identity{}) << other;
}

TEST(ControlGroupTest, FindsContainersOfDockerAndPodman) {
  EXPECT_EQ(IdentityInControlGroups("0::/system.slice/docker-" + kId + ".scope\n"),
            (Identity{JobSource::kContainer, kId, ""}));
  EXPECT_EQ(IdentityInControlGroups("4:memory:/libpod_parent/libpod-" + kId + "\n"),
            (Identity{JobSource::kContainer, kId, ""}));
}

TEST(ControlGroupTest, GroupsBelowAUsersOwnNameNoForeignJob) {
  const std::string own = "0::/user.slice/user-1000.slice/user@1000.service/";
  EXPECT_EQ(IdentityInControlGroups(own + "slurm/uid_5/job_4/step_0\n"), Identity{});
  EXPECT_EQ(IdentityInControlGroups(own + "kubepods/pod1f2e3d4c-0000-4000-8000-123456789abc/" +
                                    kId + "\n"),
            Identity{});
}

TEST(ControlGroupTest, AGroupIsTheJobsOwnIfItsPathNamesTheJob) {
  const auto own = [](const std::string& file) {
    return OwnGroupOf(IdentityInControlGroups(file), file);
  };
  const std::string job = "/system.slice/slurmstepd.scope/job_1201/step_0/user/task_0";
  EXPECT_EQ(own("0::" + job + "\n"), "/sys/fs/cgroup" + job);
  EXPECT_EQ(own("4:memory:/docker/" + kId + "\n0::/docker/" + kId + "\n"),
            "/sys/fs/cgroup/docker/" + kId);
  EXPECT_EQ(own("4:memory:/slurm/uid_5/job_1201/step_0\n0::/\n"), "") << "all processes' group";
  EXPECT_EQ(own("4:memory:/slurm/uid_5/job_1201/step_0\n0::/user.slice\n"), "");
  EXPECT_EQ(own("4:memory:/slurm/uid_5/job_1201\n0::/slurm/uid_5/job_7\n"), "") << "another's";
  EXPECT_EQ(own("4:memory:/docker/" + kId + "\n"), "") << "version 1 alone";
  EXPECT_EQ(own("0::/user.slice/session-3.scope\n"), "") << "a local job's is a login's";
}

TEST(ControlGroupTest, OddTextYieldsNoIdentity) {
  for (const char* text :
       {"", "\n\n", "0::", "0::/", "::::", "no colon at all", "4:memory:/slurm/uid_5/job_x/step_0",
        "4:memory:/slurm/job_", "0::/kubepods/podzz", "0::/docker/abc"}) {
    EXPECT_EQ(IdentityInControlGroups(text), Identity{}) << text;
  }
}

class ProcessTableTest : public testing::Test {
 protected:
  ProcessTableTest() : root_(testing::TempDir() + "proc." + std::to_string(getpid())) {}
  ~ProcessTableTest() override { std::filesystem::remove_all(root_); }

  void Add(int pid, int parent, unsigned uid, const std::string& command,
           const std::string& group = "0::/\n", const std::string& inner_pid = "") {
    const std::string folder = root_ + "/" + std::to_string(pid);
    std::filesystem::create_directories(folder);
    std::ofstream stat(folder + "/stat");
    stat << pid << " (" << command << ") S " << parent;
    for (int field = 5; field < 22; ++field) stat << " 0";
    stat << " " << pid * 10 << " 0 0\n";
    std::ofstream(folder + "/status")
        << "Name:\tx\nUid:\t" << uid << "\t0\t0\t0\nNSpid:\t" << pid << inner_pid << "\n";
    std::ofstream(folder + "/cgroup") << group;
  }

  const std::string root_;
  ProcessTable table_{root_};
};

TEST_F(ProcessTableTest, ProcessBelongsToItsNamedLeader) {
  Add(100, 1, 1000, "bash");
  Add(101, 100, 1000, "torchrun");
  Add(102, 101, 1000, "python3");

  const auto identity = table_.IdentityOf(102, 1000, 101);

  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->name, "local-101");
  EXPECT_EQ(identity->key, "local-101@1010");
  EXPECT_EQ(identity->command, "torchrun");
  EXPECT_EQ(table_.IdentityOf(101, 1000, 101)->name, "local-101");
}

TEST_F(ProcessTableTest, ProcessCannotJoinAnUnrelatedJob) {
  Add(100, 1, 0, "root's");
  Add(101, 100, 1000, "another");
  Add(102, 100, 1000, "python3");

  EXPECT_EQ(table_.IdentityOf(102, 1000, 101)->name, "local-102") << "no ancestor";
  EXPECT_EQ(table_.IdentityOf(102, 1000, 100)->name, "local-102") << "another user's";
  EXPECT_EQ(table_.IdentityOf(102, 1000, 0)->name, "local-102");
}

TEST_F(ProcessTableTest, LeaderIsFoundByItsPidInItsNamespace) {
  Add(5000, 4000, 1000, "train", "0::/\n", "\t7");
  Add(5001, 5000, 1000, "worker", "0::/\n", "\t8");

  EXPECT_EQ(table_.IdentityOf(5001, 1000, 7)->name, "local-5000");
}

TEST_F(ProcessTableTest, JobsOfClusterSchedulersKeepTheirNames) {
  Add(10, 1, 1000, "a", "0::/system.slice/slurmstepd.scope/job_1201/step_0/user/task_0\n");
  Add(11, 1, 1000, "b", "0::/kubepods/pod1f2e3d4c-0000-4000-8000-123456789abc/" + kId + "\n");

  EXPECT_EQ(table_.IdentityOf(10, 1000, 10)->name, "slurm-1201");
  EXPECT_EQ(table_.IdentityOf(10, 1000, 10)->id, "1201");
  EXPECT_EQ(table_.IdentityOf(10, 1000, 10)->part, "0");
  EXPECT_EQ(table_.IdentityOf(11, 1000, 0)->name, "pod-1f2e3d4c");
  EXPECT_EQ(table_.IdentityOf(11, 1000, 0)->id, "1f2e3d4c-0000-4000-8000-123456789abc");
  EXPECT_EQ(table_.IdentityOf(11, 1000, 0)->part, kId);
}

TEST_F(ProcessTableTest, CommandNamedLikeAFieldIsNoField) {
  Add(12, 1, 1000, "x) R 1 (y");

  EXPECT_EQ(table_.IdentityOf(12, 1000, 0)->command, "x) R 1 (y");
}

TEST_F(ProcessTableTest, GoneOrForeignProcessHasNoIdentity) {
  Add(13, 1, 1000, "x");

  EXPECT_FALSE(table_.IdentityOf(14, 1000, 0));
  EXPECT_FALSE(table_.IdentityOf(13, 1001, 0));
}

TEST(RealProcessTableTest, FindsThisProcess) {
  const auto identity = ProcessTable().IdentityOf(getpid(), getuid(), getpid());

  ASSERT_TRUE(identity);
  EXPECT_FALSE(identity->command.empty());
}

}  // namespace
}  // namespace spillway::agent
