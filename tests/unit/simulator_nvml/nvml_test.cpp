#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "base/nvml_abi.h"

namespace spillway::nvml {
namespace {

constexpr unsigned long long kMiB = 1 << 20;

// Two small devices, also for the driver, which is not initialised yet.
void* Library() {
  setenv("SPILLWAY_SIM_PROFILE", "h200", 1);
  setenv("SPILLWAY_SIM_DEVICES", "2", 1);
  setenv("SPILLWAY_SIM_CAPACITY", "1073741824", 1);
  return dlopen("libnvidia-ml.so.1", RTLD_NOW);
}

template <typename... Arguments>
Result Call(const char* name, Arguments... arguments) {
  static void* const library = Library();
  const auto function = reinterpret_cast<Result (*)(Arguments...)>(dlsym(library, name));
  EXPECT_NE(function, nullptr) << name;
  return function == nullptr ? kUnknown : function(arguments...);
}

Device DeviceAt(unsigned index) {
  Device device = nullptr;
  EXPECT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", index, &device), kSuccess);
  return device;
}

Memory MemoryOf(Device device) {
  Memory memory{};
  EXPECT_EQ(Call("nvmlDeviceGetMemoryInfo", device, &memory), kSuccess);
  return memory;
}

CUcontext UseContextOf(CUdevice device) {
  CUcontext context = nullptr;
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  return context;
}

// As NVML is given it. Empty: there is none.
std::string OwnGroup() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::/")) return "/sys/fs/cgroup" + line.substr(3);
  }
  return "";
}

class TwoDevices : public testing::Environment {
 public:
  void SetUp() override {
    setenv("SPILLWAY_SIM_PROFILE", "h200", 1);
    setenv("SPILLWAY_SIM_DEVICES", "2", 1);
    setenv("SPILLWAY_SIM_CAPACITY", "1073741824", 1);
  }
};
const testing::Environment* const two_devices = testing::AddGlobalTestEnvironment(new TwoDevices);

class NvmlTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(Call("nvmlInit_v2"), kSuccess); }
  void TearDown() override { Call("nvmlShutdown"); }
};

TEST_F(NvmlTest, NothingIsUsedBeforeTheDriverStarts) {
  unsigned count = 0;
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &count), kSuccess);
  EXPECT_EQ(count, 2u);

  const Memory memory = MemoryOf(DeviceAt(0));
  EXPECT_EQ(memory.total, 1024 * kMiB);
  EXPECT_EQ(memory.used, 0u);
  EXPECT_EQ(memory.free, memory.total);
}

