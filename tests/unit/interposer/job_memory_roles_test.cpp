// How roles save copies, over the simulated driver, and that no byte is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

constexpr size_t kRolesBuffers = 4;
constexpr size_t kRolesBufferBytes = 16 * kMiB;

// Three of the four buffers fit.
class JobMemoryRolesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Driver().cuInit(0), CUDA_SUCCESS) << "SPILLWAY_DRIVER names the simulated driver";
    ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    MakeJob(ParkChoice::kOff);
  }
  void MakeJob(ParkChoice choice) {
    job_ = std::make_unique<JobMemory>(context_, 0, 3 * kRolesBufferBytes, size_t{1} << 30, choice,
                                       LearnChoice::kAlways);
    for (CUdeviceptr& buffer : buffers_)
      ASSERT_EQ(job_->allocations().Allocate(kRolesBufferBytes, &buffer), CUDA_SUCCESS);
    for (size_t i = 0; i < kRolesBuffers; ++i) Fill(i, Word(i));
  }
  void TearDown() override {
    Driver().cuCtxSynchronize();
    job_->ReleaseAll();
    Driver().cuStreamDestroy_v2(stream_);
    Driver().cuDevicePrimaryCtxRelease_v2(0);
  }
  static unsigned int Word(size_t buffer) { return static_cast<unsigned int>(100 + buffer); }

  void EvictAll() {
    CUdeviceptr large = 0;
    ASSERT_EQ(job_->allocations().Allocate(3 * kRolesBufferBytes, &large), CUDA_SUCCESS);
    Addresses addresses;
    addresses.push_back(large);
    TouchSet set;
    ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kLaunches, &set),
              CUDA_SUCCESS);
    job_->calls().End(&set, Effect::kLaunches);
    Driver().cuCtxSynchronize();
  }
  template <class Work>
  void Launch(size_t buffer, const Claims* claims, Work work, bool fails = false) {
    Addresses addresses;
    addresses.push_back(buffers_[buffer]);
    TouchSet set;
    set.claims = claims;
    set.is_documented = claims != nullptr;
    ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kLaunches, &set),
              CUDA_SUCCESS);
    if (!fails) work(buffers_[buffer]);
    set.failed = fails;
    job_->calls().End(&set, Effect::kLaunches);
  }
  void Fill(size_t buffer, unsigned int word, const Claims* claims = nullptr) {
    Launch(buffer, claims, [&](CUdeviceptr at) {
      Driver().cuMemsetD32Async(at, word, kRolesBufferBytes / 4, stream_);
    });
  }
  void Look(size_t buffer, const Claims* claims = nullptr) {
    Launch(buffer, claims, [](CUdeviceptr) {});
  }
  // Uses all others by calls known to write nothing else, so `buffer` is evicted as least recently
  // used.
  void StartEvictions(size_t buffer) {
    for (size_t i = 0; i < kRolesBuffers; ++i) {
      Claims touching;
      touching.Touches(buffers_[i]);
      if (i != buffer) Look(i, &touching);
    }
    Driver().cuCtxSynchronize();
    ASSERT_TRUE(job_->view().IsEvicted(buffers_[buffer]));
  }
  Claims Reading(size_t buffer) const {
    Claims claims;
    claims.Reads(buffers_[buffer], kRolesBufferBytes);
    return claims;
  }
  Claims Overwriting(size_t buffer) const {
    Claims claims;
    claims.Overwrites(buffers_[buffer], kRolesBufferBytes);
    return claims;
  }
  void ExpectAll(size_t buffer, unsigned int word) {
    std::vector<unsigned int> words(kRolesBufferBytes / 4);
    Addresses addresses;
    addresses.push_back(buffers_[buffer]);
    TouchSet set;
    ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kReads, &set),
              CUDA_SUCCESS);
    Driver().cuMemcpyDtoHAsync_v2(words.data(), buffers_[buffer], kRolesBufferBytes, stream_);
    Driver().cuStreamSynchronize(stream_);
    job_->calls().End(&set, Effect::kReads);
    EXPECT_TRUE(std::all_of(words.begin(), words.end(),
                            [word](unsigned int each) { return each == word; }));
  }
  Counters Count() { return job_->view().Read().counters; }

  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::unique_ptr<JobMemory> job_;
  CUdeviceptr buffers_[kRolesBuffers] = {};
};

TEST_F(JobMemoryRolesTest, ReadOnlyBufferIsEvictedWithoutACopy) {
  // Given data that has been restored and is read
  StartEvictions(0);
  const Claims reading = Reading(0);
  Look(0, &reading);

  const Counters before = Count();
  StartEvictions(0);

  // Then its host copy has served again: only the buffer in its place was copied out
  EXPECT_EQ(Count().dropped_bytes - before.dropped_bytes, kRolesBufferBytes);
  ExpectAll(0, Word(0));
}

// Such a kernel may have written anything, by an unseen address.
TEST_F(JobMemoryRolesTest, ReadOnlyBufferIsCopiedOutAfterAKernelOfUnknownEffect) {
  StartEvictions(0);
  const Claims reading = Reading(0);
  Look(0, &reading);
  Look(1);
  const Counters before = Count();
  StartEvictions(0);
  EXPECT_EQ(Count().dropped_bytes, before.dropped_bytes);
}

TEST_F(JobMemoryRolesTest, PossiblyWrittenBufferIsCopiedOut) {
  StartEvictions(0);
  Look(0);
  const Counters before = Count();
  StartEvictions(0);
  EXPECT_EQ(Count().dropped_bytes, before.dropped_bytes);
}

TEST_F(JobMemoryRolesTest, WriteAfterAReadInvalidatesTheHostCopy) {
  StartEvictions(0);
  const Claims reading = Reading(0);
  Look(0, &reading);
  Fill(0, 7);
  StartEvictions(0);
  ExpectAll(0, 7);
}

