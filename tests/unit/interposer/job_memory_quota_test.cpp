// A job with less granted host memory than it evicts, or with a budget held back for a moment.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "interposer/driver/driver_api.h"
#include "interposer/driver/host_memory.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

constexpr size_t kQuotaBufferBytes = 16 * kMiB;
constexpr size_t kQuotaBuffers = 6;

// Two of its six buffers fit. The others, and buffers in transit, need 96 MiB of host memory.
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
    job_ =
        std::make_unique<JobMemory>(context_, 0, 2 * kQuotaBufferBytes, own_host_limit_bytes, park);
  }
  CUresult Allocate(size_t buffer) {
    return job_->allocations().Allocate(kQuotaBufferBytes, &buffers_[buffer]);
  }
  template <class Work>
  void With(size_t buffer, Effect effect, Work work) {
    Addresses addresses;
    addresses.push_back(buffers_[buffer]);
    TouchSet set;
    ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, effect, &set), CUDA_SUCCESS);
    work(buffers_[buffer]);
    job_->calls().End(&set, effect);
  }
  void WriteAll(unsigned int round) {
    for (size_t buffer = 0; buffer < kQuotaBuffers; ++buffer) {
      With(buffer, Effect::kLaunches, [&](CUdeviceptr base) {
        Driver().cuMemsetD32Async(base, Value(round, buffer), kQuotaBufferBytes / 4, stream_);
      });
    }
  }
  void ExpectAll(unsigned int round) {
    std::vector<unsigned int> words(kQuotaBufferBytes / 4);
    for (size_t buffer = 0; buffer < kQuotaBuffers; ++buffer) {
      With(buffer, Effect::kReads, [&](CUdeviceptr base) {
        Driver().cuMemcpyDtoHAsync_v2(words.data(), base, kQuotaBufferBytes, stream_);
        Driver().cuStreamSynchronize(stream_);
      });
      ASSERT_EQ(words, std::vector<unsigned int>(words.size(), Value(round, buffer)))
          << "buffer " << buffer;
    }
  }
  static unsigned int Value(unsigned int round, size_t buffer) {
    return 100 * round + static_cast<unsigned int>(buffer) + 1;
  }

  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::unique_ptr<JobMemory> job_;
  CUdeviceptr buffers_[kQuotaBuffers] = {};
};

TEST_F(JobMemoryQuotaTest, EvictedMemoryBeyondTheGrantLiesInOrdinaryMemory) {
  constexpr size_t quota_bytes = 3 * kQuotaBufferBytes;
  Begin(size_t{1} << 30);
  job_->grants().SetHostLimit(quota_bytes);
  for (size_t buffer = 0; buffer < kQuotaBuffers; ++buffer)
    ASSERT_EQ(Allocate(buffer), CUDA_SUCCESS);

  for (unsigned int round = 0; round < 3; ++round) {
    WriteAll(round);
    ExpectAll(round);
  }

  const JobSnapshot seen = job_->view().Read();
  EXPECT_LE(seen.held_peak_bytes, 2 * kQuotaBufferBytes);
  EXPECT_LE(seen.pinned_peak_bytes, quota_bytes);
  EXPECT_GT(seen.ordinary_peak_bytes, 0u);
  EXPECT_EQ(seen.counters.refused_allocations, 0u);
}

TEST_F(JobMemoryQuotaTest, WithoutAGrantMemoryInTransitIsStillPinned) {
  Begin(size_t{1} << 30);
  job_->grants().SetHostLimit(0);
  for (size_t buffer = 0; buffer < kQuotaBuffers; ++buffer)
    ASSERT_EQ(Allocate(buffer), CUDA_SUCCESS);

  WriteAll(1);
  ExpectAll(1);

  EXPECT_LE(job_->view().Read().pinned_peak_bytes, 2 * kQuotaBufferBytes);
}

TEST_F(JobMemoryQuotaTest, LargerGrantIsUsedAgain) {
  Begin(size_t{1} << 30);
  job_->grants().SetHostLimit(2 * kQuotaBufferBytes);
  for (size_t buffer = 0; buffer < kQuotaBuffers; ++buffer)
    ASSERT_EQ(Allocate(buffer), CUDA_SUCCESS);
  WriteAll(1);

  job_->grants().SetHostLimit(8 * kQuotaBufferBytes);
  WriteAll(2);
  WriteAll(3);
  ExpectAll(3);

  EXPECT_EQ(job_->view().Read().ordinary_bytes, 0u);
}

