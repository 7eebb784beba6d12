// A job's memory follows a plan, over the simulated driver.
//
// The iteration is learned from the job's own recording; the plan is made by hand.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/job_memory.h"
#include "tests/unit/interposer/learned_iteration.h"

namespace spillway::interposer {
namespace {

using driver::Driver;
using scheduler::ActionKind;
using scheduler::IterationPattern;
using scheduler::LivePlan;

constexpr size_t kPlanBuffers = 4;
constexpr size_t kPlanBufferBytes = 16 * kMiB;
constexpr size_t kWordsPerStep = 1024;
constexpr int kLearningIterations = 24;  // so short an iteration needs many repetitions

// An iteration writes four buffers in turn, each time at another offset. Three of the buffers fit.
class JobMemoryPlanTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Driver().cuInit(0), CUDA_SUCCESS) << "SPILLWAY_DRIVER names the simulated driver";
    ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    job_ = std::make_unique<JobMemory>(context_, 0, 3 * kPlanBufferBytes, size_t{1} << 30,
                                       ParkChoice::kOff, LearnChoice::kAlways);
    for (CUdeviceptr& buffer : buffers_)
      ASSERT_EQ(job_->allocations().Allocate(kPlanBufferBytes, &buffer), CUDA_SUCCESS);
  }
  void TearDown() override {
    Driver().cuCtxSynchronize();
    job_->ReleaseAll();
    Driver().cuStreamDestroy_v2(stream_);
    Driver().cuDevicePrimaryCtxRelease_v2(0);
  }

  void Step(size_t buffer, Shape shape = 7) {
    StepWith(buffer, shape, [] {});
  }
  // Calls `when_made` right after the launch.
  template <class WhenMade>
  void StepWith(size_t buffer, Shape shape, WhenMade when_made) {
    Addresses addresses;
    addresses.push_back(buffers_[buffer]);
    TouchSet set;
    set.shape = MixShape(shape, buffer);
    ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kLaunches, &set),
              CUDA_SUCCESS);
    const CUdeviceptr place = buffers_[buffer] + written_[buffer] * kWordsPerStep * 4;
    Driver().cuMemsetD32Async(place, Value(buffer, written_[buffer]), kWordsPerStep, stream_);
    ++written_[buffer];
    when_made();
    job_->calls().End(&set, Effect::kLaunches);
  }
  void Iterate(int times) {
    for (int i = 0; i < times; ++i) {
      for (size_t buffer = 0; buffer < kPlanBuffers; ++buffer) Step(buffer);
    }
  }
  static unsigned int Value(size_t buffer, size_t time) {
    return static_cast<unsigned int>(buffer * 1000 + time + 1);
  }

  // Each buffer is evicted after its step, and prefetched one step ahead.
  static scheduler::Plan Rotation(const IterationPattern& pattern) {
    scheduler::Plan plan = scheduler::PlanWithoutActions(pattern.profile);
    const auto steps = static_cast<int32_t>(plan.steps.size());
    for (int32_t step = 0; step < steps; ++step) {
      const auto of = [&](int32_t s) {
        return pattern.profile.operations[static_cast<size_t>(s % steps)].writes.front();
      };
      plan.actions.push_back({.kind = ActionKind::kPrefetch, .buffer = of(step + 1), .step = step});
      plan.actions.push_back({.kind = ActionKind::kOffload, .buffer = of(step), .step = step});
    }
    return plan;
  }
  std::shared_ptr<const LivePlan> LiveRotation() {
    const auto pattern = LearnedIteration(job_.get());
    if (!pattern) return nullptr;
    auto live = LivePlan::Make(pattern, Rotation(*pattern), 1'000'000, 3 * kPlanBufferBytes);
    return live ? std::make_shared<const LivePlan>(std::move(*live)) : nullptr;
  }

  void ExpectTheBytes() {
    for (size_t buffer = 0; buffer < kPlanBuffers; ++buffer) {
      Addresses addresses;
      addresses.push_back(buffers_[buffer]);
      TouchSet set;
      ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kReads, &set),
                CUDA_SUCCESS);
      std::vector<unsigned int> words(written_[buffer] * kWordsPerStep);
      Driver().cuMemcpyDtoHAsync_v2(words.data(), buffers_[buffer], words.size() * 4, stream_);
      Driver().cuStreamSynchronize(stream_);
      job_->calls().End(&set, Effect::kReads);
      for (size_t i = 0; i < words.size(); ++i)
        ASSERT_EQ(words[i], Value(buffer, i / kWordsPerStep))
            << "buffer " << buffer << " word " << i;
    }
  }
  Counters Count() { return job_->view().Read().counters; }

  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::unique_ptr<JobMemory> job_;
  CUdeviceptr buffers_[kPlanBuffers] = {};
  size_t written_[kPlanBuffers] = {};
};

