// Streams that wait for a word from the program, in a job with more memory than its budget.
#include <chrono>

#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

using simulator::KernelParameter;
using simulator::LaunchShape;

constexpr size_t kBytes = 8 * kMiB;

void CountBody(const LaunchShape&, void* const* arguments) {
  auto* const words = *static_cast<std::uint32_t* const*>(arguments[0]);
  for (int i = 0; i < 1024; ++i) words[i] += 1;
}
constexpr KernelParameter kOne[] = {{0, 8}};
SPILLWAY_ONE_KERNEL(kCountImage, "count", CountBody, nullptr, 1, kOne);

using HostFlagsTest = JobTest;

// Each launch that needed memory behind such a wait waited half a second in vain: 60 rounds took
// more than two minutes.
TEST_F(HostFlagsTest, LaunchesBehindAWaitForTheProgramDoNotAllTimeOut) {
  constexpr std::uint32_t kRounds = 24;
  setenv("SPILLWAY_PARK", "host", 1);
  Start();
  const CUfunction count = Kernel(&kCountImage, "count");
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  void* flag = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&flag, 64, 0), CUDA_SUCCESS);
  auto* const word = static_cast<volatile std::uint32_t*>(flag);
  *word = 0;
  auto buffers = FilledBuffers(12, kBytes);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);

  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    ASSERT_EQ(cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(flag), round,
                                  CU_STREAM_WAIT_VALUE_GEQ),
              CUDA_SUCCESS);
    for (CUdeviceptr& buffer : buffers) {
      void* parameters[] = {&buffer};
      ASSERT_EQ(Launch(count, stream, parameters), CUDA_SUCCESS);
    }
    *word = round;
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;

  for (std::uint32_t i = 0; i < 12; ++i) EXPECT_TRUE(IsAll(buffers[i], 4096, i + kRounds)) << i;
  EXPECT_LT(elapsed.count(), 8) << "one wait in vain of half a second in each round are 12";
}

// A faulted context gives no memory at all.
TEST_F(HostFlagsTest, AllocationAfterAFaultFailsWithTheContextsError) {
  Start();
  const CUfunction count = Kernel(&kCountImage, "count");
  const CUdeviceptr freed = Filled(kBytes, 1);
  const CUdeviceptr small = Allocated(4096);
  ASSERT_EQ(cuMemFree(freed), CUDA_SUCCESS);
  CUdeviceptr nowhere = 64;
  void* parameters[] = {&nowhere};
  ASSERT_EQ(Launch(count, nullptr, parameters), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);

  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, kBytes), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemAlloc(&address, 4096), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemAllocAsync(&address, kBytes, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  size_t pitch = 0;
  EXPECT_EQ(cuMemAllocPitch(&address, &pitch, 1000, 1000, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(small, 0u);
}

// No work is left to be asked about then, and the context still gives no memory.
TEST_F(HostFlagsTest, AllocationFailsAfterAFreeHasMetTheFault) {
  Start();
  const CUfunction count = Kernel(&kCountImage, "count");
  CUstream streams[2] = {};
  auto buffers = FilledBuffers(4, kBytes);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    void* parameters[] = {&buffers[i]};
    ASSERT_EQ(Launch(count, streams[i], parameters), CUDA_SUCCESS);
  }
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);

  CUdeviceptr nowhere = 64;
  void* parameters[] = {&nowhere};
  ASSERT_EQ(Launch(count, streams[0], parameters), CUDA_SUCCESS);
  cuMemFree(buffers[2]);  // behind the launch: an event tells when it is complete
  CUresult result = CUDA_SUCCESS;
  CUdeviceptr address = 0;
  for (int i = 0; i < 1000 && result == CUDA_SUCCESS; ++i) result = cuMemAlloc(&address, 4096);
  ASSERT_EQ(result, CUDA_ERROR_ILLEGAL_ADDRESS);
  cuMemFree(buffers[3]);

  EXPECT_EQ(cuMemAlloc(&address, kBytes), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemAlloc(&address, 4096), CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace
}  // namespace spillway::regressions
