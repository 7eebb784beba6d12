#include "deploy/slurm/slurm_names.h"

#include <gtest/gtest.h>

#include "tests/unit/slurm_groups.h"

namespace spillway::slurm {
namespace {

TEST(SlurmNamesTest, AreThoseOfTheControlGroups) {
  EXPECT_EQ(JobName(1201), "slurm-1201");
  EXPECT_EQ(StepName(0), "0");
  EXPECT_EQ(StepName(0xfffffffb), "batch");
  EXPECT_EQ(StepName(0xfffffffa), "interactive");
  EXPECT_EQ(StepName(0xfffffffc), "") << "external: holds adopted processes";
}

TEST(SlurmNamesTest, AJobsGroupIsFoundInBothVersionsOfControlGroups) {
  EXPECT_TRUE(IsInJob("9:name=systemd:/\n6:freezer:/slurm_vm/uid_5/job_12\n", 12));
  EXPECT_TRUE(IsInJob("0::/system.slice/slurmstepd.scope/job_12/step_0/slurm/processes\n", 12));
  EXPECT_FALSE(IsInJob("6:freezer:/slurm_vm/uid_5/job_123\n", 12));
  EXPECT_FALSE(IsInJob("0::/\n", 12));
  EXPECT_FALSE(IsInJob("", 12));
}

TEST(SlurmNamesTest, TheJobIsFoundInEveryGroupOfVersion2) {
  for (const test::SlurmGroup& group : test::SlurmGroups()) {
    if (group.job.empty()) continue;
    const auto job = static_cast<uint32_t>(std::stoul(group.job));
    EXPECT_TRUE(IsInJob("0::" + group.path + "\n", job)) << group.path;
    EXPECT_FALSE(IsInJob("0::" + group.path + "\n", job + 1)) << group.path;
  }
}

TEST(SlurmNamesTest, ShardsAreCountedBesideOtherResources) {
  EXPECT_EQ(ShardsIn("shard:8(IDX:0)"), 8);
  EXPECT_EQ(ShardsIn("gpu:h200:1(IDX:0),shard:8(IDX:0)"), 8);
  EXPECT_EQ(ShardsIn("shard:h200:12(0/140,12/140)"), 12);
  EXPECT_EQ(ShardsIn("gpu:h200:2(IDX:0-1)"), 0);
  EXPECT_EQ(ShardsIn(""), 0);
  EXPECT_EQ(ShardsIn("shard:"), 0);
}

}  // namespace
}  // namespace spillway::slurm
