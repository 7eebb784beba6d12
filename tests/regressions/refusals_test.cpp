// Requests for available memory that were refused, and waits that never ended.
#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

using RefusalsTest = JobTest;

// Read data keeps its host copy. These spare copies filled the host limit, and the next eviction
// found no host memory.
TEST_F(RefusalsTest, ReadingAllBuffersInTurnNeedsHostMemoryForEvictedOnesOnly) {
  SetSize("SPILLWAY_HOST_LIMIT", 64 * kMiB);
  Start();
  const auto buffers = FilledBuffers(14, 8 * kMiB);
  std::vector<std::uint32_t> words(2 * kMiB);

  for (int round = 0; round < 3; ++round) {
    for (unsigned int i = 0; i < buffers.size(); ++i) {
      ASSERT_EQ(cuMemcpyDtoHAsync(words.data(), buffers[i], 8 * kMiB, nullptr), CUDA_SUCCESS)
          << round << " " << i;
      ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
      ASSERT_EQ(words[12345], i);
    }
  }
}

// Allocations were granted up to budget plus host limit. To restore one, another must be evicted
// first. But the copies of the evicted ones filled the host limit to the last byte, so no step was
// possible.
TEST_F(RefusalsTest, GrantedMemoryIsUsableAtATinyHostLimit) {
  SetSize("SPILLWAY_HOST_LIMIT", 4 * kMiB);
  Start();
  std::vector<CUdeviceptr> buffers;
  for (CUdeviceptr buffer; cuMemAlloc(&buffer, 2 * kMiB) == CUDA_SUCCESS;)
    buffers.push_back(buffer);

  for (unsigned int round = 0; round < 3; ++round) {
    for (unsigned int i = 0; i < buffers.size(); ++i) {
      ASSERT_EQ(cuMemsetD32(buffers[i], round + i, kMiB / 2), CUDA_SUCCESS)
          << round << " " << i << " of " << buffers.size();
    }
  }
  for (unsigned int i = 0; i < buffers.size(); ++i)
    EXPECT_TRUE(IsAll(buffers[i], 2 * kMiB, 2 + i)) << i;
}

// The same with sizes that do not divide each other: the sums were granted, fragmentation refused
// them.
TEST_F(RefusalsTest, GrantedMemoryOfManySizesIsUsable) {
  SetSize("SPILLWAY_HOST_LIMIT", 64 * kMiB);
  Start();
  constexpr size_t kSizes[] = {2, 6, 14, 22, 4, 10, 18};
  std::vector<std::pair<CUdeviceptr, size_t>> buffers;
  for (size_t i = 0;; ++i) {
    CUdeviceptr buffer;
    const size_t bytes = kSizes[i % 7] * kMiB;
    if (cuMemAlloc(&buffer, bytes) != CUDA_SUCCESS) break;
    buffers.push_back({buffer, bytes});
  }
  for (unsigned int round = 0; round < 4; ++round) {
    for (unsigned int i = 0; i < buffers.size(); ++i) {
      const auto [buffer, bytes] = buffers[(i * (round + 1)) % buffers.size()];
      ASSERT_EQ(cuMemsetD32(buffer, 1, bytes / 4), CUDA_SUCCESS)
          << round << " " << i << " of " << buffers.size();
    }
  }
}

// Another tenant held part of the device. Creating memory failed within the budget, and the job did
// not evict its own memory to continue with what it had.
TEST_F(RefusalsTest, FullDeviceActsAsASmallerBudget) {
  SetSize("SPILLWAY_SIM_CAPACITY", 48 * kMiB);
  SetSize("SPILLWAY_BUDGET", 48 * kMiB);
  Start();
  CUmemGenericAllocationHandle tenant;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  ASSERT_EQ(cuMemCreate(&tenant, 16 * kMiB, &properties, 0), CUDA_SUCCESS);

  const auto buffers = FilledBuffers(10, 8 * kMiB);

  for (unsigned int i = 0; i < buffers.size(); ++i)
    EXPECT_TRUE(IsAll(buffers[i], 8 * kMiB, i)) << i;
}

void Touch(const simulator::LaunchShape&, void* const* arguments) {
  ++**static_cast<std::uint32_t* const*>(arguments[0]);
}
constexpr simulator::KernelParameter kPointer[] = {{0, 8}};
simulator::KernelCost Slow(const simulator::LaunchShape&, void* const*) {
  return {uint64_t{1} << 44, 0};
}
SPILLWAY_ONE_KERNEL(kTouchImage, "touch", Touch, Slow, 1, kPointer);

