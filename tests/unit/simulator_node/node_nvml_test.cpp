// The management library sees all processes of a shared machine; an agent checks its own account
// against it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "base/nvml_abi.h"
#include "tests/support/paths.h"
#include "tests/unit/simulator_node/tenant_process.h"

namespace spillway::test {
namespace {

template <typename... Arguments>
nvml::Result Call(const char* name, Arguments... arguments) {
  static void* const library = dlopen(BuildPath("simulator/libnvidia-ml.so.1").c_str(), RTLD_NOW);
  const auto function = reinterpret_cast<nvml::Result (*)(Arguments...)>(dlsym(library, name));
  return function == nullptr ? nvml::kUnknown : function(arguments...);
}

TEST(SharedMachineNvmlTest, MemoryOfEachProcessIsVisibleFromOutside) {
  const TestMachine machine(1024);
  setenv("SPILLWAY_SIM_NODE", machine.path().c_str(), 1);
  setenv("SPILLWAY_SIM_CAPACITY", std::to_string(1024 << 20).c_str(), 1);
  ASSERT_EQ(Call("nvmlInit_v2"), nvml::kSuccess);
  nvml::Device device = nullptr;
  ASSERT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", 0u, &device), nvml::kSuccess);
  TenantProcess first = machine.Start("1/2", {"alloc:100", "wait"});
  TenantProcess second = machine.Start("2/2", {"alloc:60", "wait"});
  first.Line();
  second.Line();

  nvml::Process users[4];
  unsigned count = 4;
  nvml::Memory memory = {};
  ASSERT_EQ(Call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, &users[0]),
            nvml::kSuccess);
  ASSERT_EQ(Call("nvmlDeviceGetMemoryInfo", device, &memory), nvml::kSuccess);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(users[0].pid, static_cast<unsigned>(first.pid()));
  EXPECT_EQ(users[0].used_bytes, 100u << 20);
  EXPECT_EQ(users[1].used_bytes, 60u << 20);
  EXPECT_EQ(memory.used, 160u << 20);

  first.Signal(SIGKILL);
  first.Rest();
  ASSERT_EQ(Call("nvmlDeviceGetMemoryInfo", device, &memory), nvml::kSuccess);
  EXPECT_EQ(memory.used, 60u << 20);
}

}  // namespace
}  // namespace spillway::test