TEST_F(NvmlTest, MemoryLimitsAreThoseOfAFile) {
  char uuid[96] = {};
  ASSERT_EQ(Call("nvmlDeviceGetUUID", DeviceAt(0), uuid, 96u), kSuccess);
  MemoryLimits limits{};
  limits.group = "/sys/fs/cgroup/a";
  EXPECT_EQ(Call("nvmlDeviceGetMemoryLimits_v1", DeviceAt(0), &limits), kNotSupported);

  const std::string path = testing::TempDir() + "/limits." + std::to_string(getpid());
  std::ofstream(path) << uuid << " /sys/fs/cgroup/a 5 0\n" << uuid << " /sys/fs/cgroup/b 6 7\n";
  setenv("SPILLWAY_SIM_MEMORY_LIMITS", path.c_str(), 1);

  EXPECT_EQ(Call("nvmlDeviceGetMemoryLimits_v1", DeviceAt(0), &limits), kSuccess);
  EXPECT_EQ(limits.soft_bytes, 5U);
  EXPECT_EQ(limits.hard_bytes, kNoHardLimit);
  limits.group = "/sys/fs/cgroup/b";
  EXPECT_EQ(Call("nvmlDeviceGetMemoryLimits_v1", DeviceAt(0), &limits), kSuccess);
  EXPECT_EQ(limits.hard_bytes, 7U);
  EXPECT_EQ(Call("nvmlDeviceGetMemoryLimits_v1", DeviceAt(1), &limits), kSuccess);
  EXPECT_EQ(limits.soft_bytes, 0U) << "another device";

  NewMemoryLimits wanted{"/sys/fs/cgroup/a", 0, 9};
  EXPECT_EQ(Call("nvmlDeviceSetMemoryLimits_v1", DeviceAt(0), &wanted), kSuccess);
  limits.group = "/sys/fs/cgroup/a";
  EXPECT_EQ(Call("nvmlDeviceGetMemoryLimits_v1", DeviceAt(0), &limits), kSuccess);
  EXPECT_EQ(limits.soft_bytes, 0U);
  EXPECT_EQ(limits.hard_bytes, 9U);
  wanted.hard_bytes = kNoHardLimit;
  EXPECT_EQ(Call("nvmlDeviceSetMemoryLimits_v1", DeviceAt(0), &wanted), kSuccess);
  EXPECT_EQ(Call("nvmlDeviceGetMemoryLimits_v1", DeviceAt(0), &limits), kSuccess);
  EXPECT_EQ(limits.hard_bytes, kNoHardLimit);
  limits.group = "/sys/fs/cgroup/b";
  EXPECT_EQ(Call("nvmlDeviceGetMemoryLimits_v1", DeviceAt(0), &limits), kSuccess);
  EXPECT_EQ(limits.hard_bytes, 7U) << "another group's stay";
  chmod(path.c_str(), 0444);
  EXPECT_EQ(Call("nvmlDeviceSetMemoryLimits_v1", DeviceAt(0), &wanted), kNoPermission);
  unsetenv("SPILLWAY_SIM_MEMORY_LIMITS");
  unlink(path.c_str());
}

TEST_F(NvmlTest, TheDriverRefusesWhatIsAboveTheGroupsHardLimit) {
  char uuid[96] = {};
  ASSERT_EQ(Call("nvmlDeviceGetUUID", DeviceAt(0), uuid, 96u), kSuccess);
  const std::string group = OwnGroup();
  if (group.empty()) GTEST_SKIP() << "no control groups of version 2 here";
  const std::string path = testing::TempDir() + "/hard." + std::to_string(getpid());
  std::ofstream(path) << uuid << " " << group << " 0 " << 64 * kMiB << "\n";
  setenv("SPILLWAY_SIM_MEMORY_LIMITS", path.c_str(), 1);
  UseContextOf(0);
  CUdeviceptr address = 0, more = 0;

  EXPECT_EQ(cuMemAlloc(&address, 66 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&address, 48 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&more, 18 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc(&more, 16 * kMiB), CUDA_SUCCESS);

  cuMemFree(address);
  cuMemFree(more);
  unsetenv("SPILLWAY_SIM_MEMORY_LIMITS");
  unlink(path.c_str());
}

TEST_F(NvmlTest, UsedMemoryIsTheDriversOnThatDevice) {
  UseContextOf(1);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc(&address, 64 * kMiB), CUDA_SUCCESS);

  EXPECT_EQ(MemoryOf(DeviceAt(1)).used, 64 * kMiB);
  EXPECT_EQ(MemoryOf(DeviceAt(0)).used, 0u);
  std::size_t free_bytes = 0, total_bytes = 0;
  ASSERT_EQ(cuMemGetInfo(&free_bytes, &total_bytes), CUDA_SUCCESS);
  EXPECT_EQ(MemoryOf(DeviceAt(1)).free, free_bytes);

  MemoryV2 second{};
  second.version = kMemoryVersion2;
  EXPECT_EQ(Call("nvmlDeviceGetMemoryInfo_v2", DeviceAt(1), &second), kSuccess);
  EXPECT_EQ(second.used + second.free + second.reserved, second.total);
  second.version = 0;
  EXPECT_EQ(Call("nvmlDeviceGetMemoryInfo_v2", DeviceAt(1), &second), kArgumentVersionMismatch);
  EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
}

