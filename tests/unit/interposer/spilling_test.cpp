// Host copies of a job in its file: stored while it rests, read when it needs them, and every way
// in which the file, or a call meanwhile, comes in between.
#include "interposer/execute/spilling.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

constexpr size_t kBufferBytes = 4 * kMiB;
constexpr size_t kBuffers = 6;

struct JobDisk {
  std::vector<std::byte> bytes = std::vector<std::byte>(kBuffers * kBufferBytes);
  int error = 0;
  size_t writes = 0;
  std::function<void()> before_write, before_read;  // once
};

class JobIo final : public SpillIo {
 public:
  explicit JobIo(std::shared_ptr<JobDisk> disk) : disk_(std::move(disk)) {}
  ssize_t Write(const std::byte* data, size_t bytes, std::uint64_t at) override {
    if (const auto act = std::exchange(disk_->before_write, {})) act();
    ++disk_->writes;
    errno = disk_->error;
    if (errno != 0) return -1;
    std::copy_n(data, bytes, disk_->bytes.begin() + static_cast<std::ptrdiff_t>(at));
    return static_cast<ssize_t>(bytes);
  }
  ssize_t Read(std::byte* data, size_t bytes, std::uint64_t at) override {
    if (const auto act = std::exchange(disk_->before_read, {})) act();
    errno = disk_->error;
    if (errno != 0) return -1;
    std::copy_n(disk_->bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes, data);
    return static_cast<ssize_t>(bytes);
  }

 private:
  const std::shared_ptr<JobDisk> disk_;
};

constexpr auto Always = [] { return true; };

// Two of its six buffers fit.
class SpillingTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Driver().cuInit(0), CUDA_SUCCESS) << "SPILLWAY_DRIVER names the simulated driver";
    ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    job_ = std::make_unique<JobMemory>(context_, 0, 2 * kBufferBytes, size_t{1} << 30,
                                       ParkChoice::kOff);
    for (CUdeviceptr& buffer : buffers_)
      ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &buffer), CUDA_SUCCESS);
    for (size_t buffer = 0; buffer < kBuffers; ++buffer) Write(buffer, 1);
    Driver().cuCtxSynchronize();
    GiveFile(kBuffers * kBufferBytes);
  }
  void TearDown() override {
    Driver().cuCtxSynchronize();
    job_->ReleaseAll();
    Driver().cuStreamDestroy_v2(stream_);
    Driver().cuDevicePrimaryCtxRelease_v2(0);
  }

  void GiveFile(size_t bytes) {
    job_->spilling().SetFile(
        std::make_shared<SpillFile>(std::make_unique<JobIo>(disk_), bytes, ++serial_));
  }
  template <class Work>
  CUresult With(size_t buffer, Effect effect, Work work) {
    Addresses addresses;
    addresses.push_back(buffers_[buffer]);
    TouchSet set;
    const CUresult result = job_->calls().Begin(&addresses, {stream_, false}, effect, &set);
    if (result != CUDA_SUCCESS) return result;
    work(buffers_[buffer]);
    job_->calls().End(&set, effect);
    return CUDA_SUCCESS;
  }
  static unsigned int Value(size_t buffer, unsigned int round) {
    return 100 * round + static_cast<unsigned int>(buffer) + 1;
  }
  void Write(size_t buffer, unsigned int round) {
    EXPECT_EQ(With(buffer, Effect::kLaunches,
                   [&](CUdeviceptr base) {
                     Driver().cuMemsetD32Async(base, Value(buffer, round), kBufferBytes / 4,
                                               stream_);
                   }),
              CUDA_SUCCESS);
  }
  CUresult Read(size_t buffer, std::vector<unsigned int>* words) {
    words->assign(kBufferBytes / 4, 0);
    return With(buffer, Effect::kReads, [&](CUdeviceptr base) {
      Driver().cuMemcpyDtoHAsync_v2(words->data(), base, kBufferBytes, stream_);
      Driver().cuStreamSynchronize(stream_);
    });
  }
  void Expect(size_t buffer, unsigned int round) {
    std::vector<unsigned int> words;
    ASSERT_EQ(Read(buffer, &words), CUDA_SUCCESS);
    EXPECT_EQ(words, std::vector<unsigned int>(words.size(), Value(buffer, round)))
        << "buffer " << buffer;
  }
  void ExpectAll(unsigned int round) {
    for (size_t buffer = 0; buffer < kBuffers; ++buffer) Expect(buffer, round);
  }
  size_t StoreAll() {
    size_t count = 0;
    while (job_->spilling().StoreOne(Always)) ++count;
    return count;
  }
  JobSnapshot Seen() { return job_->view().Read(); }

  std::shared_ptr<JobDisk> disk_ = std::make_shared<JobDisk>();
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::unique_ptr<JobMemory> job_;
  CUdeviceptr buffers_[kBuffers] = {};
  std::uint64_t serial_ = 0;
};

