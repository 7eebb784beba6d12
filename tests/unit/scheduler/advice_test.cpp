#include "scheduler/plan/advice.h"

#include <gtest/gtest.h>

namespace spillway::scheduler {
namespace {

// 1,000 ns plus 100 ns per sample; 100,000 bytes plus 10,000 per sample, of which 5,000 per sample
// must be resident.
BatchObservation Batch(int64_t batch) {
  return {batch, 1000 + 100 * batch, 100'000 + 10'000 * batch, 100'000 + 5'000 * batch};
}

AdviceRequest Request(int64_t budget_bytes, int64_t link_bytes_per_second) {
  AdviceRequest request;
  request.observations = {Batch(8), Batch(16)};
  request.device.to_host_bytes_per_second = request.device.to_device_bytes_per_second =
      link_bytes_per_second;
  request.budget_bytes = budget_bytes;
  return request;
}

TEST(AdviceTest, WithoutALinkTheLargestBatchThatFitsIsBest) {
  const base::Result<Advice> advice = Advise(Request(500'000, 1));

  ASSERT_TRUE(advice) << advice.text();
  EXPECT_EQ(advice->batch_size, 40);
  EXPECT_EQ(advice->iteration_ns, 5000);
  EXPECT_EQ(advice->moved_bytes, 0);
  EXPECT_EQ(advice->most_batch_without_moving, 40);
  EXPECT_EQ(advice->most_batch, 80);
}

TEST(AdviceTest, WithAFastLinkTheBatchGrowsToTheFloor) {
  const base::Result<Advice> advice = Advise(Request(500'000, 1'000'000'000'000));

  ASSERT_TRUE(advice) << advice.text();
  EXPECT_EQ(advice->batch_size, 80);
  EXPECT_EQ(advice->waiting_ns, 0);
  EXPECT_EQ(advice->moved_bytes, 400'000);
}

TEST(AdviceTest, StopsWhereStallsCancelTheGain) {
  // Given a link that hides the excess of 56 samples, but not that of 80.
  const base::Result<Advice> advice = Advise(Request(500'000, 80'000'000'000));

  ASSERT_TRUE(advice) << advice.text();
  EXPECT_EQ(advice->batch_size, 56);
}

TEST(AdviceTest, LearningRateGrowsWithTheBatch) {
  AdviceRequest request = Request(500'000, 1);
  request.base_batch = 8;
  request.learning_rate_nano = 100'000'000;

  EXPECT_EQ(Advise(request)->learning_rate_nano, 500'000'000);
}

TEST(AdviceTest, RefusesUselessObservations) {
  AdviceRequest same = Request(500'000, 1);
  same.observations = {Batch(8), Batch(8)};
  AdviceRequest negative = Request(500'000, 1);
  negative.observations[0].iteration_ns = -1;

  EXPECT_FALSE(Advise(same).ok());
  EXPECT_FALSE(Advise(negative).ok());
  EXPECT_FALSE(Advise(Request(0, 1)).ok());
  EXPECT_FALSE(Advise(Request(120'000, 1)).text().empty());
}

}  // namespace
}  // namespace spillway::scheduler
