// Programs with more than one context, threads without one, and contexts that end.
#include <thread>

#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

void Increment(const simulator::LaunchShape&, void* const* arguments) {
  auto* words = *static_cast<std::uint32_t* const*>(arguments[0]);
  for (size_t i = 0; i < 16 * kMiB / 4; ++i) ++words[i];
}
simulator::KernelCost Seconds(const simulator::LaunchShape&, void* const*) {
  return {uint64_t{1} << 50, 0};
}
constexpr simulator::KernelParameter kPointer[] = {{0, 8}};
SPILLWAY_ONE_KERNEL(kSlowImage, "slow_increment", Increment, Seconds, 1, kPointer);

using ContextsTest = JobTest;

CUcontext NewContext(CUdevice device) {
  CUcontext context = nullptr;
  EXPECT_EQ(cuCtxCreate_v4(&context, nullptr, 0, device), CUDA_SUCCESS);
  return context;
}

// A long kernel ran in the managed context's default stream. The program waited for the default
// stream of another context. That counted as completion of all streams of that handle, and memory
// was unmapped under the kernel.
TEST_F(ContextsTest, WaitForAnotherContextsDefaultStreamCompletesNothingHere) {
  Start();
  const CUfunction slow = Kernel(&kSlowImage, "slow_increment");
  CUdeviceptr used = Filled(16 * kMiB, 1);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  void* parameters[] = {&used};
  ASSERT_EQ(Launch(slow, nullptr, parameters), CUDA_SUCCESS);

  NewContext(device_);
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(used), CUDA_SUCCESS);
  const CUdeviceptr whole = Filled(60 * kMiB, 7);

  EXPECT_TRUE(IsAll(whole, 60 * kMiB, 7));
  EXPECT_EQ(Statistics("unmapped_while_in_use"), 0u);
}

// An allocation in a second context evicted data of the first one. The pinned buffers with that
// data belonged to the second context, and were lost with it.
TEST_F(ContextsTest, DataEvictedByAnotherContextOutlivesThatContext) {
  Start();
  const auto buffers = FilledBuffers(8, 8 * kMiB);
  const CUcontext other = NewContext(device_);
  Allocated(24 * kMiB);
  ASSERT_EQ(cuCtxDestroy(other), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);

  for (unsigned int i = 0; i < buffers.size(); ++i)
    EXPECT_TRUE(IsAll(buffers[i], 8 * kMiB, i)) << i;
}

// The memory stayed charged against the budget.
TEST_F(ContextsTest, DestroyingAnotherContextReleasesItsCharge) {
  Start();
  Filled(4 * kMiB, 1);
  for (int round = 0; round < 4; ++round) {
    const CUcontext other = NewContext(device_);
    Allocated(32 * kMiB);
    ASSERT_EQ(cuCtxDestroy(other), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  }
}

// The driver refuses to destroy the primary context, but all memory was given up before that call.
TEST_F(ContextsTest, RefusedDestructionOfThePrimaryContextLosesNothing) {
  Start();
  const CUdeviceptr buffer = Filled(8 * kMiB, 3);
  EXPECT_EQ(cuCtxDestroy(context_), CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(buffer, 8 * kMiB, 3));
}

// A thread without a context asked for memory. Memory was evicted for it in vain, and it received
// "out of memory".
TEST_F(ContextsTest, ThreadWithoutContextGetsTheDriversAnswers) {
  Start();
  FilledBuffers(8, 8 * kMiB);
  std::thread([] {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, 48 * kMiB), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuMemAlloc(&address, 128 * kMiB), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
}

// The thread gets that error whether or not its call's memory is evicted.
TEST_F(ContextsTest, CopyWithoutContextIsNotOutOfMemory) {
  Start();
  const auto buffers = FilledBuffers(12, 8 * kMiB);
  std::thread([&] {
    EXPECT_EQ(cuMemsetD32(buffers[0], 1, 1), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuMemsetD32(buffers[11], 1, 1), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
  for (unsigned int i = 0; i < buffers.size(); ++i)
    EXPECT_TRUE(IsAll(buffers[i], 8 * kMiB, i)) << i;
}

// A request in another context that no eviction could serve still evicted everything before it was
// refused.
TEST_F(ContextsTest, HopelessRequestInAnotherContextEvictsNothing) {
  Start();
  FilledBuffers(7, 8 * kMiB);
  NewContext(device_);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 65 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(Statistics("d2h_bytes"), 0u);
}

// Bytes were charged: sixty allocations exceeded the budget by half a granule each.
TEST_F(ContextsTest, AllocationsInAnotherContextAreChargedInGranules) {
  Start();
  Filled(2 * kMiB, 1);
  NewContext(device_);
  CUdeviceptr address = 0;
  for (int i = 0; i < 60; ++i) cuMemAlloc(&address, kMiB + 1);
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
}

// A wait for the managed context also counted as completion of other contexts' streams, which still
// used its memory.
TEST_F(ContextsTest, WaitForTheContextCompletesNoOtherContextsWork) {
  Start();
  CUdeviceptr used = Filled(24 * kMiB, 1);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  const CUcontext other = NewContext(device_);
  CUstream stream;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  void* parameters[] = {&used};
  ASSERT_EQ(Launch(Kernel(&kSlowImage, "slow_increment"), stream, parameters), CUDA_SUCCESS);

  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(used), CUDA_SUCCESS);
  Filled(60 * kMiB, 7);

  ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(Statistics("illegal_accesses"), 0u);
}

// A refused free reduced the charge, and the budget was given out twice.
TEST_F(ContextsTest, RefusedFreeInAnotherContextStaysCharged) {
  Start();
  Filled(2 * kMiB, 1);
  NewContext(device_);
  const CUdeviceptr elsewhere = Allocated(40 * kMiB);
  std::thread([&] { EXPECT_EQ(cuMemFree(elsewhere), CUDA_ERROR_INVALID_CONTEXT); }).join();
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  FilledBuffers(4, 8 * kMiB);
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
}

// A thread without a context freed memory. Querying completion fails there, which counted as the
// end of the context and of all its work.
TEST_F(ContextsTest, FreeingWithoutContextCompletesNothing) {
  Start();
  const CUfunction slow = Kernel(&kSlowImage, "slow_increment");
  FilledBuffers(11, 8 * kMiB);
  CUdeviceptr used = Filled(16 * kMiB, 1);
  const CUdeviceptr small = Filled(2 * kMiB, 1);
  CUstream stream;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  void* parameters[] = {&used};
  for (int i = 0; i < 8; ++i) ASSERT_EQ(Launch(slow, stream, parameters), CUDA_SUCCESS);
  std::thread([&] { cuMemFree(small); }).join();

  ASSERT_EQ(cuMemFree(used), CUDA_SUCCESS);
  Filled(60 * kMiB, 1);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(Statistics("illegal_accesses"), 0u);
}

}  // namespace
}  // namespace spillway::regressions
