// Planned drops of recomputable outputs, over the simulated driver.
//
// The iteration is learned from the job's own recording; the plan is made by hand.
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "tests/unit/interposer/learned_iteration.h"
#include "tests/unit/interposer/recompute_job.h"

namespace spillway::interposer {
namespace {

using scheduler::ActionKind;
using scheduler::IterationPattern;
using scheduler::LivePlan;
using scheduler::Operation;

constexpr size_t kBudgetBytes = (kBuffers + 1) * kBufferBytes;
constexpr int kLearningIterations = 24;  // so short an iteration needs many repetitions

// An iteration makes buffer 1 from buffer 0 and, later, buffer 2 from buffer 1. In between, one
// buffer too many is in use.
class RecomputePlanTest : public RecomputeTest {
 protected:
  void SetUp() override {
    RecomputeTest::SetUp();
    MakeLearningJob(size_t{1} << 30);
  }
  void MakeLearningJob(size_t host_limit_bytes) {
    job_->ReleaseAll();
    job_ = std::make_unique<JobMemory>(context_, 0, kBudgetBytes, host_limit_bytes,
                                       ParkChoice::kOff, LearnChoice::kAlways);
    for (CUdeviceptr& buffer : buffers_)
      ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &buffer), CUDA_SUCCESS);
    Set(buffers_[0], 5, kWords);
  }
  void Iterate(int times) {
    for (int i = 0; i < times; ++i) {
      Set(buffers_[4], 1, kWords);
      Derive(1, 0);
      Set(buffers_[3], 1, kWords);
      Derive(2, 1);
    }
  }

  // Buffer 0 is freed while buffer 1 is being made, and memory is allocated before buffer 1 is
  // used.
  void IterateAndFreeTheInput(int times) {
    is_free_memory_used_ = false;
    for (int i = 0; i < times; ++i) {
      Busy(stream_);
      Derive(1, 0);
      ASSERT_TRUE(job_->allocations().Free(buffers_[0]));
      Set(buffers_[4], 1, kWords);
      OverwriteFreeMemory();
      Set(buffers_[3], 1, kWords);
      Derive(2, 1);
      ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &buffers_[0]), CUDA_SUCCESS);
      Set(buffers_[0], 5, kWords);
    }
  }

  // The same, with one more use of buffer 1 before it has to wait.
  void IterateAndUseBetween(int times) {
    is_free_memory_used_ = false;
    for (int i = 0; i < times; ++i) {
      for (const size_t buffer : {3, 4})
        ASSERT_TRUE(job_->allocations().Free(buffers_[buffer]));  // buffer 0 is freed here
      for (const size_t buffer : {3, 4})
        ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &buffers_[buffer]), CUDA_SUCCESS);
      Set(buffers_[0], 5, kWords);
      Busy(stream_);
      Derive(1, 0);
      ASSERT_TRUE(job_->allocations().Free(buffers_[0]));
      CUdeviceptr other = 0;
      ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &other), CUDA_SUCCESS);
      ASSERT_TRUE(job_->allocations().Free(other));
      Derive(3, 1);
      OverwriteFreeMemory();
      Derive(2, 1);
      ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &buffers_[0]), CUDA_SUCCESS);
    }
  }

  // The operation whose output a later operation uses.
  static std::optional<int32_t> MakerOf(const IterationPattern& pattern, int32_t* reader) {
    const auto& operations = pattern.profile.operations;
    const auto makes = [](const Operation& it) {
      return it.reads.size() == 1 && it.writes.size() == 1 && it.reads[0] != it.writes[0];
    };
    for (size_t i = 0; i < operations.size(); ++i) {
      for (size_t j = i + 1; j < operations.size(); ++j) {
        if (!makes(operations[i]) || !makes(operations[j]) ||
            operations[i].writes != operations[j].reads)
          continue;
        *reader = static_cast<int32_t>(j);
        return static_cast<int32_t>(i);
      }
    }
    return std::nullopt;
  }
  std::shared_ptr<const LivePlan> DropsWhatIsMade() {
    const auto pattern = LearnedIteration(job_.get());
    int32_t reader = 0;
    const auto maker = pattern ? MakerOf(*pattern, &reader) : std::nullopt;
    return maker ? Drops(pattern, *maker, *maker, reader) : nullptr;
  }
  // The maker's output is dropped after one operation, and recomputed before another.
  static std::shared_ptr<const LivePlan> Drops(
      const std::shared_ptr<const IterationPattern>& pattern, int32_t maker, int32_t behind,
      int32_t before) {
    scheduler::Plan plan = scheduler::PlanWithoutActions(pattern->profile);
    plan.steps.insert(plan.steps.begin() + before, {.operation = {maker}, .recomputes = true});
    plan.actions.push_back(
        {.kind = ActionKind::kDrop,
         .buffer = pattern->profile.operations[static_cast<size_t>(maker)].writes.front(),
         .step = behind});
    auto live = LivePlan::Make(pattern, plan, 1'000'000, kBudgetBytes);
    return live ? std::make_shared<const LivePlan>(std::move(*live)) : nullptr;
  }
  // Learns from such iterations, then follows a plan that drops buffer 1 as soon as it is made,
  // until the operation is proved.
  void FollowDrops(const std::function<void(int)>& iterate) {
    iterate(kLearningIterations);
    const auto plan = DropsWhatIsMade();
    ASSERT_TRUE(plan);
    job_->plan().Adopt(plan);
    iterate(3);
    ASSERT_EQ(Count().proved_operations, 1u);
  }
};