// Regression: pinned memory was refused beyond the quota, and the program ended.
TEST_F(JobMemoryQuotaTest, ParkingJobPinsMemoryBeyondItsQuota) {
  constexpr size_t quota_bytes = 3 * kQuotaBufferBytes;
  Begin(size_t{1} << 30, ParkChoice::kHost);
  job_->grants().SetHostLimit(quota_bytes);
  for (size_t buffer = 0; buffer < kQuotaBuffers; ++buffer)
    ASSERT_EQ(Allocate(buffer), CUDA_SUCCESS);

  for (unsigned int round = 0; round < 3; ++round) {
    WriteAll(round);
    ExpectAll(round);
  }

  const JobSnapshot seen = job_->view().Read();
  EXPECT_LE(seen.held_peak_bytes, 2 * kQuotaBufferBytes);
  EXPECT_GT(seen.counters.parked_peak_bytes, 0u);
  EXPECT_GT(seen.pinned_peak_bytes, quota_bytes) << "and this is what the agent is told";
  EXPECT_LE(seen.pinned_peak_bytes, 6 * kQuotaBufferBytes) << "four away, two on their way";
  EXPECT_EQ(seen.ordinary_peak_bytes, 0u);
}

// New memory must be parked at once, so the limit must count it in advance.
TEST_F(JobMemoryQuotaTest, ParkingJobNeedsNoQuota) {
  Begin(size_t{1} << 30, ParkChoice::kHost);
  job_->grants().SetHostLimit(0);
  for (size_t buffer = 0; buffer < kQuotaBuffers; ++buffer)
    ASSERT_EQ(Allocate(buffer), CUDA_SUCCESS);

  WriteAll(1);
  ExpectAll(1);

  EXPECT_EQ(job_->view().Read().counters.refused_allocations, 0u);
}

