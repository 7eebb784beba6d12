// The runtime's requests to the driver, recorded by a fake driver.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/paths.h"

namespace {

template <typename Function>
Function Find(const char* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(dlopen(library, RTLD_NOW), name));
}

std::string Requests() {
  return Find<const char* (*)()>("libcuda.so.1", "noting_driver_requests")();
}

// The driver entry that `call` reached, as "name ver=N flags=N".
template <typename Call>
std::string DriverCallOf(Call call) {
  int count = 0;
  cudaGetDeviceCount(&count);  // everything is requested and initialised by now
  Find<void (*)()>("libcuda.so.1", "noting_driver_forget_calls")();
  call();
  return Find<const char* (*)()>("libcuda.so.1", "noting_driver_calls")();
}

TEST(RuntimeRequestsTest, RequestsNothingBeyondTheRealRuntimesRequests) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  std::set<std::string> real;
  std::ifstream fixture(spillway::test::Fixture("cudart13_requests.txt"));
  for (std::string line; std::getline(fixture, line);) real.insert(line);
  ASSERT_GT(real.size(), 400u);

  std::istringstream ours(Requests());
  int asked = 0;
  for (std::string line; std::getline(ours, line); ++asked) EXPECT_TRUE(real.count(line)) << line;
  EXPECT_GT(asked, 130);
}

TEST(RuntimeRequestsTest, PerThreadNamesReachTheDriversPerThreadVariants) {
  void* const runtime = dlopen("libcudart.so.13", RTLD_NOW);
  auto* const copy = reinterpret_cast<decltype(&cudaMemcpy)>(dlsym(runtime, "cudaMemcpy_ptds"));
  auto* const fill =
      reinterpret_cast<decltype(&cudaMemsetAsync)>(dlsym(runtime, "cudaMemsetAsync_ptsz"));
  auto* const record =
      reinterpret_cast<decltype(&cudaEventRecord)>(dlsym(runtime, "cudaEventRecord_ptsz"));
  ASSERT_TRUE(copy && fill && record);
  char from[4] = {}, to[4] = {};

  EXPECT_EQ(DriverCallOf([&] { copy(to, from, 4, cudaMemcpyHostToDevice); }),
            "cuMemcpyHtoD ver=7000 flags=2\n");
  EXPECT_EQ(DriverCallOf([&] { cudaMemcpy(to, from, 4, cudaMemcpyHostToDevice); }),
            "cuMemcpyHtoD ver=3020 flags=0\n");
  EXPECT_EQ(DriverCallOf([&] { fill(to, 0, 4, nullptr); }), "cuMemsetD8Async ver=7000 flags=2\n");
  EXPECT_EQ(DriverCallOf([&] { record(nullptr, nullptr); }), "cuEventRecord ver=7000 flags=2\n");
}

TEST(RuntimeRequestsTest, ChoosesTheCopyByItsKind) {
  char from[4] = {}, to[4] = {};
  const auto kind = [&](cudaMemcpyKind kind) {
    return DriverCallOf([&] { cudaMemcpyAsync(to, from, 4, kind, nullptr); });
  };

  EXPECT_EQ(kind(cudaMemcpyHostToDevice), "cuMemcpyHtoDAsync ver=3020 flags=0\n");
  EXPECT_EQ(kind(cudaMemcpyDeviceToHost), "cuMemcpyDtoHAsync ver=3020 flags=0\n");
  EXPECT_EQ(kind(cudaMemcpyDeviceToDevice), "cuMemcpyDtoDAsync ver=3020 flags=0\n");
  EXPECT_EQ(kind(cudaMemcpyDefault), "cuMemcpyAsync ver=4000 flags=0\n");
}

TEST(RuntimeRequestsTest, ReturnsNotSupportedWhereTheDriverLacksTheFunction) {
  int device = 0;
  EXPECT_EQ(cudaStreamGetDevice(nullptr, &device), cudaErrorNotSupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

TEST(LastErrorTest, IsClearedByGettingButNotByPeeking) {
  void* pointer = &pointer;
  ASSERT_EQ(cudaMalloc(&pointer, 16), cudaErrorMemoryAllocation);
  EXPECT_EQ(pointer, nullptr);
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);

  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(LastErrorTest, HoldsTheLatestError) {
  ASSERT_EQ(cudaEventQuery(nullptr), cudaErrorNotReady);
  ASSERT_EQ(cudaSetDevice(3), cudaErrorInvalidDevice);

  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

// Last in the file and in a child: a killed context never recovers.
TEST(LastErrorDeathTest, StaysWhenTheContextIsKilled) {
  EXPECT_EXIT(
      {
        const bool stays = cudaDeviceSynchronize() == cudaErrorIllegalAddress &&
                           cudaGetLastError() == cudaErrorIllegalAddress &&
                           cudaGetLastError() == cudaErrorIllegalAddress;
        std::exit(stays ? 7 : 8);
      },
      ::testing::ExitedWithCode(7), "");
}

}  // namespace
