// Iterations that consist of loops: the whole is learned, whatever its parts repeat.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "scheduler/learn/iteration_learner.h"

namespace spillway::scheduler {
namespace {

// The passes of a loop are equal and touch the same memory. Each loop is first learned as an
// iteration, until no event is unknown.
TEST(NestedLoopsTest, IterationOfLoopsOnlyIsFoundAroundThem) {
  IterationLearner learner;
  std::vector<IterationLearner::Pattern> learned;
  const auto add = [&](const JobEvent& event) {
    if (auto pattern = learner.Add(event)) learned.push_back(std::move(pattern));
  };
  for (uint64_t id = 1; id <= 7; ++id) add(JobEvent::Allocate(id, 1 << 20));
  const auto iterate = [&] {
    for (uint64_t loop = 1; loop <= 6; ++loop) {
      for (int pass = 0; pass < 40; ++pass) {
        for (uint64_t kernel = 0; kernel < 4; ++kernel)
          add(JobEvent::Operation(10 * loop + kernel, std::vector<JobTouch>{{loop}, {7}}));
      }
    }
  };
  for (int i = 0; i < 3; ++i) iterate();
  ASSERT_FALSE(learned.empty());
  EXPECT_EQ(learned.back()->size(), 6 * 40 * 4);
  const size_t known = learned.size();
  for (int i = 0; i < 3; ++i) iterate();
  EXPECT_EQ(learned.size(), known);
}

// A whole epoch repeats, too; but a batch with constant touches stays the iteration.
TEST(NestedLoopsTest, OccasionalLoggingMakesNoLongerIteration) {
  IterationLearner learner;
  std::vector<IterationLearner::Pattern> learned;
  const auto add = [&](const JobEvent& event) {
    if (auto pattern = learner.Add(event)) learned.push_back(std::move(pattern));
  };
  for (uint64_t id = 1; id <= 40; ++id) add(JobEvent::Allocate(id, 1 << 20));
  for (int step = 0; step < 200; ++step) {
    for (uint64_t kernel = 1; kernel <= 40; ++kernel)
      add(JobEvent::Operation(kernel, std::vector<JobTouch>{{kernel}}));
    if (step % 5 == 4) add(JobEvent::Operation(99, std::vector<JobTouch>{{3}}));
  }
  ASSERT_EQ(learned.size(), 1u);
  EXPECT_EQ(learned[0]->size(), 40);
}

}  // namespace
}  // namespace spillway::scheduler
