// A test of residency's classes over the simulated driver: a context, a stream, and what the
// classes share.
#pragma once

#include <gtest/gtest.h>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/state/counters.h"
#include "interposer/execute/state/range.h"
#include "interposer/execute/state/timeline.h"
#include "interposer/record/job_trace.h"

namespace spillway::interposer {

class OverDriverTest : public testing::Test {
 protected:
  static CUcontext MakeContext() {
    CUcontext context = nullptr;
    driver::Driver().cuInit(0);
    driver::Driver().cuDevicePrimaryCtxRetain(&context, 0);
    driver::Driver().cuCtxSetCurrent(context);
    return context;
  }
  void SetUp() override {
    ASSERT_NE(context_, nullptr) << "SPILLWAY_DRIVER names the simulated driver";
    ASSERT_EQ(driver::Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }
  void TearDown() override {
    driver::Driver().cuCtxSynchronize();
    driver::Driver().cuStreamDestroy_v2(stream_);
    driver::Driver().cuDevicePrimaryCtxRelease_v2(0);
  }

  // Work on the range that takes long in simulated time.
  Use EnqueueOn(Range* range) {
    EXPECT_EQ(driver::Driver().cuMemsetD8Async(range->base, 1, range->size_bytes, stream_),
              CUDA_SUCCESS);
    const Use use = timeline_.Issue(timeline_.Of({stream_, false}));
    timeline_.EventFor(use);
    return use;
  }

  CUcontext context_ = MakeContext();
  CUstream stream_ = nullptr;
  Timeline timeline_{context_};
  Counters counters_;
  JobTrace trace_{context_, 0};
};

}  // namespace spillway::interposer