TEST_F(RecomputePlanTest, OutputDroppedRightAfterItsCallIsNotCopied) {
  ASSERT_NO_FATAL_FAILURE(FollowDrops([this](int times) { Iterate(times); }));
  const Counters before = Count();

  Iterate(4);

  EXPECT_EQ(Count().recompute_drops - before.recompute_drops, 4u);
  EXPECT_EQ(Count().planned_departures - before.planned_departures, 4u);
  EXPECT_EQ(Count().recomputes - before.recomputes, 4u);
  EXPECT_EQ(Count().demand_recomputes, before.demand_recomputes);
  EXPECT_EQ(Count().planned_offloaded_bytes, before.planned_offloaded_bytes);
  ExpectAll(1, 15);
  ExpectAll(2, 45);
}

TEST_F(RecomputePlanTest, PlannedRecomputationKeepsItsFreedInputUntilThen) {
  // Given a plan that drops buffer 1 and recomputes it after the free of buffer 0
  ASSERT_NO_FATAL_FAILURE(FollowDrops([this](int times) { IterateAndFreeTheInput(times); }));
  const Counters before = Count();

  IterateAndFreeTheInput(4);

  // Then allocations in between do not force an early recomputation, and the first allocation
  // afterwards releases the input
  EXPECT_EQ(Count().recompute_drops - before.recompute_drops, 4u);
  EXPECT_EQ(Count().recomputes - before.recomputes, 4u);
  EXPECT_EQ(Count().demand_recomputes, before.demand_recomputes);
  EXPECT_EQ(Count().wanted_bytes, before.wanted_bytes);
  ExpectAll(1, 15);
  ExpectAll(2, 45);
}

TEST_F(RecomputePlanTest, InputFreedBeforeTheDropIsKeptToo) {
  // Given a plan that drops buffer 1 after its use, when buffer 0 is already freed, and recomputes
  // it before the next
  IterateAndUseBetween(kLearningIterations);
  const auto pattern = LearnedIteration(job_.get());
  int32_t reader = 0;
  const auto maker = pattern ? MakerOf(*pattern, &reader) : std::nullopt;
  ASSERT_TRUE(maker);
  const auto& operations = pattern->profile.operations;
  const auto last =
      std::find_if(operations.begin() + reader + 1, operations.end(), [&](const Operation& it) {
        return it.reads == operations[static_cast<size_t>(reader)].reads;
      });
  ASSERT_NE(last, operations.end());
  const auto plan = Drops(pattern, *maker, reader, static_cast<int32_t>(last - operations.begin()));
  ASSERT_TRUE(plan);
  job_->plan().Adopt(plan);
  IterateAndUseBetween(3);
  ASSERT_GE(Count().proved_operations, 1u);
  const Counters before = Count();

  IterateAndUseBetween(4);

  EXPECT_EQ(Count().recompute_drops - before.recompute_drops, 4u);
  EXPECT_EQ(Count().recomputes - before.recomputes, 4u);
  EXPECT_EQ(Count().demand_recomputes, before.demand_recomputes);
  EXPECT_EQ(Count().planned_offloaded_bytes, before.planned_offloaded_bytes);
  EXPECT_EQ(Count().wanted_bytes, before.wanted_bytes);
  ExpectAll(1, 15);
  ExpectAll(2, 45);
}

