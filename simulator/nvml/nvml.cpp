#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/nvml_abi.h"
#include "simulator/driver/machine/group_limits.h"
#include "simulator/driver/machine/identity.h"
#include "simulator/driver/machine/node_statistics.h"
#include "simulator/driver/machine/profile.h"

namespace spillway::nvml {

struct DeviceObject {
  int ordinal;
  std::string uuid;
  std::string bus_id;
};

namespace {

using simulator::Profile;

std::atomic<int> initialisations{0};

std::filesystem::path OwnFolder() {
  Dl_info here;
  return dladdr(reinterpret_cast<void*>(&OwnFolder), &here) == 0
             ? "."
             : std::filesystem::path(here.dli_fname).parent_path();
}

std::string Setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

// By the same environment variables as the driver's.
struct Machine {
  Profile profile;
  std::uint64_t capacity_bytes = 0;
  std::vector<DeviceObject> devices;
  bool works = false;

  Machine() {
    const std::string name = Setting(environment::kSimProfile, "h200");
    base::Result<Profile> loaded = simulator::LoadProfile(name, OwnFolder() / "profiles");
    if (!loaded) return;
    profile = *std::move(loaded);
    constexpr std::uint64_t kGranuleBytes = std::uint64_t{2} << 20;
    const std::string capacity = Setting(environment::kSimCapacity, "");
    capacity_bytes =
        capacity.empty() ? profile.capacity_bytes : std::strtoull(capacity.c_str(), nullptr, 10);
    capacity_bytes -= capacity_bytes % kGranuleBytes;
    const int count = std::clamp(std::atoi(Setting(environment::kSimDevices, "1").c_str()), 1, 8);
    const std::vector<std::string> uuids = simulator::UuidsOf(profile, count);
    for (int i = 0; i < count; ++i) {
      // NVML writes the domain of a bus with eight digits.
      devices.push_back({i, uuids[static_cast<std::size_t>(i)], "0000" + simulator::BusIdOf(i)});
    }
    works = true;
  }
};

Machine& TheMachine() {
  static Machine* const machine = new Machine;
  return *machine;
}

// 0 without a simulated driver here, which a preload library's name must not hide.
std::uint64_t ReadStatistics(const char* key, int ordinal) {
  static void* const driver =
      dlopen((OwnFolder() / "libcuda.so.1").c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (driver == nullptr) return 0;
  using Reader = unsigned long long (*)(const char*);
  static const auto read = reinterpret_cast<Reader>(dlsym(driver, "spillway_sim_read"));
  const std::string full = std::string(key) + "." + std::to_string(ordinal);
  const std::uint64_t value = read == nullptr ? 0 : read(full.c_str());
  return value == ~std::uint64_t{0} ? 0 : value;
}

std::vector<simulator::NodeProcess> UsersOf(int ordinal) {
  if (const std::string node = Setting(environment::kSimNode, ""); !node.empty()) {
    return simulator::ReadNodeProcesses(node, ordinal);
  }
  if (ReadStatistics("contexts", ordinal) == 0) return {};
  return {{getpid(), ReadStatistics("device_bytes_now", ordinal)}};
}

unsigned long long UsedOf(int ordinal) {
  if (Setting(environment::kSimNode, "").empty())
    return ReadStatistics("device_bytes_now", ordinal);
  unsigned long long used_bytes = 0;
  for (const simulator::NodeProcess& process : UsersOf(ordinal)) used_bytes += process.held_bytes;
  return used_bytes;
}

// Of the machine's virtual time since the last question. Without a shared machine 0.
unsigned PercentComputing(int ordinal) {
  static std::mutex mutex;
  static std::map<int, simulator::NodeTime> asked;
  static std::map<int, unsigned> answered;
  const std::string node = Setting(environment::kSimNode, "");
  if (node.empty()) return 0;
  const simulator::NodeTime now = simulator::ReadNodeTime(node, ordinal);
  const std::lock_guard lock(mutex);
  simulator::NodeTime& before = asked[ordinal];
  const std::int64_t passed_ns = now.passed_ns - before.passed_ns;
  if (passed_ns > 0)
    answered[ordinal] =
        static_cast<unsigned>(100 * (now.computing_ns - before.computing_ns) / passed_ns);
  before = now;
  return answered[ordinal];
}

bool IsDevice(Device device) {
  const auto& devices = TheMachine().devices;
  return std::any_of(devices.begin(), devices.end(),
                     [&](const DeviceObject& own) { return &own == device; });
}

template <class Body>
Result About(Device device, Body body) {
  if (initialisations == 0) return kUninitialized;
  return IsDevice(device) ? body(*device) : kInvalidArgument;
}

Result Initialise() {
  if (!TheMachine().works) return kUnknown;
  ++initialisations;
  return kSuccess;
}

Result Shutdown() {
  if (initialisations == 0) return kUninitialized;
  --initialisations;
  return kSuccess;
}

Result Count(unsigned* count) {
  if (initialisations == 0) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  *count = static_cast<unsigned>(TheMachine().devices.size());
  return kSuccess;
}

template <class Matches>
Result Find(Device* device, Matches matches) {
  if (initialisations == 0) return kUninitialized;
  if (device == nullptr) return kInvalidArgument;
  for (DeviceObject& own : TheMachine().devices) {
    if (!matches(own)) continue;
    *device = &own;
    return kSuccess;
  }
  return kNotFound;
}

Result ByIndex(unsigned index, Device* device) {
  const Result found =
      Find(device, [&](const DeviceObject& own) { return own.ordinal == static_cast<int>(index); });
  return found == kNotFound ? kInvalidArgument : found;
}

Result ByUuid(const char* uuid, Device* device) {
  if (uuid == nullptr) return kInvalidArgument;
  return Find(device, [&](const DeviceObject& own) { return own.uuid == uuid; });
}

Result ByBusId(const char* bus_id, Device* device) {
  if (bus_id == nullptr) return kInvalidArgument;
  const std::string wanted = bus_id;  // the domain may have four digits
  return Find(device, [&](const DeviceObject& own) {
    return own.bus_id == wanted || own.bus_id.substr(4) == wanted;
  });
}

Result PutText(const std::string& text, char* target, unsigned length) {
  if (target == nullptr) return kInvalidArgument;
  if (text.size() >= length) return kInsufficientSize;
  std::memcpy(target, text.c_str(), text.size() + 1);
  return kSuccess;
}

template <class Info>
Result Memories(Device device, Info* info) {
  return About(device, [&](const DeviceObject& own) {
    if (info == nullptr) return kInvalidArgument;
    info->total = TheMachine().capacity_bytes;
    info->used = std::min(UsedOf(own.ordinal), info->total);
    info->free = info->total - info->used;
    return kSuccess;
  });
}

void Put(ProcessV1& info, const simulator::NodeProcess& process) {
  info = {static_cast<unsigned>(process.pid), process.held_bytes};
}
void Put(Process& info, const simulator::NodeProcess& process) {
  info = {static_cast<unsigned>(process.pid), process.held_bytes, kNoInstance, kNoInstance};
}

template <class Info>
Result Processes(Device device, unsigned* count, Info* infos) {
  return About(device, [&](const DeviceObject& own) {
    if (count == nullptr) return kInvalidArgument;
    const auto users = UsersOf(own.ordinal);
    const unsigned room = *count;
    *count = static_cast<unsigned>(users.size());
    if (users.empty()) return kSuccess;
    if (room < users.size()) return kInsufficientSize;
    if (infos == nullptr) return kInvalidArgument;
    for (std::size_t i = 0; i < users.size(); ++i) Put(infos[i], users[i]);
    return kSuccess;
  });
}

Result LimitsOf(const DeviceObject& own, MemoryLimits* limits) {
  const std::string path = simulator::GroupLimitsPath();
  if (path.empty()) return kNotSupported;
  if (limits == nullptr || limits->group == nullptr) return kInvalidArgument;
  const simulator::GroupLimits read = simulator::ReadGroupLimits(path, own.uuid, limits->group);
  limits->soft_bytes = read.soft_bytes;
  limits->hard_bytes = read.hard_bytes;
  limits->used_bytes = 0;
  return kSuccess;
}

// The real driver knows groups by their folders, which a test may not be able to make.
Result SetLimits(const DeviceObject& own, const NewMemoryLimits* limits) {
  const std::string path = simulator::GroupLimitsPath();
  if (path.empty()) return kNotSupported;
  if (limits == nullptr || limits->group == nullptr || limits->soft_bytes > limits->hard_bytes)
    return kInvalidArgument;
  switch (simulator::WriteGroupLimits(path, own.uuid, limits->group,
                                      {limits->soft_bytes, limits->hard_bytes})) {
    case simulator::LimitsWritten::kYes:
      return kSuccess;
    case simulator::LimitsWritten::kNotPermitted:
      return kNoPermission;
    case simulator::LimitsWritten::kFailed:
      break;
  }
  return kUnknown;
}

const char* Text(int result) {
  switch (result) {
    case kSuccess:
      return "Success";
    case kUninitialized:
      return "Uninitialized";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNoPermission:
      return "Insufficient Permissions";
    case kNotFound:
      return "Not Found";
    case kInsufficientSize:
      return "Insufficient Size";
    case kArgumentVersionMismatch:
      return "Argument version mismatch";
    default:
      return "Unknown Error";
  }
}

}  // namespace
}  // namespace spillway::nvml

using namespace spillway::nvml;

#define SIM_NVML(name) extern "C" __attribute__((visibility("default"))) Result name

SIM_NVML(nvmlInit)() { return Initialise(); }
SIM_NVML(nvmlInit_v2)() { return Initialise(); }
SIM_NVML(nvmlInitWithFlags)(unsigned) { return Initialise(); }
SIM_NVML(nvmlShutdown)() { return Shutdown(); }
extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(int result) {
  return Text(result);
}

SIM_NVML(nvmlSystemGetDriverVersion)(char* text, unsigned length) {
  return initialisations == 0 ? kUninitialized : PutText("580.0", text, length);
}
SIM_NVML(nvmlSystemGetNVMLVersion)(char* text, unsigned length) {
  return initialisations == 0 ? kUninitialized : PutText("13.580.0", text, length);
}
SIM_NVML(nvmlSystemGetCudaDriverVersion)(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = 13000;
  return kSuccess;
}
SIM_NVML(nvmlSystemGetCudaDriverVersion_v2)(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}

SIM_NVML(nvmlDeviceGetCount)(unsigned* count) { return Count(count); }
SIM_NVML(nvmlDeviceGetCount_v2)(unsigned* count) { return Count(count); }
SIM_NVML(nvmlDeviceGetHandleByIndex)(unsigned index, Device* device) {
  return ByIndex(index, device);
}
SIM_NVML(nvmlDeviceGetHandleByIndex_v2)(unsigned index, Device* device) {
  return ByIndex(index, device);
}
SIM_NVML(nvmlDeviceGetHandleByUUID)(const char* uuid, Device* device) {
  return ByUuid(uuid, device);
}
SIM_NVML(nvmlDeviceGetHandleByPciBusId)(const char* bus_id, Device* device) {
  return ByBusId(bus_id, device);
}
SIM_NVML(nvmlDeviceGetHandleByPciBusId_v2)(const char* bus_id, Device* device) {
  return ByBusId(bus_id, device);
}

SIM_NVML(nvmlDeviceGetName)(Device device, char* name, unsigned length) {
  return About(device, [&](const DeviceObject&) {
    return PutText(TheMachine().profile.device_name, name, length);
  });
}
SIM_NVML(nvmlDeviceGetUUID)(Device device, char* uuid, unsigned length) {
  return About(device, [&](const DeviceObject& own) { return PutText(own.uuid, uuid, length); });
}
SIM_NVML(nvmlDeviceGetIndex)(Device device, unsigned* index) {
  return About(device, [&](const DeviceObject& own) {
    if (index == nullptr) return kInvalidArgument;
    *index = static_cast<unsigned>(own.ordinal);
    return kSuccess;
  });
}

SIM_NVML(nvmlDeviceGetPciInfo_v3)(Device device, PciInfo* info) {
  return About(device, [&](const DeviceObject& own) {
    if (info == nullptr) return kInvalidArgument;
    *info = {};
    std::snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "%s", own.bus_id.c_str() + 4);
    std::snprintf(info->bus_id, sizeof info->bus_id, "%s", own.bus_id.c_str());
    info->bus = static_cast<unsigned>(spillway::simulator::BusOf(own.ordinal));
    return kSuccess;
  });
}