TEST_F(SpillingTest, StoredBytesLeaveHostMemoryAndComeBackWhenACallNeedsThem) {
  const size_t pinned_bytes = Seen().pinned_bytes;

  EXPECT_EQ(StoreAll(), 4u);

  EXPECT_EQ(Seen().spilled_bytes, 4 * kBufferBytes);
  EXPECT_LE(Seen().pinned_bytes + Seen().ordinary_bytes, pinned_bytes - 4 * kBufferBytes);
  EXPECT_EQ(Seen().counters.spill_written_bytes, 4 * kBufferBytes);
  ExpectAll(1);
  EXPECT_GE(Seen().counters.spill_read_bytes, 4 * kBufferBytes);
  EXPECT_EQ(Seen().counters.spill_failures, 0u);
}

TEST_F(SpillingTest, TheLeastRecentlyUsedCopiesAreStoredFirst) {
  GiveFile(2 * kBufferBytes);
  EXPECT_EQ(StoreAll(), 2u);

  for (size_t buffer = 3; buffer < kBuffers; ++buffer) Expect(buffer, 1);
  EXPECT_EQ(Seen().counters.spill_read_bytes, 0u) << "buffers 0 and 1 are stored";
  ExpectAll(1);
}

TEST_F(SpillingTest, AllBytesReturnAndTheFileIsClosed) {
  StoreAll();
  job_->spilling().CloseEmptyFile();
  EXPECT_EQ(job_->spilling().file_serial(), 1u) << "it is not empty";

  while (job_->spilling().ReturnOne(Always)) {
  }
  job_->spilling().CloseEmptyFile();

  EXPECT_EQ(Seen().spilled_bytes, 0u);
  EXPECT_EQ(job_->spilling().file_serial(), 0u);
  EXPECT_GE(Seen().pinned_bytes + Seen().ordinary_bytes, 4 * kBufferBytes);
  ExpectAll(1);
}

TEST_F(SpillingTest, ACallDuringTheWriteWinsWithNewBytes) {
  disk_->before_write = [&] { Write(0, 2); };
  StoreAll();

  Expect(0, 2);
  for (size_t buffer = 1; buffer < kBuffers; ++buffer) Expect(buffer, 1);
}

// Evicted again before the write ends, the range has another host copy.
TEST_F(SpillingTest, ARangeThatCameAndWentDuringTheWriteKeepsItsNewBytes) {
  disk_->before_write = [&] {
    Write(0, 2);
    for (size_t buffer = 1; buffer < kBuffers; ++buffer) Write(buffer, 2);
    Driver().cuCtxSynchronize();
    Write(4, 2);
  };
  StoreAll();

  ExpectAll(2);
}

TEST_F(SpillingTest, ABufferFreedDuringTheReadIsReadInVain) {
  StoreAll();
  disk_->before_read = [&] { EXPECT_TRUE(job_->allocations().Free(buffers_[3])); };

  EXPECT_TRUE(job_->spilling().ReturnOne(Always)) << "buffer 3 is the most recently used";

  for (size_t buffer = 0; buffer < kBuffers; ++buffer) {
    if (buffer != 3) Expect(buffer, 1);
  }
  EXPECT_FALSE(job_->view().IsWrong());
}

TEST_F(SpillingTest, ARangeThatCameAndWentDuringTheReadKeepsItsNewBytes) {
  StoreAll();
  disk_->before_read = [&] {
    for (const size_t buffer : {3, 0, 1, 2}) Write(buffer, 2);
    Driver().cuCtxSynchronize();
    Write(2, 2);
    ASSERT_TRUE(job_->view().IsEvicted(buffers_[3]));
  };

  EXPECT_TRUE(job_->spilling().ReturnOne(Always)) << "buffer 3 is the most recently used";

  for (const size_t buffer : {3, 0, 1, 2}) Expect(buffer, 2);
}

TEST_F(SpillingTest, StopsSoonWhenItIsTold) {
  int blocks = 0;
  EXPECT_FALSE(job_->spilling().StoreOne([&] { return ++blocks < 3; }));
  EXPECT_EQ(disk_->writes, 2u);
  EXPECT_EQ(Seen().spilled_bytes, 0u);
  EXPECT_EQ(Seen().counters.spill_failures, 0u);
  EXPECT_EQ(StoreAll(), 4u) << "its blocks are free again";
  ExpectAll(1);
}