TEST_F(NvmlTest, ProcessIsListedWhereItHasAContext) {
  UseContextOf(1);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc(&address, 64 * kMiB), CUDA_SUCCESS);

  unsigned count = 0;
  EXPECT_EQ(Call("nvmlDeviceGetComputeRunningProcesses_v3", DeviceAt(1), &count,
                 static_cast<Process*>(nullptr)),
            kInsufficientSize);
  EXPECT_EQ(count, 1u);

  Process process[2] = {};
  count = 2;
  EXPECT_EQ(Call("nvmlDeviceGetComputeRunningProcesses_v3", DeviceAt(1), &count, &process[0]),
            kSuccess);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(process[0].pid, static_cast<unsigned>(getpid()));
  EXPECT_EQ(process[0].used_bytes, 64 * kMiB);
  EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);

  ProcessV1 first[2] = {};
  ASSERT_EQ(cuDevicePrimaryCtxReset(1), CUDA_SUCCESS);
  count = 2;
  EXPECT_EQ(Call("nvmlDeviceGetComputeRunningProcesses", DeviceAt(1), &count, &first[0]), kSuccess);
  EXPECT_EQ(count, 0u);
}

TEST_F(NvmlTest, NamesEqualTheDrivers) {
  UseContextOf(0);
  char name[96] = {}, driver_name[96] = {};
  EXPECT_EQ(Call("nvmlDeviceGetName", DeviceAt(1), &name[0], 96u), kSuccess);
  ASSERT_EQ(cuDeviceGetName(driver_name, 96, 1), CUDA_SUCCESS);
  EXPECT_STREQ(name, driver_name);
  EXPECT_EQ(Call("nvmlDeviceGetName", DeviceAt(1), &name[0], 3u), kInsufficientSize);

  char uuid[96] = {};
  ASSERT_EQ(Call("nvmlDeviceGetUUID", DeviceAt(1), &uuid[0], 96u), kSuccess);
  Device found = nullptr;
  EXPECT_EQ(Call("nvmlDeviceGetHandleByUUID", static_cast<const char*>(uuid), &found), kSuccess);
  EXPECT_EQ(found, DeviceAt(1));

  char bus[32] = {};
  ASSERT_EQ(cuDeviceGetPCIBusId(bus, sizeof bus, 1), CUDA_SUCCESS);
  EXPECT_EQ(Call("nvmlDeviceGetHandleByPciBusId_v2", static_cast<const char*>(bus), &found),
            kSuccess);
  EXPECT_EQ(found, DeviceAt(1));
}

TEST_F(NvmlTest, UnknownDeviceIsAnInvalidArgument) {
  Device device = nullptr;
  EXPECT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", 2u, &device), kInvalidArgument);
  Memory memory{};
  EXPECT_EQ(Call("nvmlDeviceGetMemoryInfo", static_cast<Device>(nullptr), &memory),
            kInvalidArgument);
}

// PyTorch's allocator for expandable segments asks for each of these by name.
TEST_F(NvmlTest, DevicesHaveNoNvlinkAndNoFabric) {
  int type = 0;
  PciInfo remote{};
  void* fabric = nullptr;
  EXPECT_EQ(Call("nvmlDeviceGetNvLinkRemoteDeviceType", DeviceAt(0), 0u, &type), kNotSupported);
  EXPECT_EQ(Call("nvmlDeviceGetNvLinkRemotePciInfo_v2", DeviceAt(0), 0u, &remote), kNotSupported);
  EXPECT_EQ(Call("nvmlDeviceGetGpuFabricInfoV", DeviceAt(0), fabric), kNotSupported);
}

TEST(NvmlBeforeInitTest, EverythingIsUninitialized) {
  unsigned count = 0;
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &count), kUninitialized);
  EXPECT_EQ(Call("nvmlShutdown"), kUninitialized);
}

}  // namespace
}  // namespace spillway::nvml
