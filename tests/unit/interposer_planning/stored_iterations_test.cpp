#include "interposer/planning/stored_iterations.h"

#include <gtest/gtest.h>

#include "tests/unit/interposer_planning/small_job.h"

namespace spillway::interposer {
namespace {

using scheduler::JobEvent;

constexpr std::uint64_t kWeightsNow = 77;  // the weights' allocation in this process

// The small job's first operations, whose touches only the weights show.
class StoredIterationsTest : public ::testing::Test {
 protected:
  StoredIterationsTest() { stored_.Begin({SmallStoredPlan()}); }

  void Forward(std::uint64_t layers) {
    for (std::uint64_t layer = 0; layer < layers && !recognised_; ++layer) {
      const std::uint64_t activation = 100 + layer;
      Observe(JobEvent::Allocate(activation, kActivationBytes));
      std::vector<scheduler::JobTouch> touches{{kWeightsNow, false}};
      if (layer > 0) touches.push_back({activation - 1, false});
      touches.push_back({activation, true, false});
      Observe(JobEvent::Operation(100 + layer, touches));
    }
  }
  void Foreign(int events) {
    for (int i = 0; i < events; ++i) Observe(JobEvent::Operation(9999, {}));
  }
  void Observe(const JobEvent& event) {
    if (!recognised_) recognised_ = stored_.Observe(event);
  }

  StoredIterations stored_;
  std::optional<StoredIterations::Recognised> recognised_;
};

TEST_F(StoredIterationsTest, IterationIsRecognisedByHalfOfItsEvents) {
  Forward(4);
  EXPECT_FALSE(recognised_);  // eight events of eighteen
  Forward(kLayers);
  ASSERT_TRUE(recognised_);
  EXPECT_EQ(recognised_->stored.budget_bytes, kPeakBytes - 1);
}

TEST_F(StoredIterationsTest, PersistentBuffersAreAllocationsOfThisProcess) {
  Forward(kLayers);
  ASSERT_TRUE(recognised_);
  EXPECT_EQ(recognised_->pattern->buffers[0].allocation, kWeightsNow);
}

TEST_F(StoredIterationsTest, FewForeignEventsDoNotGiveItUp) {
  Foreign(4 * SmallPattern().size() - 20);
  Forward(kLayers);
  EXPECT_TRUE(recognised_);
}

TEST_F(StoredIterationsTest, ManyForeignEventsGiveItUp) {
  Foreign(4 * SmallPattern().size() + 1);
  Forward(kLayers);
  EXPECT_FALSE(recognised_);
}

}  // namespace
}  // namespace spillway::interposer
