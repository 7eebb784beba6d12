#include "agent/node/table/native_budget.h"

#include "base/external_limits.h"
#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

constexpr int64_t kMiB = 1 << 20;

class NativeBudgetTest : public PartTest {
 protected:
  void Use(pid_t pid, const std::string& group, NativeLimits limits) {
    processes_.uses.push_back({pid, "GPU-0", kMiB, "train", group, limits});
  }
  std::optional<int64_t> Budget(const std::string& job, const std::string& uuid = "GPU-0") {
    return NativeBudgetOf(JobOf(job), uuid, table_, processes_);
  }

  DeviceProcesses processes_;
};

TEST_F(NativeBudgetTest, NoLimitLeavesTheBudgetAlone) {
  EXPECT_EQ(BudgetBelow({}, 1), std::nullopt);
}

TEST_F(NativeBudgetTest, TheBudgetStaysBelowTheSoftLimitLessTheContext) {
  EXPECT_EQ(BudgetBelow({1600 * kMiB, 3200 * kMiB}, 1), 1500 * kMiB);
  EXPECT_EQ(BudgetBelow({1600 * kMiB, INT64_MAX}, 1), 1500 * kMiB);
}

TEST_F(NativeBudgetTest, EachProcessHasAContext) {
  EXPECT_EQ(BudgetBelow({1600 * kMiB, 3200 * kMiB}, 3), 1300 * kMiB);
  EXPECT_EQ(BudgetBelow({1600 * kMiB, 3200 * kMiB}, 100), 0);
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
  Use(7, "/a", {1600 * kMiB, INT64_MAX});
  Use(8, "/a", {1600 * kMiB, INT64_MAX});

  EXPECT_EQ(Budget("job"), 1400 * kMiB);
  EXPECT_EQ(Budget("other"), std::nullopt);
  EXPECT_EQ(Budget("job", "GPU-1"), std::nullopt);
}

TEST_F(NativeBudgetTest, OfSeveralGroupsTheLeastCounts) {
  NewJobSession("job", 7);
  NewJobSession("job", 8);
  NewJobSession("job", 9);
  Use(7, "/a", {3200 * kMiB, INT64_MAX});
  Use(8, "/b", {1600 * kMiB, INT64_MAX});
  Use(9, "/c", {});

  EXPECT_EQ(Budget("job"), 1500 * kMiB);
}

}  // namespace
}  // namespace spillway::agent