TEST_F(JobMemoryPlanTest, FollowedPlanNeedsNoDemandFetch) {
  Iterate(kLearningIterations);
  const auto plan = LiveRotation();
  ASSERT_TRUE(plan);
  job_->plan().Adopt(plan);
  Iterate(3);

  const Counters before = Count();
  Iterate(8);
  const Counters after = Count();

  EXPECT_EQ(after.demand_fetches, before.demand_fetches);
  EXPECT_EQ(after.prefetch_hits - before.prefetch_hits, 8 * kPlanBuffers);
  EXPECT_EQ(after.planned_departures - before.planned_departures, 8 * kPlanBuffers);
  EXPECT_EQ(after.planned_iterations - before.planned_iterations, 8u);
  ExpectTheBytes();
}

TEST_F(JobMemoryPlanTest, PrefetchGetsMemoryBeforeLaterAllocations) {
  Iterate(kLearningIterations);
  const auto plan = LiveRotation();
  ASSERT_TRUE(plan);
  job_->plan().Adopt(plan);
  Iterate(3);
  ASSERT_TRUE(job_->charges().Charge(2 * kPlanBufferBytes));
  Step(0);
  const Counters before = Count();
  Driver().cuCtxSynchronize();

  CUdeviceptr later = 0;
  ASSERT_EQ(job_->allocations().Allocate(kPlanBufferBytes, &later), CUDA_SUCCESS);
  EXPECT_EQ(Count().prefetches, before.prefetches + 1);
  Step(1);
  EXPECT_EQ(Count().demand_fetches, before.demand_fetches);

  ASSERT_TRUE(job_->allocations().Free(later));
  job_->charges().Discharge(2 * kPlanBufferBytes);
  ExpectTheBytes();
}

// Regression: a convolution of VGG-16 started 3.5 ms late, because memory for a concurrent restore
// was mapped first.
TEST_F(JobMemoryPlanTest, LaunchIsMadeBeforeMemoryIsMappedForPrefetches) {
  Iterate(kLearningIterations);
  const auto plan = LiveRotation();
  ASSERT_TRUE(plan);
  job_->plan().Adopt(plan);
  Iterate(3);
  // Given a step whose buffer is resident and that prefetches the next one's, with enough memory
  Driver().cuCtxSynchronize();
  job_->plan().RestoreDuringWait({});
  const Counters before = Count();
  std::uint64_t when_launched = 0;
  StepWith(0, 7, [&] { when_launched = Count().prefetches; });

  EXPECT_EQ(when_launched, before.prefetches);
  EXPECT_EQ(Count().prefetches, before.prefetches + 1);
  Step(1);
  EXPECT_EQ(Count().demand_fetches, before.demand_fetches);
}

TEST_F(JobMemoryPlanTest, UnplannedEventsAreServedAndThePlanContinues) {
  Iterate(kLearningIterations);
  const auto plan = LiveRotation();
  ASSERT_TRUE(plan);
  job_->plan().Adopt(plan);
  Iterate(3);

  for (int i = 0; i < 6; ++i) {
    Step(2, 99);
    Step(0, 98);
    Iterate(1);
  }
  const Counters before = Count();
  Iterate(4);

  EXPECT_GE(Count().prefetch_hits - before.prefetch_hits, 3 * kPlanBuffers);
  ExpectTheBytes();
}

TEST_F(JobMemoryPlanTest, JobThatLeavesItsPatternKeepsItsBytes) {
  Iterate(kLearningIterations);
  const auto plan = LiveRotation();
  ASSERT_TRUE(plan);
  job_->plan().Adopt(plan);
  Iterate(2);

  for (size_t i = 0; i < 40; ++i) Step(i * 7 % kPlanBuffers, 50 + i % 5);

  ExpectTheBytes();
  EXPECT_LE(job_->view().Read().held_peak_bytes, 3 * kPlanBufferBytes);
}

TEST_F(JobMemoryPlanTest, ShrunkBudgetIsMetAndThePlanStaysAHint) {
  Iterate(kLearningIterations);
  const auto plan = LiveRotation();
  ASSERT_TRUE(plan);
  job_->plan().Adopt(plan);
  Iterate(3);

  job_->grants().SetBudget(2 * kPlanBufferBytes);
  EXPECT_LE(job_->view().Read().held_bytes, 2 * kPlanBufferBytes);
  Iterate(5);
  EXPECT_LE(job_->view().Read().held_bytes, 2 * kPlanBufferBytes);
  job_->grants().SetBudget(4 * kPlanBufferBytes);
  Iterate(5);

  EXPECT_EQ(Count().budget_changes, 2u);
  ExpectTheBytes();
}

TEST_F(JobMemoryPlanTest, BufferFreedWhileQueuedForPrefetchIsForgotten) {
  Iterate(kLearningIterations);
  const auto plan = LiveRotation();
  ASSERT_TRUE(plan);
  job_->plan().Adopt(plan);
  Iterate(3);

  ASSERT_TRUE(job_->allocations().Free(buffers_[3]));
  ASSERT_EQ(job_->allocations().Allocate(kPlanBufferBytes, &buffers_[3]), CUDA_SUCCESS);
  written_[3] = 0;
  Iterate(6);

  ExpectTheBytes();
}

}  // namespace
}  // namespace spillway::interposer
