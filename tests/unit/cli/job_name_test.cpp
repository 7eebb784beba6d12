#include "cli/job_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/failure.h"

namespace spillway::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kNames = {"container-012345678901",
                                         "container-01ffee889900",
                                         "slurm-1201",
                                         "local-1187",
                                         "local-118",
                                         "pod-1f2e3d4c"};

std::string WhyAmbiguous(const std::string& written) {
  try {
    return "no failure, but " + WholeJobName(written, kNames);
  } catch (const Failure& failure) {
    return failure.text();
  }
}

TEST(JobNameTest, AWholeNameGoesBeforeAPart) {
  EXPECT_EQ(WholeJobName("local-118", kNames), "local-118");
  EXPECT_EQ(WholeJobName("local-1187", kNames), "local-1187");
  EXPECT_EQ(WholeJobName("train", {"train-2", "train"}), "train");
}

TEST(JobNameTest, AUniqueBeginningOrEndNamesAJob) {
  EXPECT_EQ(WholeJobName("container-012345", kNames), "container-012345678901");
  EXPECT_EQ(WholeJobName("345678901", kNames), "container-012345678901");
  EXPECT_EQ(WholeJobName("900", kNames), "container-01ffee889900");
  EXPECT_EQ(WholeJobName("pod", kNames), "pod-1f2e3d4c");
  EXPECT_EQ(WholeJobName("1201", kNames), "slurm-1201");
}

TEST(JobNameTest, AnAmbiguousPartListsTheJobs) {
  const std::string why = WhyAmbiguous("container-01");

  EXPECT_THAT(why, HasSubstr("container-012345678901, container-01ffee889900"));
  EXPECT_THAT(why, Not(HasSubstr("local")));
  EXPECT_THAT(WhyAmbiguous("local-"), HasSubstr("local-1187, local-118"));
}

// Otherwise a script that names an ended job would change another's budget.
TEST(JobNameTest, NumbersOfProcessesAndSlurmJobsAreNotSplit) {
  EXPECT_EQ(WholeJobName("local-11", kNames), "local-11");
  EXPECT_EQ(WholeJobName("slurm-120", kNames), "slurm-120");
  EXPECT_EQ(WholeJobName("87", kNames), "87");
  EXPECT_EQ(WholeJobName("01", {"slurm-1201"}), "01");
}

TEST(JobNameTest, WhatIsPartOfNoNameStays) {
  EXPECT_EQ(WholeJobName("other", kNames), "other");
  EXPECT_EQ(WholeJobName("", kNames), "");
  EXPECT_EQ(WholeJobName("tainer", kNames), "tainer");
}

}  // namespace
}  // namespace spillway::cli
