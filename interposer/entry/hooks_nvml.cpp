// NVML's answers show the budget instead of the device, as cuMemGetInfo does.
//
// The library is asked first, and its errors are returned unchanged. Devices are matched by UUID:
// NVML counts all of them, a process sees only some. Our own shows the size of its allocations.
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "base/nvml_abi.h"
#include "interposer/config/config.h"
#include "interposer/driver/device_budget.h"
#include "interposer/driver/driver_api.h"
#include "interposer/driver/real_dlsym.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/nvml_hooks.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using nvml::Result;

template <class Function>
Function* Real(const char* name) {
  void* const library = NvmlLibrary();
  return library ? reinterpret_cast<Function*>(driver::RealDlsym()(library, name)) : nullptr;
}

// Null before its first allocation there.
struct NvmlUuid {
  char text[96] = {};
  explicit NvmlUuid(nvml::Device device) {
    auto* const get = Real<Result(nvml::Device, char*, unsigned)>("nvmlDeviceGetUUID");
    if (!get || get(device, text, sizeof text) != nvml::kSuccess) text[0] = '\0';
  }
  bool IsOf(CUdevice device) const {
    CUuuid uuid{};
    return Driver().cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS &&
           strcmp(interposer::UuidText(uuid).text, text) == 0;
  }
};

JobMemory* JobOn(nvml::Device device) {
  const NvmlUuid uuid(device);
  return interposer::FindJob([&](JobMemory* job) { return uuid.IsOf(job->device()); });
}

// Before cuInit the process's own number is not known; then NVML's stands for it.
int NumberOf(nvml::Device device, const NvmlUuid& uuid) {
  CUuuid known{};
  for (int number = 0; Driver().cuDeviceGetUuid(&known, number) == CUDA_SUCCESS; ++number)
    if (uuid.IsOf(number)) return number;
  auto* const get = Real<Result(nvml::Device, unsigned*)>("nvmlDeviceGetIndex");
  unsigned index = 0;
  return get && get(device, &index) == nvml::kSuccess ? static_cast<int>(index) : 0;
}

base::DeviceBudget BudgetOn(nvml::Device device) {
  const interposer::Config& config = interposer::ProcessConfig();
  if (config.external_limits.empty()) return {config.budget_bytes, ""};
  const NvmlUuid uuid(device);
  return interposer::BudgetOf(base::DeviceName{NumberOf(device, uuid), uuid.text});
}

template <class Memory>
void ShowBudget(nvml::Device device, Memory* memory) {
  const auto shown =
      interposer::ShownMemory(JobOn(device), BudgetOn(device), memory->free, memory->total);
  memory->free = shown.free_bytes;
  memory->total = shown.total_bytes;
  memory->used = shown.total_bytes - shown.free_bytes;
}

template <class Memory>
Result MemoryInfo(const char* name, nvml::Device device, Memory* memory) {
  auto* const real = Real<Result(nvml::Device, Memory*)>(name);
  if (!real) return nvml::kUninitialized;
  const Result result = real(device, memory);
  const ReentryGuard guard;
  if (result == nvml::kSuccess && guard.IsOutermost()) ShowBudget(device, memory);
  return result;
}

template <class Info>
Result Processes(const char* name, nvml::Device device, unsigned* count, Info* infos) {
  auto* const real = Real<Result(nvml::Device, unsigned*, Info*)>(name);
  if (!real) return nvml::kUninitialized;
  const Result result = real(device, count, infos);
  const ReentryGuard guard;
  if (result != nvml::kSuccess || !infos || !guard.IsOutermost()) return result;
  JobMemory* const job = JobOn(device);
  for (unsigned i = 0; job && i < *count; ++i) {
    if (infos[i].pid == static_cast<unsigned>(getpid()))
      infos[i].used_bytes = job->grants().budget_bytes() - job->view().FreeBytes();
  }
  return result;
}

}  // namespace

void* NvmlLibrary() { return dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_NOLOAD); }

}  // namespace spillway::entry

using spillway::entry::MemoryInfo;
using spillway::entry::Processes;
using spillway::nvml::Device;
using spillway::nvml::Memory;
using spillway::nvml::MemoryV2;
using spillway::nvml::Process;
using spillway::nvml::ProcessV1;
using spillway::nvml::Result;

SPILLWAY_EXPORT Result nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  return MemoryInfo("nvmlDeviceGetMemoryInfo", device, memory);
}

SPILLWAY_EXPORT Result nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* memory) {
  const Result result = MemoryInfo("nvmlDeviceGetMemoryInfo_v2", device, memory);
  if (result == spillway::nvml::kSuccess) memory->reserved = 0;  // lies outside of the budget
  return result;
}

SPILLWAY_EXPORT Result nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count,
                                                            ProcessV1* infos) {
  return Processes("nvmlDeviceGetComputeRunningProcesses", device, count, infos);
}

SPILLWAY_EXPORT Result nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned* count,
                                                               Process* infos) {
  return Processes("nvmlDeviceGetComputeRunningProcesses_v2", device, count, infos);
}

SPILLWAY_EXPORT Result nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count,
                                                               Process* infos) {
  return Processes("nvmlDeviceGetComputeRunningProcesses_v3", device, count, infos);
}

namespace spillway::entry {

void* NvmlHookNamed(const char* name) {
  if (strncmp(name, "nvml", 4) != 0) return nullptr;
#define SPILLWAY_NVML(symbol) \
  if (strcmp(name, #symbol) == 0) return reinterpret_cast<void*>(&::symbol);
#include "interposer/entry/nvml_table.inc"
#undef SPILLWAY_NVML
  return nullptr;
}

}  // namespace spillway::entry