// A kernel of the program faulted during an eviction. No event of the context ever completes after
// that. The call that waited for one hung instead of returning the error.
TEST_F(RefusalsTest, FaultDuringAnEvictionIsReported) {
  Start();
  const CUfunction touch = Kernel(&kTouchImage, "touch");
  const auto buffers = FilledBuffers(12, 8 * kMiB);
  CUdeviceptr nowhere = 0;
  ASSERT_EQ(cuMemAddressReserve(&nowhere, 2 * kMiB, 0, 0, 0), CUDA_SUCCESS);
  void* parameters[] = {&nowhere};
  ASSERT_EQ(Launch(touch, nullptr, parameters), CUDA_SUCCESS);

  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < buffers.size() && result == CUDA_SUCCESS; ++i)
    result = cuMemsetD32(buffers[i], 9, 1);

  if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
  EXPECT_EQ(result, CUDA_ERROR_ILLEGAL_ADDRESS);
}

// The same with memory freed behind the faulting kernel.
TEST_F(RefusalsTest, FaultBeforeAFreeIsReported) {
  Start();
  const CUfunction touch = Kernel(&kTouchImage, "touch");
  const CUdeviceptr freed = Filled(40 * kMiB, 1);
  CUdeviceptr nowhere = 0;
  ASSERT_EQ(cuMemAddressReserve(&nowhere, 2 * kMiB, 0, 0, 0), CUDA_SUCCESS);
  void* parameters[] = {&nowhere};
  ASSERT_EQ(Launch(touch, nullptr, parameters), CUDA_SUCCESS);
  CUdeviceptr next = 0;
  CUresult result = cuMemFree(freed);
  if (result == CUDA_SUCCESS) result = cuMemAlloc(&next, 48 * kMiB);
  if (result == CUDA_SUCCESS) result = cuMemsetD32(next, 1, 1);
  if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
  EXPECT_EQ(result, CUDA_ERROR_ILLEGAL_ADDRESS);
}

// A stream waited for a word that the program was about to write. The buffer used before that wait
// was the oldest, so it was evicted, behind an event recorded after the wait. The program never
// came to write the word.
TEST_F(RefusalsTest, WorkBehindAWaitForTheProgramIsNotAwaited) {
  Start();
  const auto buffers = FilledBuffers(8, 8 * kMiB);
  const CUdeviceptr more = Allocated(8 * kMiB);
  CUstream stream;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  std::uint32_t* word = nullptr;
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemHostAlloc(reinterpret_cast<void**>(&word), 4096, CU_MEMHOSTALLOC_DEVICEMAP),
            CUDA_SUCCESS);
  ASSERT_EQ(cuMemHostGetDevicePointer(&address, word, 0), CUDA_SUCCESS);
  *word = 0;
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32Async(buffers[0], 5, 1, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitValue32(stream, address, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  std::vector<std::uint32_t> words(1);
  CUstream reader;
  ASSERT_EQ(cuStreamCreate(&reader, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  for (size_t i = 1; i < buffers.size(); ++i)
    cuMemcpyDtoHAsync(words.data(), buffers[i], 4, reader);

  EXPECT_EQ(cuMemsetD32Async(more, 1, 1, reader), CUDA_SUCCESS);
  *word = 1;
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

// A stream that waited for the program blocked the calls of other streams for ever. The range used
// behind the wait was chosen for eviction, and all later copies queued behind its copy.
TEST_F(RefusalsTest, EvictionsContinueBesideAStreamThatWaitsForTheProgram) {
  setenv("SPILLWAY_PARK", "off", 1);
  Start();
  constexpr size_t kBytes = 8 * kMiB;
  cuuint32_t* flag = nullptr;
  ASSERT_EQ(cuMemHostAlloc(reinterpret_cast<void**>(&flag), 4096, CU_MEMHOSTALLOC_DEVICEMAP),
            CUDA_SUCCESS);
  *flag = 0;
  CUdeviceptr flag_address;
  ASSERT_EQ(cuMemHostGetDevicePointer(&flag_address, flag, 0), CUDA_SUCCESS);
  const auto buffers = FilledBuffers(12, kBytes);
  CUstream held, work;
  ASSERT_EQ(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitValue32(held, flag_address, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32Async(buffers[0], 77, kBytes / 4, held), CUDA_SUCCESS);

  for (unsigned int round = 0; round < 3; ++round) {
    for (size_t i = 1; i < buffers.size(); ++i) {
      ASSERT_EQ(cuMemsetD32Async(buffers[i], round, kBytes / 4, work), CUDA_SUCCESS);
      ASSERT_EQ(cuStreamSynchronize(work), CUDA_SUCCESS);
    }
  }

  *static_cast<volatile cuuint32_t*>(flag) = 1;
  ASSERT_EQ(cuStreamSynchronize(held), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(buffers[0], kBytes, 77));
  EXPECT_TRUE(IsAll(buffers[1], kBytes, 2));
}

// Added to the budget, the largest number wrapped around to almost nothing.
TEST_F(RefusalsTest, LargestHostLimitIsNoLimit) {
  setenv("SPILLWAY_HOST_LIMIT", "18446744073709551615", 1);
  Start();
  FilledBuffers(12, 8 * kMiB);
}

}  // namespace
}  // namespace spillway::regressions