TEST_F(SpillingTest, AFullDiskLeavesTheBytesInHostMemory) {
  disk_->error = ENOSPC;
  EXPECT_EQ(StoreAll(), 0u);
  EXPECT_EQ(StoreAll(), 0u);
  EXPECT_EQ(disk_->writes, 1u) << "a file that failed is not written again";

  disk_->error = 0;
  EXPECT_EQ(Seen().spilled_bytes, 0u);
  EXPECT_EQ(Seen().counters.spill_failures, 1u);
  EXPECT_FALSE(job_->view().IsWrong());
  ExpectAll(1);
  GiveFile(kBuffers * kBufferBytes);
  EXPECT_GT(StoreAll(), 0u) << "another file may do better";
}

TEST_F(SpillingTest, AFailedReadEndsTheJobsUseOfTheDevice) {
  StoreAll();
  disk_->error = EIO;
  std::vector<unsigned int> words;

  EXPECT_EQ(Read(0, &words), CUDA_ERROR_LAUNCH_FAILED);

  EXPECT_TRUE(job_->view().IsWrong());
  EXPECT_EQ(Seen().counters.spill_failures, 1u);
}

TEST_F(SpillingTest, DamagedBytesNeverReachTheProgram) {
  StoreAll();
  for (std::byte& byte : disk_->bytes) byte ^= std::byte{1};
  std::vector<unsigned int> words;

  EXPECT_NE(Read(0, &words), CUDA_SUCCESS);

  EXPECT_EQ(words, std::vector<unsigned int>(words.size(), 0));
  EXPECT_TRUE(job_->view().IsLost());
}

TEST_F(SpillingTest, FreedMemoryGivesItsBlocksBack) {
  GiveFile(4 * kBufferBytes);
  EXPECT_EQ(StoreAll(), 4u);
  for (size_t buffer = 0; buffer < 4; ++buffer)
    EXPECT_TRUE(job_->allocations().Free(buffers_[buffer]));

  EXPECT_EQ(Seen().spilled_bytes, 0u);
  job_->spilling().CloseEmptyFile();
  EXPECT_EQ(job_->spilling().file_serial(), 0u);
}

TEST_F(SpillingTest, AnEvictedBufferIsReadFromItsHostCopyOnlyWhereThatIs) {
  EXPECT_TRUE(job_->view().IsEvicted(buffers_[0]));
  StoreAll();
  unsigned int word = 0;
  EXPECT_FALSE(job_->view().IsEvicted(buffers_[0]));
  EXPECT_FALSE(job_->view().ReadEvicted(buffers_[0], &word, sizeof word));
}

class SpareCopiesTest : public SpillingTest {
 protected:
  static constexpr std::uint64_t kSettled = Spilling::kSettledNs;

  void HaveAllTwice() {
    job_->grants().SetBudget((kBuffers + 2) * kBufferBytes);
    ExpectAll(1);
    Driver().cuCtxSynchronize();
    ASSERT_GT(Seen().resident_twice_bytes, 0u);
  }
};

TEST_F(SpareCopiesTest, CopiesOfResidentMemoryGoOnceTheJobHasLongHadAllItsMemory) {
  HaveAllTwice();
  const size_t twice_bytes = Seen().resident_twice_bytes;

  job_->spilling().ReleaseSpareCopies(1);
  job_->spilling().ReleaseSpareCopies(2);
  job_->spilling().ReleaseSpareCopies(kSettled);
  EXPECT_EQ(Seen().resident_twice_bytes, twice_bytes);
  job_->spilling().ReleaseSpareCopies(kSettled + 2);

  EXPECT_EQ(Seen().resident_twice_bytes, 0u);
  EXPECT_EQ(Seen().pinned_bytes + Seen().ordinary_bytes, 0u);
  EXPECT_EQ(Seen().counters.spare_copies_released_bytes, twice_bytes);
  ExpectAll(1);
}

TEST_F(SpareCopiesTest, CopiesStayWhileTheJobWantsMoreThanItsBudget) {
  ExpectAll(1);
  const size_t twice_bytes = Seen().resident_twice_bytes;
  for (std::uint64_t i = 1; i < 5; ++i) job_->spilling().ReleaseSpareCopies(i * kSettled);
  EXPECT_EQ(Seen().resident_twice_bytes, twice_bytes);
  EXPECT_EQ(Seen().counters.spare_copies_released_bytes, 0u);
}

}  // namespace
}  // namespace spillway::interposer
