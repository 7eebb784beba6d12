// Shared by the tests of the driver interface: a context, an image with two kernels, the
// statistics.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "simulator/kernels/image.h"

extern "C" unsigned long long spillway_sim_read(const char* key);

#define ASSERT_OK(call) ASSERT_EQ(call, CUDA_SUCCESS)
#define EXPECT_OK(call) EXPECT_EQ(call, CUDA_SUCCESS)

namespace spillway::simulator {

// fill(int* words, int count, int value)
inline void FillBody(const LaunchShape&, void* const* arguments) {
  int* const words = *static_cast<int* const*>(arguments[0]);
  const int count = *static_cast<const int*>(arguments[1]);
  for (int i = 0; i < count; ++i) words[i] = *static_cast<const int*>(arguments[2]);
}

// One millisecond on an H200, whatever the size.
inline KernelCost OneMillisecond(const LaunchShape&, void* const*) { return {0, 4'300'000'000}; }

inline constexpr KernelParameter kFillParameters[] = {{0, 8}, {8, 4}, {12, 4}};
inline constexpr KernelEntry kTestKernels[] = {
    {"fill", FillBody, OneMillisecond, 3, kFillParameters}};
inline constexpr Image kTestImage = {
    {'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 1, kTestKernels, 0, nullptr};

class DriverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(cuInit(0));
    CUcontext context = nullptr;
    ASSERT_OK(cuDevicePrimaryCtxRetain(&context, 0));
    ASSERT_OK(cuCtxSetCurrent(context));
    CUmodule module = nullptr;
    ASSERT_OK(cuModuleLoadData(&module, &kTestImage));
    ASSERT_OK(cuModuleGetFunction(&fill_, module, "fill"));
  }

  // Also removes a context that a test broke.
  void TearDown() override { cuDevicePrimaryCtxReset(0); }

  void Fill(CUdeviceptr words, int count, int value, CUstream stream) {
    void* parameters[] = {&words, &count, &value};
    ASSERT_OK(cuLaunchKernel(fill_, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  }

  static CUstream MakeStream() {
    CUstream stream = nullptr;
    EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
  }

  CUfunction fill_ = nullptr;
};

}  // namespace spillway::simulator
