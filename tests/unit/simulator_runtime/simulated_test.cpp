// The runtime on the simulated driver.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace {

TEST(SimulatedRuntimeTest, ZeroBytesGetNoMemory) {
  void* pointer = &pointer;
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&pointer, 0), cudaSuccess);
  EXPECT_EQ(pointer, nullptr);
}

TEST(SimulatedRuntimeTest, ReportsThePropertiesOfTheProfile) {
  cudaDeviceProp properties;
  std::memset(&properties, 0x5a, sizeof properties);
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);

  EXPECT_STRNE(properties.name, "");
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_EQ(properties.maxThreadsPerBlock, 1024);
  EXPECT_EQ(properties.multiProcessorCount, 132);
  EXPECT_GT(properties.totalGlobalMem, std::size_t{1} << 30);
  EXPECT_EQ(properties.unifiedAddressing, 1);
  EXPECT_EQ(properties.reserved[0], 0);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 9), cudaErrorInvalidDevice);
}

TEST(SimulatedRuntimeTest, CopiesPitchedRowsToTheDeviceAndBack) {
  void* device = nullptr;
  std::size_t pitch = 0;
  ASSERT_EQ(cudaMallocPitch(&device, &pitch, 100, 8), cudaSuccess);
  EXPECT_GE(pitch, 100u);
  std::vector<char> rows(8 * 100), back(8 * 100);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<char>(i);

  ASSERT_EQ(cudaMemcpy2D(device, pitch, rows.data(), 100, 100, 8, cudaMemcpyHostToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaMemset2D(static_cast<char*>(device) + 10, pitch, 7, 5, 8), cudaSuccess);
  ASSERT_EQ(cudaMemcpy2D(back.data(), 100, device, pitch, 100, 8, cudaMemcpyDeviceToHost),
            cudaSuccess);

  EXPECT_EQ(back[9], rows[9]);
  EXPECT_EQ(back[10], 7);
  EXPECT_EQ(back[7 * 100 + 14], 7);
  EXPECT_EQ(back[7 * 100 + 15], rows[7 * 100 + 15]);
  EXPECT_EQ(cudaMemcpy2D(device, 50, rows.data(), 100, 100, 8, cudaMemcpyHostToDevice),
            cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(SimulatedRuntimeTest, ReportsPointerAttributes) {
  void* device = nullptr;
  void* pinned = nullptr;
  int ordinary = 0;
  ASSERT_EQ(cudaMalloc(&device, 1 << 20), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 4096), cudaSuccess);
  cudaPointerAttributes attributes;

  ASSERT_EQ(cudaPointerGetAttributes(&attributes, device), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  EXPECT_EQ(attributes.devicePointer, device);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, pinned), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.hostPointer, pinned);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, &ordinary), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(SimulatedRuntimeTest, AllocatesInStreamOrderFromTheDefaultPool) {
  cudaMemPool_t pool = nullptr;
  cudaStream_t stream = nullptr;
  void* pointer = nullptr;
  unsigned long long keep = ~0ull, read = 0;
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
  ASSERT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), cudaSuccess);
  ASSERT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &read), cudaSuccess);
  EXPECT_EQ(read, keep);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaMallocAsync(&pointer, 1 << 20, stream), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(pointer, 3, 1 << 20, stream), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(pointer, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(SimulatedRuntimeTest, KeepsErrorsPerThread) {
  ASSERT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  cudaError_t elsewhere = cudaErrorUnknown;
  std::thread([&] { elsewhere = cudaGetLastError(); }).join();

  EXPECT_EQ(elsewhere, cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST(SimulatedRuntimeTest, RefusesLaunchesOfUnknownFunctionsAndEmptyShapes) {
  const auto* const unknown = reinterpret_cast<const void*>(&std::memcmp);
  EXPECT_EQ(cudaLaunchKernel(unknown, dim3(1), dim3(1), nullptr, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaLaunchKernel(unknown, dim3(0), dim3(1), nullptr, 0, nullptr),
            cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
}

TEST(SimulatedRuntimeTest, LooksUpDriverFunctions) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status;
  ASSERT_EQ(
      cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault, &status),
      cudaSuccess);
  EXPECT_NE(function, nullptr);
  EXPECT_EQ(status, cudaDriverEntryPointSuccess);
  ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, 12000, cudaEnableDefault,
                                             &status),
            cudaSuccess);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
}

TEST(SimulatedRuntimeTest, WorksAgainAfterAReset) {
  void* pointer = nullptr;
  ASSERT_EQ(cudaMalloc(&pointer, 1 << 20), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&pointer, 1 << 20), cudaSuccess);
  EXPECT_EQ(cudaMemset(pointer, 0, 1 << 20), cudaSuccess);
  EXPECT_EQ(cudaFree(pointer), cudaSuccess);
}

}  // namespace
