#include "agent/device/nvml.h"

#include <dlfcn.h>

#include <algorithm>

#include "agent/config/device_uuid.h"
#include "agent/device/process_list.h"

namespace spillway::agent {
namespace {

constexpr unsigned kTextBytes = 96;

}  // namespace

Nvml::Nvml() : library_(dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) return;
  works_ = Get(init_, "nvmlInit_v2") && Get(shutdown_, "nvmlShutdown") &&
           Get(count_, "nvmlDeviceGetCount_v2") && Get(handle_, "nvmlDeviceGetHandleByIndex_v2") &&
           Get(uuid_, "nvmlDeviceGetUUID") && Get(memory_, "nvmlDeviceGetMemoryInfo") &&
           Get(name_, "nvmlDeviceGetName") && init_() == nvml::kSuccess;
  Get(pci_, "nvmlDeviceGetPciInfo_v3");
  Get(by_uuid_, "nvmlDeviceGetHandleByUUID");
  Get(limits_, "nvmlDeviceGetMemoryLimits_v1");
  Get(set_limits_, "nvmlDeviceSetMemoryLimits_v1");
  Get(processes_, "nvmlDeviceGetComputeRunningProcesses_v3");
  Get(utilization_, "nvmlDeviceGetUtilizationRates");
}

Nvml::~Nvml() {
  if (works_) shutdown_();
  if (library_ != nullptr) dlclose(library_);
}

template <class Function>
bool Nvml::Get(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(library_, name));
  return function != nullptr;
}

std::vector<Nvml::Found> Nvml::Find() const {
  std::vector<Found> found;
  unsigned count = 0;
  if (!works_ || count_(&count) != nvml::kSuccess) return found;
  for (unsigned i = 0; i < count; ++i) {
    Found one;
    char uuid[kTextBytes] = {};
    if (handle_(i, &one.handle) != nvml::kSuccess ||
        uuid_(one.handle, uuid, kTextBytes) != nvml::kSuccess ||
        memory_(one.handle, &one.memory) != nvml::kSuccess)
      continue;
    one.uuid = uuid;
    found.push_back(one);
  }
  return found;
}

std::vector<NodeDevice> Nvml::List() const {
  std::vector<NodeDevice> devices;
  for (const Found& found : Find()) {
    char name[kTextBytes] = {};
    name_(found.handle, name, kTextBytes);
    if (const auto uuid = ParseUuid(found.uuid))
      devices.push_back({*uuid, found.uuid, name, static_cast<int64_t>(found.memory.total),
                         BusIdOf(found.handle)});
  }
  return devices;
}

std::map<std::string, int64_t> Nvml::UsedBytes() const {
  std::map<std::string, int64_t> used;
  for (const Found& found : Find()) used[found.uuid] = static_cast<int64_t>(found.memory.used);
  return used;
}

DeviceProcesses Nvml::UsedByProcesses() const {
  constexpr unsigned most = 4096;
  DeviceProcesses found_processes;
  if (processes_ == nullptr) return found_processes;
  for (const Found& found : Find()) {
    std::vector<nvml::Process> processes(most);
    unsigned count = most;
    if (processes_(found.handle, &count, processes.data()) != nvml::kSuccess) continue;
    found_processes.devices.insert(found.uuid);
    AddProcesses(found.uuid, static_cast<int64_t>(found.memory.total),
                 {processes.data(), std::min(count, most)}, found_processes);
    nvml::Utilization rates{};
    if (utilization_ != nullptr && utilization_(found.handle, &rates) == nvml::kSuccess)
      found_processes.busy_permille[found.uuid] = int64_t{10} * rates.gpu;
  }
  return found_processes;
}

std::optional<NativeLimits> Nvml::LimitsOf(const std::string& uuid,
                                           const std::string& group) const {
  if (limits_ == nullptr) return NativeLimits{};
  NativeLimits limits;
  const nvml::Result result =
      group.empty() ? nvml::kInvalidArgument : ReadLimits(uuid, group, limits);
  if (result == nvml::kNotSupported) return NativeLimits{};
  return result == nvml::kSuccess ? std::optional(limits) : std::nullopt;
}

nvml::Result Nvml::Find(const std::string& uuid, nvml::Device& device) const {
  if (!works_) return nvml::kUninitialized;
  return by_uuid_ == nullptr ? nvml::kFunctionNotFound : by_uuid_(uuid.c_str(), &device);
}

nvml::Result Nvml::ReadLimits(const std::string& uuid, const std::string& group,
                              NativeLimits& limits) const {
  if (!works_) return nvml::kUninitialized;
  if (limits_ == nullptr) return nvml::kFunctionNotFound;
  nvml::Device device = nullptr;
  if (const nvml::Result found = Find(uuid, device); found != nvml::kSuccess)
    return found == nvml::kNotFound ? nvml::kInvalidArgument : found;  // kNotFound: no such group
  nvml::MemoryLimits read{};
  read.group = group.c_str();
  const nvml::Result result = limits_(device, &read);
  const auto bytes = [](unsigned long long value) {
    return static_cast<int64_t>(std::min<unsigned long long>(value, INT64_MAX));
  };
  if (result == nvml::kSuccess) limits = {bytes(read.soft_bytes), bytes(read.hard_bytes)};
  return result;
}

nvml::Result Nvml::SetLimits(const std::string& uuid, const std::string& group,
                             const NativeLimits& limits) const {
  if (!works_) return nvml::kUninitialized;
  if (set_limits_ == nullptr) return nvml::kFunctionNotFound;
  nvml::Device device = nullptr;
  if (const nvml::Result found = Find(uuid, device); found != nvml::kSuccess) return found;
  nvml::NewMemoryLimits wanted{};
  wanted.group = group.c_str();
  wanted.soft_bytes = static_cast<unsigned long long>(limits.soft_bytes);
  wanted.hard_bytes = limits.hard_bytes == INT64_MAX
                          ? nvml::kNoHardLimit
                          : static_cast<unsigned long long>(limits.hard_bytes);
  return set_limits_(device, &wanted);
}

std::string Nvml::BusIdOf(nvml::Device handle) const {
  nvml::PciInfo place{};
  return pci_ != nullptr && pci_(handle, &place) == nvml::kSuccess ? place.bus_id : "";
}

}  // namespace spillway::agent
