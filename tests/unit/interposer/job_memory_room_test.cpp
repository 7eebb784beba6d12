// Whom a job waits for that needs memory, over the simulated driver.
#include <gtest/gtest.h>

#include <memory>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

class JobMemoryRoomTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Driver().cuInit(0), CUDA_SUCCESS) << "SPILLWAY_DRIVER names the simulated driver";
    ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    for (CUstream* stream : {&slow_, &quick_})
      ASSERT_EQ(Driver().cuStreamCreate(stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuMemAlloc_v2(&elsewhere_, kLongBytes), CUDA_SUCCESS);
    job_ = std::make_unique<JobMemory>(context_, 0, 64 * kMiB, size_t{1} << 30, ParkChoice::kOff,
                                       LearnChoice::kOff);
  }
  void TearDown() override {
    Driver().cuCtxSynchronize();
    job_->ReleaseAll();
    Driver().cuMemFree_v2(elsewhere_);
    for (CUstream stream : {slow_, quick_}) Driver().cuStreamDestroy_v2(stream);
    Driver().cuDevicePrimaryCtxRelease_v2(0);
  }

  CUdeviceptr Allocate(size_t bytes) {
    CUdeviceptr base = 0;
    EXPECT_EQ(job_->Allocate(bytes, &base), CUDA_SUCCESS);
    return base;
  }
  void Set(CUdeviceptr base, CUstream stream) {
    Addresses addresses;
    addresses.push_back(base);
    TouchSet set;
    ASSERT_EQ(job_->Begin(addresses, {stream, false}, Effect::kLaunches, &set), CUDA_SUCCESS);
    Driver().cuMemsetD32Async(base, 7, 1024, stream);
    job_->End(&set, Effect::kLaunches);
  }
  void Busy(CUstream stream) {
    for (int i = 0; i < 4; ++i) Driver().cuMemsetD32Async(elsewhere_, 1, kLongBytes / 4, stream);
  }

  static constexpr size_t kLongBytes = 256 * kMiB;
  CUcontext context_ = nullptr;
  CUstream slow_ = nullptr, quick_ = nullptr;
  CUdeviceptr elsewhere_ = 0;
  std::unique_ptr<JobMemory> job_;
};

// It waited for what was to go first, which may be gone last: VGG-16 stood still for a copy of 15 ms while what had been dropped behind it
// was free.
TEST_F(JobMemoryRoomTest, AWaitForMemoryIsOverWithWhateverIsFreeFirst) {
  const CUdeviceptr first = Allocate(16 * kMiB), second = Allocate(32 * kMiB);
  Set(first, slow_);
  Set(second, quick_);
  Driver().cuCtxSynchronize();
  // Given two buffers on their way out: the older one behind much work
  Busy(slow_);
  Set(first, slow_);
  Set(second, quick_);
  ASSERT_TRUE(job_->FreeAsync(first, {slow_, false}));
  ASSERT_TRUE(job_->FreeAsync(second, {quick_, false}));

  // When room is needed that the younger one's memory suffices for
  Set(Allocate(24 * kMiB), quick_);

  // Then nobody has waited for the older one
  EXPECT_EQ(Driver().cuStreamQuery(slow_), CUDA_ERROR_NOT_READY);
}

}  // namespace
}  // namespace spillway::interposer
