// What a job waits for when it needs memory, over the simulated driver.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/job_memory.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

class JobMemoryWaitTest : public testing::Test {
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
    EXPECT_EQ(job_->allocations().Allocate(bytes, &base), CUDA_SUCCESS);
    return base;
  }
  void Set(CUdeviceptr base, CUstream stream) {
    Name(base, stream, [=] { Driver().cuMemsetD32Async(base, 7, 1024, stream); });
  }
  void Name(CUdeviceptr base, CUstream stream, const std::function<void()>& work) {
    Addresses addresses;
    addresses.push_back(base);
    TouchSet set;
    ASSERT_EQ(job_->calls().Begin(&addresses, {stream, false}, Effect::kLaunches, &set),
              CUDA_SUCCESS);
    work();
    job_->calls().End(&set, Effect::kLaunches);
  }
  void Busy(CUstream stream) {
    for (int i = 0; i < 12; ++i) Driver().cuMemsetD32Async(elsewhere_, 1, kLongBytes / 4, stream);
  }

  // The stream waits for the host, as behind a kernel that polls.
  static volatile std::uint32_t* WaitWithoutHook(CUstream stream) {
    void* word = nullptr;
    EXPECT_EQ(Driver().cuMemHostAlloc(&word, 4096, 0), CUDA_SUCCESS);
    *static_cast<std::uint32_t*>(word) = 0;
    const auto wait = reinterpret_cast<decltype(&cuStreamWaitValue32)>(
        dlsym(dlopen(getenv("SPILLWAY_DRIVER"), RTLD_NOW | RTLD_NOLOAD), "cuStreamWaitValue32_v2"));
    EXPECT_EQ(wait(stream, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_GEQ),
              CUDA_SUCCESS);
    return static_cast<std::uint32_t*>(word);
  }

  static constexpr size_t kLongBytes = 256 * kMiB;
  CUcontext context_ = nullptr;
  CUstream slow_ = nullptr, quick_ = nullptr;
  CUdeviceptr elsewhere_ = 0;
  std::unique_ptr<JobMemory> job_;
};

// Regression: the job waited for the oldest eviction, which may end last. VGG-16 stood still for 15
// ms although other memory was free.
TEST_F(JobMemoryWaitTest, WaitForMemoryEndsWithTheFirstFreeMemory) {
  const CUdeviceptr first = Allocate(16 * kMiB), second = Allocate(32 * kMiB);
  Set(first, slow_);
  Set(second, quick_);
  Driver().cuCtxSynchronize();
  // Given two buffers being evicted, the older one behind much work
  Busy(slow_);
  Set(first, slow_);
  Set(second, quick_);
  ASSERT_TRUE(job_->allocations().FreeAsync(first, {slow_, false}));
  ASSERT_TRUE(job_->allocations().FreeAsync(second, {quick_, false}));

  Set(Allocate(24 * kMiB), quick_);

  EXPECT_EQ(Driver().cuStreamQuery(slow_), CUDA_ERROR_NOT_READY);
}

// An event serves the next operation as soon as any thread has seen it complete. That operation may
// wait for the thread that still polls the event.
TEST_F(JobMemoryWaitTest, WaitForMemoryEndsThoughItsEventIsReused) {
  // Given a job whose whole memory is freed behind two streams that wait for the program
  const CUdeviceptr first = Allocate(32 * kMiB), second = Allocate(32 * kMiB);
  volatile std::uint32_t* const words[] = {WaitWithoutHook(slow_), WaitWithoutHook(quick_)};
  Name(first, slow_, [] {});
  Name(second, quick_, [] {});
  ASSERT_TRUE(job_->allocations().FreeAsync(first, {slow_, false}));
  ASSERT_TRUE(job_->allocations().FreeAsync(second, {quick_, false}));
  const std::vector<Use> freed = job_->streams().IssuedOn({quick_, false});

  // When a thread waits for memory, and another one sees that one stream is done, and gives it more
  // to do
  const CUdeviceptr next = Allocate(4 * kMiB);
  const std::future<void> waiting = std::async(std::launch::async, [this, next] {
    Driver().cuCtxSetCurrent(context_);
    Set(next, slow_);
  });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  ProgramStreams::Completed(freed);
  job_->streams().TakeCheckpoint({quick_, false});

  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  for (volatile std::uint32_t* const word : words) *word = 1;
  waiting.wait();
}

}  // namespace
}  // namespace spillway::interposer