TEST_F(JobMemoryQuotaTest, ParkingJobDoesNotPinBeyondTheLaunchersLimit) {
  Begin(3 * kQuotaBufferBytes, ParkChoice::kHost);
  job_->grants().SetHostLimit(kQuotaBufferBytes);
  for (size_t buffer = 0; buffer < 3; ++buffer) ASSERT_EQ(Allocate(buffer), CUDA_SUCCESS);

  EXPECT_EQ(Allocate(3), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(JobMemoryQuotaTest, BeyondTheLaunchersLimitIsOutOfMemory) {
  Begin(3 * kQuotaBufferBytes);
  ASSERT_EQ(Allocate(0), CUDA_SUCCESS);
  ASSERT_EQ(Allocate(1), CUDA_SUCCESS);
  ASSERT_EQ(Allocate(2), CUDA_SUCCESS);

  EXPECT_EQ(Allocate(3), CUDA_ERROR_OUT_OF_MEMORY) << "two away, and two on their way";
}

TEST_F(JobMemoryQuotaTest, MemoryThatTheNodeLacksIsNotGranted) {
  // One of them evicted and two in transit: more than any such node has.
  const size_t large_bytes =
      std::max(size_t{40} << 30, RoundUp(driver::HostBytesToSpare(), kGranuleBytes));
  job_ = std::make_unique<JobMemory>(context_, 0, large_bytes, size_t{1} << 40, ParkChoice::kOff);
  job_->grants().SetHostLimit(0);
  CUdeviceptr first, second;
  ASSERT_EQ(job_->allocations().Allocate(large_bytes, &first), CUDA_SUCCESS);

  EXPECT_EQ(job_->allocations().Allocate(large_bytes, &second), CUDA_ERROR_OUT_OF_MEMORY);
}

// A job that began without an agent has reported one buffer, and awaits the answer.
class HeldBudgetTest : public JobMemoryQuotaTest {
 protected:
  void SetUp() override {
    JobMemoryQuotaTest::SetUp();
    Begin(size_t{1} << 30);
    ASSERT_EQ(Allocate(0), CUDA_SUCCESS);
    Write(0);
  }
  void Write(size_t buffer) {
    With(buffer, Effect::kLaunches, [&](CUdeviceptr base) {
      Driver().cuMemsetD32Async(base, Value(1, buffer), kQuotaBufferBytes / 4, stream_);
    });
  }
  void HoldForLong() {
    job_->grants().HoldBudget(kQuotaBufferBytes, base::MonotonicNs() + 60'000'000'000);
  }
  // The answer arrives while the program waits in a call.
  std::thread GrantWhileWaiting(size_t bytes) {
    return std::thread([this, bytes] {
      constexpr int kLooks = 10'000;
      const uint64_t patience_ns = base::MonotonicNs() + 5'000'000'000;
      for (int looks = 0; looks < kLooks && base::MonotonicNs() < patience_ns;
           std::this_thread::yield())
        looks = job_->view().Read().in_call ? looks + 1 : 0;
      job_->grants().GrantBudget(bytes);
    });
  }
};

// Regression: the allocation was refused, though memory was granted a moment later.
TEST_F(HeldBudgetTest, UnparkableAllocationWaitsForTheGrant) {
  HoldForLong();

  std::thread agent = GrantWhileWaiting(4 * kQuotaBufferBytes);
  CUdeviceptr large = 0;
  const CUresult result = job_->allocations().Allocate(2 * kQuotaBufferBytes, &large);
  agent.join();

  EXPECT_EQ(result, CUDA_SUCCESS);
  EXPECT_EQ(job_->view().Read().counters.refused_allocations, 0u);
}

TEST_F(HeldBudgetTest, CallBeyondTheHeldBudgetWaitsForTheGrant) {
  ASSERT_EQ(Allocate(1), CUDA_SUCCESS);
  job_->grants().SetBudget(kQuotaBufferBytes);  // evicts one of them
  HoldForLong();

  std::thread agent = GrantWhileWaiting(2 * kQuotaBufferBytes);
  Addresses both;
  both.push_back(buffers_[0]);
  both.push_back(buffers_[1]);
  TouchSet set;
  const CUresult result = job_->calls().Begin(&both, {stream_, false}, Effect::kLaunches, &set);
  agent.join();

  ASSERT_EQ(result, CUDA_SUCCESS);
  job_->calls().End(&set, Effect::kLaunches);
}

// Regression: beside a pool that filled the first part of the budget, it was refused.
TEST_F(HeldBudgetTest, SmallAllocationBesideMemoryThatStaysWaitsForTheReturn) {
  ASSERT_TRUE(job_->charges().Charge(kQuotaBufferBytes, Unmovable::kDriverServed));
  job_->grants().SetBudget(kQuotaBufferBytes);
  job_->grants().ExpectReturn(std::numeric_limits<std::uint64_t>::max());

  std::thread agent = GrantWhileWaiting(2 * kQuotaBufferBytes);
  CUdeviceptr small = 0;
  const CUresult result = job_->allocations().Allocate(4096, &small);
  agent.join();

  EXPECT_EQ(result, CUDA_SUCCESS);
  EXPECT_EQ(job_->view().Read().counters.refused_allocations, 0u);
}

TEST_F(HeldBudgetTest, DriverServedMemoryWaitsForTheGrant) {
  HoldForLong();

  std::thread agent = GrantWhileWaiting(4 * kQuotaBufferBytes);
  const bool charged = job_->charges().Charge(2 * kQuotaBufferBytes, Unmovable::kDriverServed);
  agent.join();

  EXPECT_TRUE(charged);
}

TEST_F(HeldBudgetTest, OverdueAnswerIsNotAwaited) {
  job_->grants().HoldBudget(kQuotaBufferBytes, base::MonotonicNs());
  CUdeviceptr large = 0;
  EXPECT_EQ(job_->allocations().Allocate(2 * kQuotaBufferBytes, &large), CUDA_ERROR_OUT_OF_MEMORY);
}

// Memory for another process cannot move.
// For a job whose turn has come: more ranges than one scan takes.
TEST_F(JobMemoryQuotaTest, GrownBudgetBringsBackTheMostRecentlyUsedFirst) {
  constexpr size_t kRanges = 80, kRangeBytes = 4 * kMiB;
  Begin(1024 * kMiB);
  job_->grants().GrantBudget(kRanges * kRangeBytes);
  std::vector<CUdeviceptr> ranges(kRanges);
  const auto write = [&](size_t range) {
    Addresses addresses;
    addresses.push_back(ranges[range]);
    TouchSet set;
    ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kLaunches, &set),
              CUDA_SUCCESS);
    Driver().cuMemsetD32Async(ranges[range], 7, kRangeBytes / 4, stream_);
    job_->calls().End(&set, Effect::kLaunches);
  };
  for (CUdeviceptr& range : ranges)
    ASSERT_EQ(job_->allocations().Allocate(kRangeBytes, &range), CUDA_SUCCESS);
  for (size_t range = 0; range < kRanges; ++range) write(range);
  Driver().cuStreamSynchronize(stream_);
  job_->grants().SetBudget(2 * kRangeBytes);
  ASSERT_LE(job_->view().Read().held_bytes, 2 * kRangeBytes);

  job_->grants().GrantBudget(60 * kRangeBytes);
  job_->grants().BringBack();

  EXPECT_EQ(job_->view().Read().held_bytes, 60 * kRangeBytes);
  const auto fetches = job_->view().Read().counters.demand_fetches;
  for (size_t range = kRanges - 50; range < kRanges; ++range) write(range);
  EXPECT_EQ(job_->view().Read().counters.demand_fetches, fetches);

  job_->grants().BringBack();
  job_->grants().GrantBudget(kRanges * kRangeBytes);
  job_->grants().BringBack();
  EXPECT_EQ(job_->view().Read().held_bytes, kRanges * kRangeBytes);
}

TEST_F(JobMemoryQuotaTest, MemoryBeyondTheBudgetIsNotSharedAndThatIsCounted) {
  Begin(size_t{1} << 30, ParkChoice::kAuto);
  CUdeviceptr large = 0;
  ASSERT_EQ(job_->allocations().Allocate(3 * kQuotaBufferBytes, &large), CUDA_SUCCESS);

  SharedMemory shared;
  EXPECT_EQ(job_->sharing().Share(1, large, &shared), CUDA_ERROR_OUT_OF_MEMORY);

  EXPECT_EQ(job_->view().Read().counters.refused_unmovable_bytes, 3 * kQuotaBufferBytes);
}

}  // namespace
}  // namespace spillway::interposer
