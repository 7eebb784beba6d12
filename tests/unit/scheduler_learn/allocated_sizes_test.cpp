#include <gtest/gtest.h>

#include <vector>

#include "base/units.h"
#include "scheduler/learn/iteration_learner.h"

namespace spillway::scheduler {
namespace {

constexpr uint64_t kWeights = 1;

// Each of eight operations uses older weights and a buffer of the given size, allocated anew.
IterationLearner::Pattern LearnedFrom(const std::vector<int64_t>& content_bytes) {
  IterationLearner learner;
  learner.AddAlive(kWeights, 10 * base::kMebibyte, 9 * base::kMebibyte);
  IterationLearner::Pattern learned;
  uint64_t made = kWeights;
  for (int64_t bytes : content_bytes) {
    ++made;
    learner.Add(JobEvent::Allocate(made, 4 * base::kMebibyte, bytes));
    for (uint64_t kernel = 0; kernel < 8; ++kernel) {
      if (auto found =
              learner.Add(JobEvent::Operation(kernel, std::vector<JobTouch>{{kWeights}, {made}})))
        learned = found;
    }
    learner.Add(JobEvent::Free(made));
  }
  return learned;
}

TEST(AllocatedSizesTest, CopiesCountContentAndRecognitionCountsOccupiedMemory) {
  const auto pattern = LearnedFrom({3 * base::kMebibyte, 3 * base::kMebibyte, 3 * base::kMebibyte,
                                    3 * base::kMebibyte, 3 * base::kMebibyte});
  ASSERT_TRUE(pattern);
  ASSERT_EQ(pattern->buffers.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const bool is_weights = pattern->buffers[i].persistent;
    EXPECT_EQ(pattern->buffers[i].size_bytes, (is_weights ? 10 : 4) * base::kMebibyte);
    EXPECT_EQ(pattern->profile.buffers[i].size_bytes, (is_weights ? 9 : 3) * base::kMebibyte);
  }
}

TEST(AllocatedSizesTest, OtherContentSizesInEqualMemoryAreTheSameIteration) {
  const auto other =
      LearnedFrom({3 * base::kMebibyte, 3 * base::kMebibyte + 8, 3 * base::kMebibyte + 512,
                   3 * base::kMebibyte + 8, 3 * base::kMebibyte});
  const auto equal = LearnedFrom({3 * base::kMebibyte, 3 * base::kMebibyte, 3 * base::kMebibyte,
                                  3 * base::kMebibyte, 3 * base::kMebibyte});
  ASSERT_TRUE(other && equal);
  EXPECT_EQ(other->fingerprint, equal->fingerprint);
}

}  // namespace
}  // namespace spillway::scheduler
