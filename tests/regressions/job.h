// Shared by the regression tests: a job with its own budget on the simulated GPU, and its
// statistics.
//
// On each test's main thread. One test per process: the environment is read once.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "simulator/kernels/image.h"
#include "tests/support/paths.h"
#include "tests/support/statistics.h"

namespace spillway::regressions {

inline constexpr size_t kMiB = size_t{1} << 20;

using spillway::test::Statistics;

inline void SetSize(const char* name, size_t bytes) {
  setenv(name, std::to_string(bytes).c_str(), 1);
}

// 64 MiB unless the test says otherwise, in the primary context.
class JobTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("SPILLWAY_DRIVER", test::SimulatedDriver().c_str(), 0);
    setenv("SPILLWAY_SIM_PROFILE", "a100", 0);
    SetSize("SPILLWAY_BUDGET", 64 * kMiB);
  }

  void Start() {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDeviceGet(&device_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, device_), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  }

  static CUdeviceptr Allocated(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, bytes), CUDA_SUCCESS);
    return address;
  }
  static CUdeviceptr Filled(size_t bytes, unsigned int word) {
    const CUdeviceptr address = Allocated(bytes);
    EXPECT_EQ(cuMemsetD32(address, word, bytes / 4), CUDA_SUCCESS);
    return address;
  }
  static std::vector<CUdeviceptr> FilledBuffers(int count, size_t bytes) {
    std::vector<CUdeviceptr> buffers;
    for (int i = 0; i < count; ++i) buffers.push_back(Filled(bytes, static_cast<unsigned int>(i)));
    return buffers;
  }
  static bool IsAll(CUdeviceptr address, size_t bytes, std::uint32_t word) {
    std::vector<std::uint32_t> words(bytes / 4);
    EXPECT_EQ(cuMemcpyDtoH(words.data(), address, bytes), CUDA_SUCCESS);
    return std::all_of(words.begin(), words.end(), [word](std::uint32_t w) { return w == word; });
  }

  static CUfunction Kernel(const simulator::Image* image, const char* name) {
    CUmodule module;
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, image), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
    return function;
  }
  static CUresult Launch(CUfunction function, CUstream stream, void** parameters) {
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  }

  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

#define SPILLWAY_ONE_KERNEL(variable, name, body, cost, count, parameters) \
  const ::spillway::simulator::KernelEntry variable##Entry[] = {           \
      {name, body, cost, count, parameters}};                              \
  const ::spillway::simulator::Image variable = {                          \
      {'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 1, variable##Entry, 0, nullptr}

}  // namespace spillway::regressions
