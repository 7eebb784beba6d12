#include "interposer/record/iteration_times.h"

#include <gtest/gtest.h>

#include "interposer/driver/driver_api.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

TEST(IterationTimesTest, EachIterationIsToldWithWhatWasKnownWhenTheNextBegan) {
  ASSERT_EQ(Driver().cuInit(0), CUDA_SUCCESS) << "SPILLWAY_DRIVER names the simulated driver";
  CUcontext context = nullptr;
  ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(Driver().cuCtxSetCurrent(context), CUDA_SUCCESS);
  CUstream stream = nullptr;
  ASSERT_EQ(Driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);

  // Given three iterations: one as planned, one that a census stopped, one with misses
  IterationTimes times;
  times.Began(stream, 0, false);
  times.Began(stream, 0, false);
  times.Began(stream, 0, true);
  times.Began(stream, 2, false);
  ASSERT_EQ(Driver().cuStreamSynchronize(stream), CUDA_SUCCESS);

  IterationTime time;
  ASSERT_TRUE(times.Next(&time));
  EXPECT_FALSE(time.was_stopped);
  ASSERT_TRUE(times.Next(&time));
  EXPECT_TRUE(time.was_stopped);
  EXPECT_EQ(time.misses, 0u);
  ASSERT_TRUE(times.Next(&time));
  EXPECT_FALSE(time.was_stopped);
  EXPECT_EQ(time.misses, 2u);
  EXPECT_FALSE(times.Next(&time));

  times.Release();
  Driver().cuStreamDestroy_v2(stream);
  Driver().cuDevicePrimaryCtxRelease_v2(0);
}

}  // namespace
}  // namespace spillway::interposer