// Regression: a plan referred to the allocation that it was learned with. After a new allocation,
// its buffer was never dropped again.
TEST_F(RecomputePlanTest, BufferAllocatedAnewIsDroppedAsBefore) {
  ASSERT_NO_FATAL_FAILURE(FollowDrops([this](int times) { Iterate(times); }));
  for (const size_t buffer : {1, 2}) {
    ASSERT_TRUE(job_->allocations().Free(buffers_[buffer]));
    ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &buffers_[buffer]), CUDA_SUCCESS);
  }
  const Counters before = Count();

  Iterate(4);

  EXPECT_EQ(Count().recompute_drops - before.recompute_drops, 4u);
  EXPECT_EQ(Count().demand_recomputes, before.demand_recomputes);
  ExpectAll(1, 15);
  ExpectAll(2, 45);
}

TEST_F(RecomputePlanTest, HeldInputIsFreedMemoryForTheProgram) {
  // Given an input that the program has freed and that a plan holds
  ASSERT_NO_FATAL_FAILURE(FollowDrops([this](int times) { IterateAndFreeTheInput(times); }));
  Derive(1, 0);
  ASSERT_TRUE(job_->allocations().Free(buffers_[0]));
  OverwriteFreeMemory();
  const Counters before = Count();
  ASSERT_EQ(before.recompute_drops - before.recomputes, 1u);

  // Then queries and copies are answered as for freed memory, and it is not freed twice
  EXPECT_FALSE(job_->view().Describe(buffers_[0]));
  EXPECT_TRUE(job_->view().IsFreed(buffers_[0]));
  EXPECT_FALSE(job_->allocations().Free(buffers_[0]));
  Addresses addresses;
  addresses.push_back(buffers_[0]);
  TouchSet copy;
  EXPECT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kMayWrite, &copy),
            CUDA_ERROR_INVALID_VALUE);
  // And a launch that still has the address among its parameters causes no recomputation.
  TouchSet launch;
  EXPECT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kLaunches, &launch),
            CUDA_SUCCESS);
  job_->calls().End(&launch, Effect::kLaunches);
  EXPECT_EQ(Count().recomputes, before.recomputes);
  ExpectAll(1, 15);
}

