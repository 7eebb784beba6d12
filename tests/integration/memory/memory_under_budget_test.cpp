// A program's view of its memory under a budget of 64 MiB, which CTest sets.
#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "simulator/kernels/image.h"
#include "tests/support/statistics.h"

namespace {

using spillway::simulator::Image;
using spillway::simulator::KernelEntry;
using spillway::simulator::KernelParameter;
using spillway::simulator::LaunchShape;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kBudget = 64 * kMiB;

void AddIndex(const LaunchShape&, void* const* arguments) {
  auto* words = *static_cast<std::uint32_t* const*>(arguments[0]);
  const auto count = *static_cast<const std::uint64_t*>(arguments[1]);
  for (std::uint64_t i = 0; i < count; ++i) words[i] += static_cast<std::uint32_t>(i);
}

constexpr KernelParameter kParameters[] = {{0, 8}, {8, 8}};
const KernelEntry kKernels[] = {{"add_index", AddIndex, nullptr, 2, kParameters}};
const Image kImage = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 1, kKernels, 0, nullptr};

// The statistics of the simulator.
using spillway::test::Statistics;

class MemoryUnderBudgetTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDeviceGet(&device_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, device_), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  }
  void TearDown() override {
    EXPECT_LE(Statistics("device_bytes_peak"), kBudget);
    EXPECT_EQ(Statistics("unmapped_while_in_use"), 0u);
    EXPECT_EQ(Statistics("illegal_accesses"), 0u);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(device_), CUDA_SUCCESS);
  }

  CUdeviceptr Filled(size_t bytes, unsigned int word) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, bytes), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD32(address, word, bytes / 4), CUDA_SUCCESS);
    return address;
  }
  static std::vector<std::uint32_t> Contents(CUdeviceptr address, size_t bytes) {
    std::vector<std::uint32_t> words(bytes / 4);
    EXPECT_EQ(cuMemcpyDtoH(words.data(), address, bytes), CUDA_SUCCESS);
    return words;
  }
  static bool IsAll(CUdeviceptr address, size_t bytes, std::uint32_t word) {
    const auto words = Contents(address, bytes);
    return std::all_of(words.begin(), words.end(), [word](std::uint32_t w) { return w == word; });
  }

  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

TEST_F(MemoryUnderBudgetTest, DataOfFourTimesTheBudgetSurvives) {
  std::vector<CUdeviceptr> buffers;
  for (unsigned int i = 0; i < 32; ++i) buffers.push_back(Filled(8 * kMiB, 0x1000 + i));

  for (unsigned int i = 0; i < 32; ++i)
    EXPECT_TRUE(IsAll(buffers[i], 8 * kMiB, 0x1000 + i)) << "buffer " << i;
  for (CUdeviceptr buffer : buffers) EXPECT_EQ(cuMemFree(buffer), CUDA_SUCCESS);
}

TEST_F(MemoryUnderBudgetTest, KernelsWorkOnDataThatMoves) {
  CUlibrary library;
  CUkernel kernel;
  ASSERT_EQ(cuLibraryLoadData(&library, &kImage, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(cuLibraryGetKernel(&kernel, library, "add_index"), CUDA_SUCCESS);
  constexpr size_t kBytes = 12 * kMiB;
  std::vector<CUdeviceptr> buffers;
  for (unsigned int i = 0; i < 12; ++i) buffers.push_back(Filled(kBytes, i));

  for (int round = 0; round < 3; ++round) {
    for (CUdeviceptr& buffer : buffers) {
      std::uint64_t count = kBytes / 4;
      void* parameters[] = {&buffer, &count};
      ASSERT_EQ(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                               parameters, nullptr),
                CUDA_SUCCESS);
    }
  }

  for (unsigned int i = 0; i < 12; ++i) {
    const auto words = Contents(buffers[i], kBytes);
    for (size_t w = 0; w < words.size(); w += 4099)
      ASSERT_EQ(words[w], i + 3 * w) << "buffer " << i << " word " << w;
    EXPECT_EQ(cuMemFree(buffers[i]), CUDA_SUCCESS);
  }
}

TEST_F(MemoryUnderBudgetTest, AllocationLargerThanBudgetAndHostIsOutOfMemory) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, size_t{1} << 46), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&address, ~size_t{0} - 100), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&address, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAlloc(&address, kBudget / 2), CUDA_SUCCESS)
      << "a refusal must leave everything usable";
  EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
}

