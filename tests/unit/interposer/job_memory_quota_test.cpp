// A job that is granted less host memory than what is away from the device, over the simulated driver.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "interposer/driver/driver_api.h"
#include "interposer/driver/host_memory.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

constexpr size_t kBufferBytes = 16 * kMiB;
constexpr size_t kBuffers = 6;

// Two of its six buffers fit the device; 96 MiB of host memory are needed for the others and what is on its way.
class JobMemoryQuotaTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Driver().cuInit(0), CUDA_SUCCESS) << "SPILLWAY_DRIVER names the simulated driver";
    ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }
  void TearDown() override {
    Driver().cuCtxSynchronize();
    job_->ReleaseAll();
    Driver().cuStreamDestroy_v2(stream_);
    Driver().cuDevicePrimaryCtxRelease_v2(0);
  }

  void Begin(size_t own_host_limit_bytes, ParkChoice park = ParkChoice::kOff) {
    job_ = std::make_unique<JobMemory>(context_, 0, 2 * kBufferBytes, own_host_limit_bytes, park);
  }
  CUresult Allocate(size_t buffer) { return job_->Allocate(kBufferBytes, &buffers_[buffer]); }
  template <class Work>
  void With(size_t buffer, Effect effect, Work work) {
    Addresses addresses;
    addresses.push_back(buffers_[buffer]);
    TouchSet set;
    ASSERT_EQ(job_->Begin(addresses, {stream_, false}, effect, &set), CUDA_SUCCESS);
    work(buffers_[buffer]);
    job_->End(&set, effect);
  }
  void WriteAll(unsigned int round) {
    for (size_t buffer = 0; buffer < kBuffers; ++buffer) {
      With(buffer, Effect::kLaunches, [&](CUdeviceptr base) {
        Driver().cuMemsetD32Async(base, Value(round, buffer), kBufferBytes / 4, stream_);
      });
    }
  }
  void ExpectAll(unsigned int round) {
    std::vector<unsigned int> words(kBufferBytes / 4);
    for (size_t buffer = 0; buffer < kBuffers; ++buffer) {
      With(buffer, Effect::kReads, [&](CUdeviceptr base) {
        Driver().cuMemcpyDtoHAsync_v2(words.data(), base, kBufferBytes, stream_);
        Driver().cuStreamSynchronize(stream_);
      });
      ASSERT_EQ(words, std::vector<unsigned int>(words.size(), Value(round, buffer))) << "buffer " << buffer;
    }
  }
  static unsigned int Value(unsigned int round, size_t buffer) {
    return 100 * round + static_cast<unsigned int>(buffer) + 1;
  }

  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::unique_ptr<JobMemory> job_;
  CUdeviceptr buffers_[kBuffers] = {};
};

TEST_F(JobMemoryQuotaTest, WhatTheAgentDoesNotGrantLiesInOrdinaryMemory) {
  constexpr size_t quota_bytes = 3 * kBufferBytes;
  Begin(size_t{1} << 30);
  job_->SetHostLimit(quota_bytes);
  for (size_t buffer = 0; buffer < kBuffers; ++buffer) ASSERT_EQ(Allocate(buffer), CUDA_SUCCESS);

  for (unsigned int round = 0; round < 3; ++round) {
    WriteAll(round);
    ExpectAll(round);
  }

  const JobMemory::Snapshot seen = job_->Read();
  EXPECT_LE(seen.held_peak_bytes, 2 * kBufferBytes);
  EXPECT_LE(seen.pinned_peak_bytes, quota_bytes);
  EXPECT_GT(seen.ordinary_peak_bytes, 0u);
  EXPECT_EQ(seen.counters.refused_allocations, 0u);
}

TEST_F(JobMemoryQuotaTest, WithoutAnyGrantWhatIsOnItsWayIsPinnedAllTheSame) {
  Begin(size_t{1} << 30);
  job_->SetHostLimit(0);
  for (size_t buffer = 0; buffer < kBuffers; ++buffer) ASSERT_EQ(Allocate(buffer), CUDA_SUCCESS);

  WriteAll(1);
  ExpectAll(1);

  EXPECT_LE(job_->Read().pinned_peak_bytes, 2 * kBufferBytes);
}

