// The driver holds arrays; Spillway evicts memory for them, charges them, and restores it.
#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

using ArraysTest = JobTest;

CUresult CreateFloats(CUarray* array, size_t width, size_t height) {
  const CUDA_ARRAY_DESCRIPTOR descriptor{width, height, CU_AD_FORMAT_FLOAT, 1};
  return cuArrayCreate(array, &descriptor);
}

TEST_F(ArraysTest, BuffersAreEvictedForAnArrayAndRestored) {
  Start();
  const auto buffers = FilledBuffers(7, 8 * kMiB);
  CUarray array = nullptr;
  ASSERT_EQ(CreateFloats(&array, 2048, 4096), CUDA_SUCCESS);  // 32 MiB
  for (unsigned i = 0; i < 7; ++i) EXPECT_TRUE(IsAll(buffers[i], 8 * kMiB, i));
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
}

TEST_F(ArraysTest, ArrayKeepsItsTexelsWhileBuffersMove) {
  Start();
  CUarray array = nullptr;
  ASSERT_EQ(CreateFloats(&array, 1024, 4096), CUDA_SUCCESS);
  const std::vector<float> values(1024 * 4096, 2.5f);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = values.data();
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 4096;
  copy.Height = 4096;
  ASSERT_EQ(cuMemcpy2D(&copy), CUDA_SUCCESS);
  const auto buffers = FilledBuffers(12, 8 * kMiB);
  CUDA_MEMCPY2D out{};
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  out.srcArray = array;
  out.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  out.dstDevice = buffers[0];
  out.WidthInBytes = 4096;
  out.Height = 2048;
  ASSERT_EQ(cuMemcpy2D(&out), CUDA_SUCCESS);
  std::uint32_t word = 0;
  const float expected = 2.5f;
  memcpy(&word, &expected, sizeof word);
  EXPECT_TRUE(IsAll(buffers[0], 8 * kMiB, word));
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
}

TEST_F(ArraysTest, ArrayBeyondTheBudgetIsOutOfMemory) {
  Start();
  Filled(8 * kMiB, 1);
  CUarray array = nullptr;
  EXPECT_EQ(CreateFloats(&array, 8192, 4096), CUDA_ERROR_OUT_OF_MEMORY);  // 128 MiB
  EXPECT_EQ(CreateFloats(&array, 1024, 1024), CUDA_SUCCESS);
}

TEST_F(ArraysTest, DestroyedArraysReleaseTheirCharge) {
  Start();
  for (int i = 0; i < 10; ++i) {
    CUarray array = nullptr;
    ASSERT_EQ(CreateFloats(&array, 2048, 4096), CUDA_SUCCESS);
    ASSERT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
    CUmipmappedArray mipmapped = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR descriptor{2048, 2048, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    ASSERT_EQ(cuMipmappedArrayCreate(&mipmapped, &descriptor, 12), CUDA_SUCCESS);
    ASSERT_EQ(cuMipmappedArrayDestroy(mipmapped), CUDA_SUCCESS);
  }
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
}

TEST_F(ArraysTest, FreeMemoryCountsArrays) {
  Start();
  Filled(2 * kMiB, 1);
  size_t before = 0, during = 0, total = 0;
  ASSERT_EQ(cuMemGetInfo(&before, &total), CUDA_SUCCESS);
  CUarray array = nullptr;
  ASSERT_EQ(CreateFloats(&array, 2048, 2048), CUDA_SUCCESS);
  ASSERT_EQ(cuMemGetInfo(&during, &total), CUDA_SUCCESS);
  EXPECT_EQ(before - during, 16 * kMiB);
}

// Memory beyond the budget is granted, and the driver keeps it on the host.
TEST_F(ArraysTest, ManagedMemoryBeyondTheBudgetIsGranted) {
  Start();
  const auto buffers = FilledBuffers(6, 8 * kMiB);
  CUdeviceptr small = 0, large = 0;
  ASSERT_EQ(cuMemAllocManaged(&small, 16 * kMiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocManaged(&large, 128 * kMiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  *reinterpret_cast<volatile std::uint32_t*>(large) = 5;
  ASSERT_EQ(cuMemsetD32(large + 4, 6, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(*reinterpret_cast<volatile std::uint32_t*>(large + 4), 6u);
  for (unsigned i = 0; i < 6; ++i) EXPECT_TRUE(IsAll(buffers[i], 8 * kMiB, i));
  EXPECT_EQ(cuMemFree(small), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(large), CUDA_SUCCESS);
}

}  // namespace
}  // namespace spillway::regressions