TEST_F(MemoryUnderBudgetTest, OperationLargerThanTheBudgetUsesMemoryOnTheHost) {
  const CUdeviceptr a = Filled(40 * kMiB, 7), b = Filled(40 * kMiB, 9);
  EXPECT_EQ(cuMemcpyDtoD(a, b, 40 * kMiB), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(a, 40 * kMiB, 9));
  EXPECT_TRUE(IsAll(b, 40 * kMiB, 9));
  cuMemFree(a);
  cuMemFree(b);
}

TEST_F(MemoryUnderBudgetTest, MemoryInfoReportsTheBudget) {
  size_t free_before = 0, free_after = 0, total = 0;
  ASSERT_EQ(cuMemGetInfo(&free_before, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, kBudget);
  CUdeviceptr address = Filled(16 * kMiB, 0);
  ASSERT_EQ(cuMemGetInfo(&free_after, &total), CUDA_SUCCESS);
  EXPECT_EQ(free_before - free_after, 16 * kMiB);
  EXPECT_EQ(cuDeviceTotalMem(&total, device_), CUDA_SUCCESS);
  EXPECT_EQ(total, kBudget);
  std::vector<CUdeviceptr> more;
  for (int i = 0; i < 8; ++i) more.push_back(Filled(16 * kMiB, 0));
  ASSERT_EQ(cuMemGetInfo(&free_after, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, kBudget);
  EXPECT_GT(free_after, 16 * kMiB) << "another one is granted, too";
  EXPECT_LE(free_after, kBudget / 2);
  more.push_back(address);
  for (CUdeviceptr m : more) cuMemFree(m);
}

TEST_F(MemoryUnderBudgetTest, AddressRangeOfAnEvictedAllocationIsCorrect) {
  const CUdeviceptr address = Filled(5 * kMiB + 12, 3);
  std::vector<CUdeviceptr> others;
  for (int i = 0; i < 8; ++i) others.push_back(Filled(16 * kMiB, 0));
  CUdeviceptr base = 0;
  size_t bytes = 0;
  EXPECT_EQ(cuMemGetAddressRange(&base, &bytes, address + 12345), CUDA_SUCCESS);
  EXPECT_EQ(base, address);
  EXPECT_EQ(bytes, 5 * kMiB + 12);
  CUdeviceptr start = 0;
  EXPECT_EQ(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address + 4096),
            CUDA_SUCCESS);
  EXPECT_EQ(start, address);
  unsigned int type = 0;
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address), CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned int>(CU_MEMORYTYPE_DEVICE));
  others.push_back(address);
  for (CUdeviceptr other : others) cuMemFree(other);
}

TEST_F(MemoryUnderBudgetTest, FreedMemoryServesOtherSizes) {
  for (int round = 0; round < 20; ++round) {
    const size_t bytes = (round % 7 + 1) * 9 * kMiB;
    const CUdeviceptr address = Filled(bytes, static_cast<unsigned int>(round));
    EXPECT_TRUE(IsAll(address, bytes, static_cast<std::uint32_t>(round)));
    EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
  }
}

