#include "agent/node/table/native_budget.h"

#include "base/external_limits.h"
#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

constexpr int64_t kMiB = 1 << 20;

class NativeBudgetTest : public PartTest {
 protected:
  void Use(pid_t pid, const std::string& group, std::optional<NativeLimits> limits,
           int64_t bytes = kMiB) {
    processes_.uses.push_back({pid, "GPU-0", bytes, "train", group, limits});
  }
  std::optional<int64_t> Budget(const std::string& job, const std::string& uuid = "GPU-0") {
    return Told(job, uuid).bytes;
  }
  NativeBudget Told(const std::string& job, const std::string& uuid = "GPU-0") {
    return NativeBudgetOf(JobOf(job), uuid, table_, processes_);
  }
  // Of a job alone in its group.
  std::optional<int64_t> BudgetBelow(NativeLimits limits, int processes) {
    for (pid_t pid = 1; pid <= processes; ++pid) {
      NewJobSession("alone", pid);
      Use(pid, "/alone", limits);
    }
    return Budget("alone");
  }

  DeviceProcesses processes_;
};

TEST_F(NativeBudgetTest, NoLimitLeavesTheBudgetAlone) {
  EXPECT_EQ(BudgetBelow({}, 1), std::nullopt);
  EXPECT_TRUE(Told("alone").is_told);
}

TEST_F(NativeBudgetTest, TheBudgetStaysBelowTheSoftLimitLessTheContext) {
  EXPECT_EQ(BudgetBelow({1600 * kMiB, 3200 * kMiB}, 1), 1500 * kMiB);
}

TEST_F(NativeBudgetTest, ASoftLimitNeedsNoHardOne) {
  EXPECT_EQ(BudgetBelow({1600 * kMiB, INT64_MAX}, 1), 1500 * kMiB);
}

TEST_F(NativeBudgetTest, EachProcessHasAContext) {
  EXPECT_EQ(BudgetBelow({1600 * kMiB, 3200 * kMiB}, 3), 1300 * kMiB);
}

TEST_F(NativeBudgetTest, ManyProcessesHaveAsManyContexts) {
  constexpr int64_t kGiB = 1024 * kMiB;
  EXPECT_EQ(BudgetBelow({16 * kGiB, INT64_MAX}, 20), 6 * kGiB);
}

TEST_F(NativeBudgetTest, ContextsMayLeaveNothing) {
  EXPECT_EQ(BudgetBelow({1600 * kMiB, 3200 * kMiB}, 30), 0);
}

TEST_F(NativeBudgetTest, WithoutASoftLimitTheHardOneCounts) {
  EXPECT_EQ(BudgetBelow({0, 1600 * kMiB}, 1), 1500 * kMiB);
}

TEST_F(NativeBudgetTest, ASoftLimitAboveTheHardOneIsNoRoom) {
  EXPECT_EQ(BudgetBelow({3200 * kMiB, 1600 * kMiB}, 1), 1500 * kMiB);
}

TEST_F(NativeBudgetTest, ProcessesOfAGroupShareItsLimit) {
  NewJobSession("job", 7);
  NewJobSession("job", 8);
  NewJobSession("other", 9);
  Use(7, "/a", NativeLimits{1600 * kMiB, INT64_MAX});
  Use(8, "/a", NativeLimits{1600 * kMiB, INT64_MAX});

  EXPECT_EQ(Budget("job"), 1400 * kMiB);
  EXPECT_EQ(Budget("other"), std::nullopt);
  EXPECT_EQ(Budget("job", "GPU-1"), std::nullopt);
}

// Each got the whole limit once, so together they could pass it.
TEST_F(NativeBudgetTest, JobsOfAGroupDivideItsLimit) {
  NewJobSession("one", 7);
  NewJobSession("two", 8);
  Use(7, "/a", NativeLimits{1600 * kMiB, INT64_MAX});
  Use(8, "/a", NativeLimits{1600 * kMiB, INT64_MAX});

  EXPECT_EQ(Budget("one"), 700 * kMiB);
  EXPECT_EQ(Budget("two"), 700 * kMiB);
}

TEST_F(NativeBudgetTest, ForeignProcessesOfTheGroupTakeFromItsJobs) {
  NewJobSession("job", 7);
  Use(7, "/a", NativeLimits{1600 * kMiB, INT64_MAX});
  Use(90, "/a", NativeLimits{1600 * kMiB, INT64_MAX}, 600 * kMiB);
  Use(91, "/b", NativeLimits{1600 * kMiB, INT64_MAX}, 500 * kMiB);

  EXPECT_EQ(Budget("job"), 900 * kMiB);
}

TEST_F(NativeBudgetTest, ANewJobWaitsUntilTheOthersHaveMadeRoom) {
  NewJobSession("old", 7);
  NewJobSession("new", 8);
  Use(7, "/a", NativeLimits{1600 * kMiB, INT64_MAX}, 1450 * kMiB);
  Use(8, "/a", NativeLimits{1600 * kMiB, INT64_MAX});

  EXPECT_EQ(Budget("old"), 700 * kMiB);
  EXPECT_EQ(Budget("new"), 50 * kMiB);
}

TEST_F(NativeBudgetTest, AHugeForeignProcessLeavesNothing) {
  NewJobSession("job", 7);
  Use(7, "/a", NativeLimits{1600 * kMiB, INT64_MAX});
  Use(90, "/a", NativeLimits{1600 * kMiB, INT64_MAX}, INT64_MAX);

  EXPECT_EQ(Budget("job"), 0);
}

TEST_F(NativeBudgetTest, OfSeveralGroupsTheLeastCounts) {
  NewJobSession("job", 7);
  NewJobSession("job", 8);
  NewJobSession("job", 9);
  Use(7, "/a", NativeLimits{3200 * kMiB, INT64_MAX});
  Use(8, "/b", NativeLimits{1600 * kMiB, INT64_MAX});
  Use(9, "/c", NativeLimits{});

  EXPECT_EQ(Budget("job"), 1500 * kMiB);
  EXPECT_TRUE(Told("job").is_told);
}

TEST_F(NativeBudgetTest, SilenceIsNotTheAbsenceOfALimit) {
  NewJobSession("job", 7);
  NewJobSession("job", 8);
  EXPECT_FALSE(Told("job").is_told) << "not listed";
  Use(7, "/a", NativeLimits{1600 * kMiB, INT64_MAX});
  EXPECT_TRUE(Told("job").is_told);
  Use(8, "", std::nullopt);

  EXPECT_FALSE(Told("job").is_told);
  EXPECT_EQ(Budget("job"), 1500 * kMiB);
}

}  // namespace
}  // namespace spillway::agent
