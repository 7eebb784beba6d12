#include "interposer/record/iteration_times.h"

#include <gtest/gtest.h>

#include <vector>

#include "interposer/driver/driver_api.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

class IterationTimesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Driver().cuInit(0), CUDA_SUCCESS) << "SPILLWAY_DRIVER names the simulated driver";
    CUcontext context = nullptr;
    ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }
  void TearDown() override {
    times_.Release();
    Driver().cuStreamDestroy_v2(stream_);
    Driver().cuDevicePrimaryCtxRelease_v2(0);
  }

  CUstream stream_ = nullptr;
  IterationTimes times_;
};

TEST_F(IterationTimesTest, IterationIsReportedWithItsFactsAtTheNextBegin) {
  times_.Began(stream_, {});
  times_.Began(stream_, {});
  times_.Began(stream_, {.last_was_stopped = true});
  times_.Began(stream_, {.last_misses = 2});
  ASSERT_EQ(Driver().cuStreamSynchronize(stream_), CUDA_SUCCESS);

  const auto first = times_.Next(), stopped = times_.Next(), missed = times_.Next();
  ASSERT_TRUE(first && stopped && missed);
  EXPECT_FALSE(first->was_stopped);
  EXPECT_TRUE(stopped->was_stopped);
  EXPECT_EQ(stopped->misses, 0u);
  EXPECT_FALSE(missed->was_stopped);
  EXPECT_EQ(missed->misses, 2u);
  EXPECT_FALSE(times_.Next());
}

TEST_F(IterationTimesTest, IterationThatChangesPlanBelongsToNeitherPattern) {
  for (const std::uint64_t pattern : {7u, 7u, 8u, 8u}) times_.Began(stream_, {.pattern = pattern});
  ASSERT_EQ(Driver().cuStreamSynchronize(stream_), CUDA_SUCCESS);

  std::vector<std::uint64_t> told;
  while (const auto time = times_.Next()) told.push_back(time->pattern);
  EXPECT_EQ(told, (std::vector<std::uint64_t>{7, 0, 8}));
}

}  // namespace
}  // namespace spillway::interposer