TEST_F(MemoryUnderBudgetTest, TenThousandSmallAllocationsShareSlabs) {
  std::vector<CUdeviceptr> small(10'000);
  for (CUdeviceptr& address : small) ASSERT_EQ(cuMemAlloc(&address, 1000), CUDA_SUCCESS);
  for (size_t i = 0; i < small.size(); ++i) {
    EXPECT_EQ(small[i] % 512, 0u);
    cuMemsetD32(small[i], static_cast<unsigned int>(i), 250);
  }
  for (size_t i = 0; i < small.size(); i += 97)
    EXPECT_TRUE(IsAll(small[i], 1000, static_cast<std::uint32_t>(i)));
  for (CUdeviceptr address : small) EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
  const CUdeviceptr large = Filled(60 * kMiB, 1);  // releases the empty slabs
  EXPECT_EQ(cuMemFree(large), CUDA_SUCCESS);
}

TEST_F(MemoryUnderBudgetTest, FreeingTwiceOrInTheMiddleIsTheDriversError) {
  CUdeviceptr address = Filled(4 * kMiB, 0);
  EXPECT_NE(cuMemFree(address + 512), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
  EXPECT_NE(cuMemFree(address), CUDA_SUCCESS);
}

TEST_F(MemoryUnderBudgetTest, StreamOrderedMemoryAndDestroyedStreams) {
  for (int round = 0; round < 10; ++round) {
    CUstream stream;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    std::vector<CUdeviceptr> buffers(6);
    for (CUdeviceptr& buffer : buffers) {
      ASSERT_EQ(cuMemAllocAsync(&buffer, 16 * kMiB, stream), CUDA_SUCCESS);
      ASSERT_EQ(cuMemsetD32Async(buffer, 5, 4 * kMiB, stream), CUDA_SUCCESS);
    }
    for (CUdeviceptr buffer : buffers) EXPECT_EQ(cuMemFreeAsync(buffer, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  }
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(MemoryUnderBudgetTest, TwoThreadsThatNeedTheWholeBudgetTakeTurns) {
  const auto work = [this](unsigned int seed) {
    cuCtxSetCurrent(context_);
    std::vector<CUdeviceptr> buffers;
    for (unsigned int i = 0; i < 6; ++i) buffers.push_back(Filled(24 * kMiB, seed + i));
    for (int round = 0; round < 5; ++round) {
      for (unsigned int i = 0; i + 1 < 6; i += 2) {
        EXPECT_EQ(cuMemcpyDtoD(buffers[i], buffers[i + 1], 24 * kMiB), CUDA_SUCCESS);
      }
    }
    for (unsigned int i = 0; i < 6; i += 2) EXPECT_TRUE(IsAll(buffers[i], 24 * kMiB, seed + i + 1));
    for (CUdeviceptr buffer : buffers) cuMemFree(buffer);
  };
  std::thread first(work, 100), second(work, 200);
  first.join();
  second.join();
}

// Regression: the wait for memory spun for ever, as event queries fail in a faulted context.
int ExitCodeAfterAFault() {
  CUlibrary library;
  CUkernel kernel;
  cuLibraryLoadData(&library, &kImage, nullptr, nullptr, 0, nullptr, nullptr, 0);
  cuLibraryGetKernel(&kernel, library, "add_index");
  CUdeviceptr nowhere = 0x10000, address = 0;
  std::uint64_t count = 1;
  void* parameters[] = {&nowhere, &count};
  std::vector<CUdeviceptr> buffers(8);
  for (CUdeviceptr& buffer : buffers) cuMemAlloc(&buffer, 12 * kMiB);
  for (CUdeviceptr buffer : buffers) cuMemsetD32Async(buffer, 1, 3 * kMiB, nullptr);
  cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters,
                 nullptr);
  const CUresult waited = cuCtxSynchronize();
  const CUresult touched = cuMemsetD32(buffers[0], 1, 1), allocated = cuMemAlloc(&address, 1000);
  const bool told =
      waited == CUDA_ERROR_ILLEGAL_ADDRESS && touched == waited && allocated == waited;
  return told ? 0 : 1;
}

TEST_F(MemoryUnderBudgetTest, FaultIsReportedAndBlocksNoCall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(ExitCodeAfterAFault()), testing::ExitedWithCode(0), "");
}

TEST_F(MemoryUnderBudgetTest, ContextResetFreesEverythingForAFreshStart) {
  Filled(40 * kMiB, 1);
  Filled(40 * kMiB, 2);
  EXPECT_EQ(cuDevicePrimaryCtxReset(device_), CUDA_SUCCESS);
  EXPECT_EQ(Statistics("device_bytes_now"), 0u);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, device_), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  const CUdeviceptr address = Filled(40 * kMiB, 3);
  EXPECT_TRUE(IsAll(address, 40 * kMiB, 3));
  EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
}

}  // namespace
