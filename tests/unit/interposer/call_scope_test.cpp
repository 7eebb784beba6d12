// The scope of a call, over the simulated driver.
#include "interposer/execute/call_scope.h"

#include <gtest/gtest.h>

#include <memory>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

class CallScopeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Driver().cuInit(0), CUDA_SUCCESS) << "SPILLWAY_DRIVER names the simulated driver";
    ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    job_ = std::make_unique<JobMemory>(context_, 0, 64 * kMiB, 64 * kMiB, ParkChoice::kOff);
    ASSERT_EQ(job_->allocations().Allocate(16 * kMiB, &buffer_), CUDA_SUCCESS);
    addresses_.push_back(buffer_);
  }
  void TearDown() override {
    Driver().cuCtxSynchronize();
    job_->ReleaseAll();
    Driver().cuDevicePrimaryCtxRelease_v2(0);
  }

  bool IsInCall() { return job_->view().Read().in_call; }

  CUcontext context_ = nullptr;
  std::unique_ptr<JobMemory> job_;
  CUdeviceptr buffer_ = 0;
  Addresses addresses_;
};

TEST_F(CallScopeTest, CallIsInProgressUntilItsEnd) {
  CallScope call(job_->calls(), addresses_, {}, Effect::kMayWrite);

  EXPECT_EQ(call.answer(), CUDA_SUCCESS);
  EXPECT_TRUE(IsInCall());

  EXPECT_FALSE(call.End(CUDA_SUCCESS));
  EXPECT_FALSE(IsInCall());
}

TEST_F(CallScopeTest, UnendedCallEndsWithTheScope) {
  {
    const CallScope call(job_->calls(), addresses_, {}, Effect::kMayWrite);
    EXPECT_TRUE(IsInCall());
  }
  EXPECT_FALSE(IsInCall());
}

TEST_F(CallScopeTest, RefusedCallHoldsNothing) {
  ASSERT_TRUE(job_->allocations().Free(buffer_));

  const CallScope call(job_->calls(), addresses_, {}, Effect::kReads);

  EXPECT_EQ(call.answer(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_FALSE(IsInCall());
}

TEST_F(CallScopeTest, AcceptedCallRecordsTheAddressesThatItPutsIntoMemory) {
  const CUdeviceptr payload = buffer_;
  Transfers transfers;
  transfers.push_back({.source = Transfer::Source::kHost,
                       .to = buffer_ + 64,
                       .from = reinterpret_cast<CUdeviceptr>(&payload),
                       .width_bytes = sizeof payload,
                       .rows = 1});

  CallScope refused(job_->calls(), addresses_, {}, Effect::kMayWrite);
  refused.End(CUDA_ERROR_INVALID_VALUE, transfers);
  EXPECT_EQ(job_->view().Read().held_addresses, 0u);

  CallScope accepted(job_->calls(), addresses_, {}, Effect::kMayWrite);
  accepted.End(CUDA_SUCCESS, transfers);
  EXPECT_EQ(job_->view().Read().held_addresses, 1u);
}

}  // namespace
}  // namespace spillway::interposer
