#include "interposer/planning/step_counts.h"

#include <gtest/gtest.h>

#include "tests/unit/interposer_planning/fake_job.h"

namespace spillway::interposer {
namespace {

class StepCountsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GT(job_.RunUntilPlanned(12), 0);
    ASSERT_GT(plan().predicted_ns(), plan().operations_ns());
  }
  const scheduler::LivePlan& plan() { return *job_.adopted.back(); }
  std::uint64_t PlanCostsNs() {
    return static_cast<std::uint64_t>(plan().predicted_ns() - plan().operations_ns());
  }

  FakeJob job_;
  StepCounts counts_;
};

TEST_F(StepCountsTest, AnIterationLosesWhatItsPlanCosts) {
  counts_.NoteFollowed(plan(), plan().predicted_ns());
  EXPECT_EQ(counts_.lost_ns, PlanCostsNs());
  EXPECT_EQ(counts_.planned_ns, static_cast<std::uint64_t>(plan().predicted_ns()));
  EXPECT_LE(counts_.repeated_ns, counts_.lost_ns);
}

TEST_F(StepCountsTest, TimeBeyondThePlanIsTheProgramsOwn) {
  counts_.NoteFollowed(plan(), 5 * plan().predicted_ns());
  EXPECT_EQ(counts_.lost_ns, PlanCostsNs());
}

TEST_F(StepCountsTest, AnIterationAsFastAsItsOperationsLosesNothing) {
  counts_.NoteFollowed(plan(), plan().operations_ns());
  EXPECT_EQ(counts_.lost_ns, 0u);
}

}  // namespace
}  // namespace spillway::interposer