TEST_F(JobMemoryRolesTest, OverwrittenBufferIsNotRestored) {
  StartEvictions(0);
  const Counters before = Count();

  const Claims overwriting = Overwriting(0);
  Fill(0, 7, &overwriting);

  EXPECT_EQ(Count().restored_bytes, before.restored_bytes);
  EXPECT_EQ(Count().overwritten_bytes, kRolesBufferBytes);
  ExpectAll(0, 7);
  StartEvictions(0);
  ExpectAll(0, 7);
}

TEST_F(JobMemoryRolesTest, BufferOfAFailedOverwriteKeepsItsBytes) {
  StartEvictions(0);
  const Claims overwriting = Overwriting(0);

  Launch(
      0, &overwriting, [](CUdeviceptr) {}, true);

  ExpectAll(0, Word(0));
  StartEvictions(0);
  ExpectAll(0, Word(0));
}

TEST_F(JobMemoryRolesTest, BufferEvictedBetweenTwoLaunchesOfACallIsRestoredWhole) {
  // Given a call whose first launch has written half of its output
  StartEvictions(0);
  Claims overwriting = Overwriting(0);
  Launch(0, &overwriting,
         [&](CUdeviceptr at) { Driver().cuMemsetD32Async(at, 7, kRolesBufferBytes / 4, stream_); });
  overwriting.NoteNamed({&buffers_[0], 1});
  StartEvictions(0);

  Look(0, &overwriting);

  ExpectAll(0, 7);
}

TEST_F(JobMemoryRolesTest, StreamOfAFailedCallAwaitsTheRestores) {
  EvictAll();
  Claims overwriting;
  Addresses addresses;
  for (size_t i = 0; i < 3; ++i) {
    overwriting.Overwrites(buffers_[i], kRolesBufferBytes);
    addresses.push_back(buffers_[i]);
  }
  TouchSet set;
  set.claims = &overwriting;
  ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kLaunches, &set),
            CUDA_SUCCESS);
  set.failed = true;
  job_->calls().End(&set, Effect::kLaunches);

  ExpectAll(2, Word(2));
  ExpectAll(1, Word(1));
}

TEST_F(JobMemoryRolesTest, ConcurrentReadOfAnOverwriteSeesOldOrNewBytes) {
  // Given a call that overwrites an evicted buffer and has not reached the driver yet
  StartEvictions(0);
  const Claims overwriting = Overwriting(0);
  Addresses addresses;
  addresses.push_back(buffers_[0]);
  TouchSet set;
  set.claims = &overwriting;
  ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kLaunches, &set),
            CUDA_SUCCESS);

  // When another thread reads on the same stream, perhaps before the first one continues
  std::atomic<bool> has_read{false};
  std::thread reader([&] {
    Driver().cuCtxSetCurrent(context_);
    ExpectAll(0, 7);
    has_read = true;
  });
  // On a loaded machine so many turns take longer than the reader's patience.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  for (int i = 0; i < 1000 && std::chrono::steady_clock::now() < deadline; ++i)
    std::this_thread::yield();
  Driver().cuMemsetD32Async(buffers_[0], 7, kRolesBufferBytes / 4, stream_);
  EXPECT_FALSE(has_read);
  job_->calls().End(&set, Effect::kLaunches);
  reader.join();

  EXPECT_TRUE(has_read);
}

TEST_F(JobMemoryRolesTest, BufferBeingOverwrittenIsReadFromItsOldHostCopy) {
  StartEvictions(0);
  const Claims overwriting = Overwriting(0);
  unsigned int word = 0;
  Launch(0, &overwriting,
         [&](CUdeviceptr at) { EXPECT_TRUE(job_->view().ReadEvicted(at, &word, sizeof word)); });
  EXPECT_EQ(word, Word(0));
}

// After a full scan, evicted memory has no mapping until a new kernel comes.
class ProvenJobRolesTest : public JobMemoryRolesTest {
 protected:
  void SetUp() override {
    JobMemoryRolesTest::SetUp();
    job_->ReleaseAll();
    MakeJob(ParkChoice::kAuto);
    for (size_t i = 0; i < 400; ++i) Look(i % 3);  // long enough without a new kernel
    for (size_t round = 0; round < 3; ++round) {
      Look(0);
      for (const size_t other : {1, 2, 3}) Look(other);
    }
    ASSERT_EQ(Driver().cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_TRUE(job_->view().IsEvicted(buffers_[0]));
    ASSERT_EQ(job_->view().Read().standing, Standing::kProven);
    ASSERT_EQ(Count().parked_bytes, 0u);
  }
  // Another thread's new kernel comes between the driver's call and the hook's end.
  void Overwrite(bool fails) {
    const Claims overwriting = Overwriting(0);
    Addresses addresses;
    addresses.push_back(buffers_[0]);
    TouchSet set;
    set.claims = &overwriting;
    ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kLaunches, &set),
              CUDA_SUCCESS);
    if (!fails) Driver().cuMemsetD32Async(buffers_[0], 7, kRolesBufferBytes / 4, stream_);
    job_->post_launch_scan().AwaitNewWork();
    set.failed = fails;
    job_->calls().End(&set, Effect::kLaunches);
  }
};

TEST_F(ProvenJobRolesTest, ParkingDuringAnOverwriteRestoresNothingOverNewBytes) {
  Overwrite(false);
  ExpectAll(0, 7);
}

TEST_F(ProvenJobRolesTest, ParkingDuringARefusedOverwriteKeepsTheOldBytes) {
  Overwrite(true);
  ExpectAll(0, Word(0));
  Fill(0, 7);
  ExpectAll(0, 7);
}

}  // namespace
}  // namespace spillway::interposer
