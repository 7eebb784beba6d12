// How processes start and end: exit with work in flight, forked children, invalid settings.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "driver_test.h"

namespace spillway::simulator {
namespace {

// Runs `body` in a child of this process, in which the driver is not initialised yet. Returns the
// child's exit status.
template <class Body>
int StatusOf(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    body();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// These tests fork before cuInit. Under ctest each is a process of its own; within one process
// their name makes them run first.
class ALeavingProcessTest : public ::testing::Test {
 protected:
  const std::string stats_ =
      ::testing::TempDir() + "/statistics-" + std::to_string(getpid()) + ".json";
  void TearDown() override { unlink(stats_.c_str()); }
};

TEST_F(ALeavingProcessTest, WritesItsStatisticsWhenItExitsWithWorkInFlight) {
  const int status = StatusOf([&] {
    setenv("SPILLWAY_SIM_STATS", stats_.c_str(), 1);
    CUcontext context = nullptr;
    CUdeviceptr words = 0;
    CUmodule module = nullptr;
    CUfunction fill = nullptr;
    int count = 4, value = 1;
    void* parameters[] = {&words, &count, &value};
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
      std::abort();
    if (cuMemAlloc(&words, 4 << 20) || cuModuleLoadData(&module, &kTestImage)) std::abort();
    if (cuModuleGetFunction(&fill, module, "fill")) std::abort();
    if (cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr)) std::abort();
  });

  EXPECT_EQ(status, 0);
  const std::string statistics = Contents(stats_);
  EXPECT_NE(statistics.find("\"schema\":1,\"profile\":\"h200\",\"clock\":\"virtual\""),
            std::string::npos)
      << statistics;
  EXPECT_NE(statistics.find("\"device_bytes_peak\":4194304,\"device_bytes_now\":4194304"),
            std::string::npos)
      << statistics;
  EXPECT_NE(statistics.find("\"kernels\":1"), std::string::npos) << statistics;
}

TEST_F(ALeavingProcessTest, WritesNothingWhenItNeverUsedTheDriver) {
  EXPECT_EQ(StatusOf([&] { setenv("SPILLWAY_SIM_STATS", stats_.c_str(), 1); }), 0);
  EXPECT_NE(access(stats_.c_str(), F_OK), 0);
}

TEST_F(ALeavingProcessTest, CountsRefusedAllocations) {
  StatusOf([&] {
    setenv("SPILLWAY_SIM_STATS", stats_.c_str(), 1);
    if (cuInit(0) || cuMulticastCreate(nullptr, nullptr) != CUDA_ERROR_NOT_SUPPORTED) std::abort();
    if (cuMulticastCreate(nullptr, nullptr) != CUDA_ERROR_NOT_SUPPORTED) std::abort();
  });
  EXPECT_NE(Contents(stats_).find("\"not_supported\":{\"cuMulticastCreate\":2}"), std::string::npos)
      << Contents(stats_);
}

TEST_F(ALeavingProcessTest, ItsForkedChildOwnsNoDeviceAndWritesNoStatistics) {
  const int status = StatusOf([&] {
    if (cuInit(0)) std::abort();
    setenv("SPILLWAY_SIM_STATS", stats_.c_str(), 1);
    const int of_child = StatusOf([] {
      CUcontext context = nullptr;
      if (cuInit(0) != CUDA_ERROR_NOT_INITIALIZED) std::abort();
      if (cuCtxGetCurrent(&context) != CUDA_ERROR_NOT_INITIALIZED) std::abort();
    });
    if (of_child != 0 || access(stats_.c_str(), F_OK) == 0) std::abort();
  });
  EXPECT_EQ(status, 0);
}

TEST_F(ALeavingProcessTest, RefusesInvalidSettings) {
  for (const auto& [name, value] : {std::pair{"SPILLWAY_SIM_PROFILE", "h300"},
                                    {"SPILLWAY_SIM_CLOCK", "sun"},
                                    {"SPILLWAY_SIM_CAPACITY", "8GiB"},
                                    {"SPILLWAY_SIM_CAPACITY", "1000"}}) {
    EXPECT_EQ(StatusOf([name = name, value = value] {
                setenv(name, value, 1);
                if (cuInit(0) != CUDA_ERROR_INVALID_VALUE) std::abort();
              }),
              0)
        << name << "=" << value;
  }
}

TEST_F(ALeavingProcessTest, CapacityCanBeSet) {
  EXPECT_EQ(StatusOf([] {
              setenv("SPILLWAY_SIM_CAPACITY", "67108864", 1);
              CUcontext context = nullptr;
              CUdeviceptr words = 0;
              if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
                std::abort();
              if (cuMemAlloc(&words, 65 << 20) != CUDA_ERROR_OUT_OF_MEMORY) std::abort();
              if (cuMemAlloc(&words, 64 << 20) != CUDA_SUCCESS) std::abort();
            }),
            0);
}

TEST_F(ALeavingProcessTest, OnTheRealClockWorkTakesItsTime) {
  EXPECT_EQ(StatusOf([] {
              setenv("SPILLWAY_SIM_CLOCK", "real", 1);
              DriverTest* const none = nullptr;
              (void)none;
              CUcontext context = nullptr;
              CUdeviceptr words = 0;
              CUmodule module = nullptr;
              CUfunction fill = nullptr;
              int count = 4, value = 1;
              void* parameters[] = {&words, &count, &value};
              if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
                std::abort();
              if (cuMemAlloc(&words, 64) || cuModuleLoadData(&module, &kTestImage)) std::abort();
              if (cuModuleGetFunction(&fill, module, "fill")) std::abort();
              timespec start, end;
              clock_gettime(CLOCK_MONOTONIC, &start);
              for (int i = 0; i < 20; ++i) {
                if (cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr))
                  std::abort();
              }
              if (cuCtxSynchronize()) std::abort();
              clock_gettime(CLOCK_MONOTONIC, &end);
              const double spent =
                  double(end.tv_sec - start.tv_sec) + 1e-9 * double(end.tv_nsec - start.tv_nsec);
              if (spent < 0.020) std::abort();  // 20 kernels of 1 ms, one after the other
            }),
            0);
}

}  // namespace
}  // namespace spillway::simulator
