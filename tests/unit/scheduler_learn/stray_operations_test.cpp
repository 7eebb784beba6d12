// Operations whose parameters hold stale words: they name other allocations in each iteration.
// PyTorch's reductions are such; one of them per step kept a GPT-2 with accumulation, of 1,266
// events, from ever being learned.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "scheduler/learn/iteration_follower.h"
#include "scheduler/learn/iteration_learner.h"
#include "scheduler/learn/period_candidates.h"

namespace spillway::scheduler {
namespace {

constexpr uint64_t kWeights = 1;
constexpr int64_t kBytes = int64_t{4} << 20;

// Each layer allocates an output, computes it from the weights, and frees the one before it.
class StrayJob {
 public:
  // `strays`: of the layers, from the last one on.
  StrayJob(int layers, int strays) : layers_(layers), strays_(strays) {
    learner_.AddAlive(kWeights, kBytes, kBytes);
  }

  void Iterate() {
    ++iteration_;
    uint64_t before = 0;
    for (int layer = 0; layer < layers_; ++layer) {
      const uint64_t output = ++last_;
      Add(JobEvent::Allocate(output, kBytes));
      Compute(layer, before, output);
      if (before != 0) Add(JobEvent::Free(before));
      before = output;
    }
    Add(JobEvent::Free(before));
  }

  std::vector<IterationLearner::Pattern> learned;
  IterationFollower* follower = nullptr;
  int64_t followed = 0;
  bool leaves_strays_out = false;

 private:
  void Compute(int layer, uint64_t before, uint64_t output) {
    std::vector<JobTouch> touches = {{kWeights, false, true}, {output, true, false}};
    uint64_t shape = static_cast<uint64_t>(100 + layer);
    if (layer + strays_ >= layers_) {
      if (leaves_strays_out) return;
      shape = 1'000'000 + iteration_;
      if (before != 0 && iteration_ % 2 == 0) touches.push_back({before});
    }
    Add(JobEvent::Operation(shape, touches));
  }
  void Add(const JobEvent& event) {
    if (auto pattern = learner_.Add(event)) learned.push_back(std::move(pattern));
    if (follower != nullptr) followed += follower->Observe(event).position >= 0;
  }

  const int layers_, strays_;
  IterationLearner learner_;
  uint64_t last_ = kWeights, iteration_ = 0;
};

int64_t StraysIn(const IterationPattern& pattern) {
  return std::count_if(pattern.events.begin(), pattern.events.end(),
                       [](const PatternEvent& event) { return event.token == kAnyToken; });
}

TEST(StrayOperationsTest, LongIterationIsLearnedDespiteOne) {
  StrayJob job(150, 1);
  for (int i = 0; i < 5; ++i) job.Iterate();

  ASSERT_EQ(job.learned.size(), 1u);
  const IterationPattern& pattern = *job.learned[0];
  EXPECT_EQ(pattern.size(), 300);
  EXPECT_EQ(StraysIn(pattern), 1);
  // Then its touches are those of every iteration: the weights and its output.
  for (const PatternEvent& event : pattern.events) {
    if (event.token == kAnyToken) {
      EXPECT_EQ(event.touch_count, 2);
    }
  }
}

// PyTorch's GPT-2 of four layers: a reduction of each layer's backward pass.
TEST(StrayOperationsTest, LongIterationIsLearnedDespiteOnePerLayer) {
  StrayJob job(150, 4);
  for (int i = 0; i < 6; ++i) job.Iterate();

  ASSERT_GE(job.learned.size(), 1u);
  EXPECT_EQ(job.learned.back()->size(), 300);
  EXPECT_EQ(StraysIn(*job.learned.back()), 4);
}

TEST(StrayOperationsTest, MoreThanOneInSoManyEventsIsNoIteration) {
  for (const auto& [layers, strays] : {std::pair(150, 5), std::pair(120, 1), std::pair(300, 10)}) {
    StrayJob job(layers, strays);
    for (int i = 0; i < 6; ++i) job.Iterate();
    for (const auto& pattern : job.learned) EXPECT_LT(pattern->size(), 2 * layers) << layers;
  }
  static_assert(kTokensPerStray == 64 && kShortestWithStrays == 256);
}

TEST(StrayOperationsTest, FollowerTakesAnyOperationInItsPlace) {
  StrayJob job(150, 1);
  for (int i = 0; i < 5; ++i) job.Iterate();
  ASSERT_EQ(job.learned.size(), 1u);
  IterationFollower follower(job.learned[0]);
  job.follower = &follower;
  job.Iterate();
  job.Iterate();

  job.followed = 0;
  job.Iterate();

  EXPECT_EQ(job.followed, 300);
  EXPECT_EQ(follower.last_misses(), 0);
}

TEST(StrayOperationsTest, FollowerGoesOnWithoutIt) {
  StrayJob job(150, 1);
  for (int i = 0; i < 5; ++i) job.Iterate();
  ASSERT_EQ(job.learned.size(), 1u);
  IterationFollower follower(job.learned[0]);
  job.follower = &follower;
  job.Iterate();
  job.Iterate();
  job.leaves_strays_out = true;

  job.followed = 0;
  job.Iterate();
  job.Iterate();

  EXPECT_GE(job.followed, 2 * 298);
  EXPECT_EQ(follower.tracking(), Tracking::kFollowing);
}

}  // namespace
}  // namespace spillway::scheduler