// The simulated devices have no NVLink and no fabric.
SIM_NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2)(Device device, unsigned, PciInfo*) {
  return About(device, [](const DeviceObject&) { return kNotSupported; });
}
SIM_NVML(nvmlDeviceGetNvLinkRemoteDeviceType)(Device device, unsigned, int*) {
  return About(device, [](const DeviceObject&) { return kNotSupported; });
}
SIM_NVML(nvmlDeviceGetGpuFabricInfoV)(Device device, void*) {
  return About(device, [](const DeviceObject&) { return kNotSupported; });
}

SIM_NVML(nvmlDeviceGetMemoryInfo)(Device device, Memory* memory) {
  return Memories(device, memory);
}
SIM_NVML(nvmlDeviceGetMemoryInfo_v2)(Device device, MemoryV2* memory) {
  if (memory != nullptr && memory->version != kMemoryVersion2) return kArgumentVersionMismatch;
  if (memory != nullptr) memory->reserved = 0;
  return Memories(device, memory);
}

SIM_NVML(nvmlDeviceGetComputeRunningProcesses)(Device device, unsigned* count, ProcessV1* infos) {
  return Processes(device, count, infos);
}
SIM_NVML(nvmlDeviceGetComputeRunningProcesses_v2)(Device device, unsigned* count, Process* infos) {
  return Processes(device, count, infos);
}
SIM_NVML(nvmlDeviceGetComputeRunningProcesses_v3)(Device device, unsigned* count, Process* infos) {
  return Processes(device, count, infos);
}

SIM_NVML(nvmlDeviceGetMemoryLimits_v1)(Device device, MemoryLimits* limits) {
  return About(device, [&](const DeviceObject& own) { return LimitsOf(own, limits); });
}

SIM_NVML(nvmlDeviceSetMemoryLimits_v1)(Device device, NewMemoryLimits* limits) {
  return About(device, [&](const DeviceObject& own) { return SetLimits(own, limits); });
}

SIM_NVML(nvmlDeviceGetUtilizationRates)(Device device, Utilization* rates) {
  return About(device, [&](const DeviceObject& own) {
    if (rates == nullptr) return kInvalidArgument;
    *rates = {.gpu = PercentComputing(own.ordinal), .memory = 0};
    return kSuccess;
  });
}