TEST_F(JobMemoryQuotaTest, ALargerGrantIsUsedAgain) {
  Begin(size_t{1} << 30);
  job_->SetHostLimit(2 * kBufferBytes);
  for (size_t buffer = 0; buffer < kBuffers; ++buffer) ASSERT_EQ(Allocate(buffer), CUDA_SUCCESS);
  WriteAll(1);

  job_->SetHostLimit(8 * kBufferBytes);
  WriteAll(2);
  WriteAll(3);
  ExpectAll(3);

  EXPECT_EQ(job_->Read().ordinary_bytes, 0u);
}

// Only pinned memory can be mapped at device addresses. It was refused beyond the quota, and the program ended.
TEST_F(JobMemoryQuotaTest, AJobThatParksPinsWhatItsQuotaLacks) {
  constexpr size_t quota_bytes = 3 * kBufferBytes;
  Begin(size_t{1} << 30, ParkChoice::kHost);
  job_->SetHostLimit(quota_bytes);
  for (size_t buffer = 0; buffer < kBuffers; ++buffer) ASSERT_EQ(Allocate(buffer), CUDA_SUCCESS);

  for (unsigned int round = 0; round < 3; ++round) {
    WriteAll(round);
    ExpectAll(round);
  }

  const JobMemory::Snapshot seen = job_->Read();
  EXPECT_LE(seen.held_peak_bytes, 2 * kBufferBytes);
  EXPECT_GT(seen.counters.parked_peak_bytes, 0u);
  EXPECT_GT(seen.pinned_peak_bytes, quota_bytes) << "and this is what the agent is told";
  EXPECT_LE(seen.pinned_peak_bytes, 6 * kBufferBytes) << "four away, two on their way";
  EXPECT_EQ(seen.ordinary_peak_bytes, 0u);
}

// What is new has to be parked at once: the limit must count it before it is known.
TEST_F(JobMemoryQuotaTest, AJobThatParksNeedsNoQuotaAtAll) {
  Begin(size_t{1} << 30, ParkChoice::kHost);
  job_->SetHostLimit(0);
  for (size_t buffer = 0; buffer < kBuffers; ++buffer) ASSERT_EQ(Allocate(buffer), CUDA_SUCCESS);

  WriteAll(1);
  ExpectAll(1);

  EXPECT_EQ(job_->Read().counters.refused_allocations, 0u);
}

TEST_F(JobMemoryQuotaTest, WhatTheLauncherForbidsAJobThatParksDoesNotPin) {
  Begin(3 * kBufferBytes, ParkChoice::kHost);
  job_->SetHostLimit(kBufferBytes);
  for (size_t buffer = 0; buffer < 3; ++buffer) ASSERT_EQ(Allocate(buffer), CUDA_SUCCESS);

  EXPECT_EQ(Allocate(3), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(JobMemoryQuotaTest, BeyondWhatTheLauncherAllowsIsOutOfMemory) {
  Begin(3 * kBufferBytes);
  ASSERT_EQ(Allocate(0), CUDA_SUCCESS);
  ASSERT_EQ(Allocate(1), CUDA_SUCCESS);
  ASSERT_EQ(Allocate(2), CUDA_SUCCESS);

  EXPECT_EQ(Allocate(3), CUDA_ERROR_OUT_OF_MEMORY) << "two away, and two on their way";
}

TEST_F(JobMemoryQuotaTest, WhatTheNodeDoesNotHaveIsNotPromisedEither) {
  // One of them is to be away and two on their way: more than any node has that could spare as much as one.
  const size_t large_bytes = std::max(size_t{40} << 30, RoundUp(driver::HostBytesToSpare(), kGranuleBytes));
  job_ = std::make_unique<JobMemory>(context_, 0, large_bytes, size_t{1} << 40, ParkChoice::kOff);
  job_->SetHostLimit(0);
  CUdeviceptr first, second;
  ASSERT_EQ(job_->Allocate(large_bytes, &first), CUDA_SUCCESS);

  EXPECT_EQ(job_->Allocate(large_bytes, &second), CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace spillway::interposer
