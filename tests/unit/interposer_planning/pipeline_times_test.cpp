// What the times of iterations make the pipeline do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>

#include "interposer/driver/driver_api.h"
#include "interposer/planning/pipeline.h"
#include "tests/unit/interposer_planning/fake_job.h"

namespace spillway::interposer {
namespace {

// Iterations are timed by the driver.
class PipelineTimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(driver::Driver().cuInit(0), CUDA_SUCCESS)
        << "SPILLWAY_DRIVER names the simulated driver";
    CUcontext context = nullptr;
    ASSERT_EQ(driver::Driver().cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver::Driver().cuCtxSetCurrent(context), CUDA_SUCCESS);
  }
  void TearDown() override {
    job_.recorder().iterations().Release();
    driver::Driver().cuDevicePrimaryCtxRelease_v2(0);
  }
  static void PageLock(std::size_t bytes) {
    void* locked = nullptr;
    ASSERT_EQ(driver::Driver().cuMemHostAlloc(&locked, bytes, 0), CUDA_SUCCESS);
    driver::Driver().cuMemFreeHost(locked);
  }
  // Six iterations, in each of which so much host memory is page-locked: that takes long.
  void Report(const IterationBegin& begin, std::size_t locked_bytes = 0) {
    for (int i = 0; i < 6; ++i) {
      job_.recorder().IterationBegan(nullptr, begin);
      if (locked_bytes > 0) PageLock(locked_bytes);
    }
    ASSERT_EQ(driver::Driver().cuCtxSynchronize(), CUDA_SUCCESS);
    for (int i = 0; i < 16; ++i) job_.ServeEvents();  // the driver is queried now and then
  }
  // The loop then makes up less than half of the events.
  void FindALoopAmongManyOtherEvents() {
    job_.job.RunIteration();
    job_.job.RunIteration();
    for (std::uint64_t other = 1000; other < 1200; ++other) {
      job_.recorder().Enqueued(other, {});
      job_.recorder().Settle();
      if (other % 30 == 29) job_.job.RunIteration();
    }
  }
  IterationBegin AtRest() const {
    return {.pattern = job_.adopted.back()->pattern().fingerprint, .is_planned = false};
  }

  static constexpr std::size_t kSlowlyLockedBytes = std::size_t{128} << 20;
  FakeJob job_;
};

// Regression: a new plan was measured by iterations of its predecessor's pattern.
TEST_F(PipelineTimeTest, PlanIsMeasuredByIterationsOfItsOwnPattern) {
  ASSERT_GT(job_.RunUntilPlanned(12), 0);
  const std::uint64_t own = job_.adopted.back()->pattern().fingerprint;

  // When timed iterations of another pattern are reported, nothing is known of this one's
  Report({.pattern = own + 1, .is_planned = true});
  EXPECT_EQ(job_.counts().iterations_followed, 5u);
  EXPECT_EQ(job_.counts().measured_iteration_ns, 0u);

  Report({.pattern = own, .is_planned = true});
  EXPECT_GT(job_.counts().measured_iteration_ns, 0u);
}

// Regression: on an H200, a plan from an iteration that a scan had lengthened replaced a faster
// one.
class PlanSuccessionPipelineTest : public PipelineTimeTest {
 protected:
  void FollowAPlan() {
    ASSERT_GT(job_.RunUntilPlanned(12), 0);
    first_ = job_.adopted.back();
    own_ = {.pattern = first_->pattern().fingerprint, .is_planned = true};
  }
  // As iterations took another time than predicted.
  void MeasureAgain() {
    for (int i = 0; i < 3; ++i) Report(own_);
  }
  void FollowASecondPlan() {
    for (int i = 0; i < 4; ++i) job_.job.RunIteration();
    ASSERT_EQ(job_.counts().plans_adopted, 2u);
    ASSERT_NE(job_.adopted.back(), first_);
    before_ = std::ssize(job_.adopted);
  }
  // Besides plans that move nothing, which are followed to compare.
  bool CameBack() const {
    return std::find(job_.adopted.begin() + before_, job_.adopted.end(), first_) !=
           job_.adopted.end();
  }
  void TakeLonger() {
    Report(own_, kSlowlyLockedBytes);
    Report(own_, kSlowlyLockedBytes);
  }

  std::shared_ptr<const scheduler::LivePlan> first_;
  IterationBegin own_;
  std::ptrdiff_t before_ = 0;  // adopted
};

TEST_F(PlanSuccessionPipelineTest, SecondPlanThatIsSlowerGivesWayToTheFirst) {
  FollowAPlan();
  MeasureAgain();
  FollowASecondPlan();
  TakeLonger();
  EXPECT_TRUE(CameBack());
}

// Regression: a plan for more memory than the job has came back, and stayed.
TEST_F(PlanSuccessionPipelineTest, PlanForAnotherBudgetDoesNotComeBack) {
  FollowAPlan();
  MeasureAgain();
  job_.budget_bytes = job_.budget_bytes * 3 / 4;
  FollowASecondPlan();
  TakeLonger();
  EXPECT_FALSE(CameBack());
}

TEST_F(PlanSuccessionPipelineTest, PlanForAnotherShareOfTheLinkDoesNotComeBack) {
  FollowAPlan();
  MeasureAgain();
  job_.link_permille = 500;
  FollowASecondPlan();
  TakeLonger();
  EXPECT_FALSE(CameBack());
}

// Regression: nothing compared it with no plan any more.
TEST_F(PlanSuccessionPipelineTest, PlanThatCameBackIsStillComparedWithNone) {
  FollowAPlan();
  MeasureAgain();
  FollowASecondPlan();
  TakeLonger();
  ASSERT_TRUE(CameBack());
  for (int i = 0; i < 4; ++i) Report(own_, kSlowlyLockedBytes);
  EXPECT_EQ(job_.adopted.back()->action_count(), 0) << "iterations without it are tried";
}

// Regression: a loop inside iterations of different lengths got a plan, which moved memory that
// other events needed at once.
TEST_F(PipelineTimeTest, LoopAmongManyOtherEventsGetsAPlanOnlyOnceItIsTheIteration) {
  FindALoopAmongManyOtherEvents();

  ASSERT_EQ(job_.adopted.size(), 1u);
  EXPECT_EQ(job_.adopted[0]->action_count(), 0);
  EXPECT_EQ(job_.counts().plans_adopted, 0u);
  EXPECT_STREQ(job_.counts().not_planned_because,
               "too many events lie outside the iteration that was found");

  Report(AtRest(), kSlowlyLockedBytes);
  for (int i = 0; i < 12; ++i) job_.job.RunIteration();
  EXPECT_EQ(job_.counts().plans_adopted, 1u);
  EXPECT_GT(job_.adopted.back()->action_count(), 0);
}

// Regression: such a plan was compared with iterations that the timing of each operation had
// lengthened, and so was tried.
TEST_F(PipelineTimeTest, PlanSlowerThanTheIterationsAtRestIsNotTried) {
  FindALoopAmongManyOtherEvents();

  Report(AtRest());
  for (int i = 0; i < 12; ++i) job_.job.RunIteration();

  EXPECT_EQ(job_.counts().plans_adopted, 0u);
  EXPECT_STREQ(job_.counts().not_planned_because,
               "its plan was no better than none, and was dropped");
}

}  // namespace
}  // namespace spillway::interposer