// The program also does other things at random moments; the bytes must be as without a plan.
class DriftingRecomputeTest : public RecomputePlanTest,
                              public testing::WithParamInterface<unsigned> {
 protected:
  void Follow() {
    is_free_memory_used_ = false;
    ASSERT_NO_FATAL_FAILURE(FollowDrops([this](int times) { IterateAndFreeTheInput(times); }));
    Fill(0, 5);
    for (const size_t buffer : {1, 2, 3, 4}) Fill(buffer, static_cast<int>(buffer));
  }
  bool IsOneOf(unsigned chances) { return dice_() % chances == 0; }
  void Fill(size_t buffer, int value) {
    Set(buffers_[buffer], static_cast<unsigned>(value), kWords);
    values_[buffer] = value;
  }
  void Make(size_t y, size_t x) {
    Derive(y, x);
    values_[y] = 3 * values_[x];
  }
  // Sometimes by another thread; another allocation takes the memory at once or later.
  void FreeOne(size_t buffer) {
    const auto free = [&] { EXPECT_TRUE(job_->allocations().Free(buffers_[buffer])); };
    IsOneOf(2) ? free() : std::thread(free).join();
    buffers_[buffer] = 0;
    if (IsOneOf(2)) Have(buffer);
  }
  void Have(size_t buffer) {
    if (buffers_[buffer] != 0) return;
    ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &buffers_[buffer]), CUDA_SUCCESS);
    Fill(buffer, 100 + static_cast<int>(dice_() % 100));
  }
  void Drift() {
    const size_t buffer = dice_() % kBuffers;
    Have(buffer);
    switch (dice_() % 5) {
      case 0:
        return Fill(buffer, static_cast<int>(dice_() % 100));
      case 1:
        return FreeOne(buffer);
      case 2:
        return OverwriteFreeMemory();
      case 3:
        job_->grants().SetBudget(IsOneOf(2) ? kBudgetBytes : kBudgetBytes - 2 * kBufferBytes);
        return;
      default:
        Driver().cuStreamSynchronize(stream_);
        return ExpectAll(buffer, values_[buffer], IsOneOf(2) ? stream_ : other_stream_);
    }
  }
  void MayDrift() {
    while (IsOneOf(4)) Drift();
    for (size_t buffer = 0; buffer < kBuffers; ++buffer) Have(buffer);
  }

  std::mt19937 dice_{GetParam()};
  int values_[kBuffers] = {};
};

TEST_P(DriftingRecomputeTest, BytesStayRightMemoryIsReturnedAndDropsContinue) {
  Follow();
  job_->grants().SetBudget(kBudgetBytes);
  const size_t wanted_bytes = Count().wanted_bytes;
  for (int iteration = 0; iteration < 40 && !HasFailure(); ++iteration) {
    Make(1, 0);
    if (IsOneOf(8)) MayDrift();
    FreeOne(0);
    Have(4);
    Fill(4, 1);
    OverwriteFreeMemory();
    if (IsOneOf(4)) {
      MayDrift();
    } else if (buffers_[0] != 0) {
      EXPECT_TRUE(job_->allocations().Free(buffers_[0]));
      buffers_[0] = 0;
    }
    Fill(3, 1);
    Make(2, 1);
    for (size_t buffer = 0; buffer < kBuffers; ++buffer) Have(buffer);
    Fill(0, 5);
  }
  for (size_t buffer = 0; buffer < kBuffers; ++buffer) ExpectAll(buffer, values_[buffer]);
  OverwriteFreeMemory();
  EXPECT_EQ(Count().wanted_bytes, wanted_bytes);

  // And once the program repeats its iteration, the planned drops happen again, except perhaps the
  // first.
  job_->grants().SetBudget(kBudgetBytes);
  const Counters before = Count();
  IterateAndFreeTheInput(5);
  EXPECT_GE(Count().recompute_drops, before.recompute_drops + 4);
  ExpectAll(1, 15);
  ExpectAll(2, 45);
}
INSTANTIATE_TEST_SUITE_P(Seeds, DriftingRecomputeTest,
                         testing::Range(1u, 11u));  // seed 9 frees a dropped buffer

TEST_F(RecomputePlanTest, FreedInputIsNotHeldWithoutEnoughMemory) {
  // Given an input held for a plan, and host memory for two buffers in transit and one evicted
  MakeLearningJob(3 * kBufferBytes);
  ASSERT_NO_FATAL_FAILURE(FollowDrops([this](int times) { IterateAndFreeTheInput(times); }));
  Derive(1, 0);
  ASSERT_TRUE(job_->allocations().Free(buffers_[0]));
  OverwriteFreeMemory();
  const Counters before = Count();
  ASSERT_EQ(before.recompute_drops - before.recomputes, 1u);

  // When an allocation takes as much as is free without the input
  CUdeviceptr more[3] = {};
  for (CUdeviceptr& each : more)
    ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &each), CUDA_SUCCESS);

  EXPECT_EQ(Count().refused_allocations, before.refused_allocations);
  EXPECT_EQ(Count().demand_recomputes, before.demand_recomputes + 1);
  ExpectAll(1, 15);
}

}  // namespace
}  // namespace spillway::interposer
