// The types and codes of NVML (libnvidia-ml.so.1) in use here.
//
// The toolkit may lack nvml.h. The layouts follow NVML's API reference (structs, "Device Queries");
// sizes are checked below.
#pragma once

#include <cstddef>

namespace spillway::nvml {

enum Result : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kFunctionNotFound = 13,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};

struct DeviceObject;
using Device = DeviceObject*;

// nvmlMemory_t
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

// nvmlMemory_v2_t; the caller sets `version`.
struct MemoryV2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
inline constexpr unsigned kMemoryVersion2 = sizeof(MemoryV2) | 2u << 24;

// nvmlProcessInfo_v1_t
struct ProcessV1 {
  unsigned pid;
  unsigned long long used_bytes;
};

// nvmlProcessInfo_v2_t, also used by the query's third version
struct Process {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};
inline constexpr unsigned kNoInstance = ~0u;

// nvmlPciInfo_t
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};

// nvmlGetMemoryLimits_v1_t (r615): of the processes of a control group
struct MemoryLimits {
  const char* group;  // in: the full path of the group's folder
  unsigned long long soft_bytes;
  unsigned long long hard_bytes;
  unsigned long long used_bytes;
};
// nvmlSetMemoryLimits_v1_t (r615)
struct NewMemoryLimits {
  const char* group;
  unsigned long long soft_bytes;
  unsigned long long hard_bytes;
};
// NVML_DEVICE_MEMORY_LIMIT_MAX; a soft limit of 0 is none.
inline constexpr unsigned long long kNoHardLimit = ~0ULL;

// nvmlUtilization_t
struct Utilization {
  unsigned gpu;
  unsigned memory;
};

static_assert(sizeof(Memory) == 24 && sizeof(MemoryV2) == 40 && sizeof(ProcessV1) == 16);
static_assert(sizeof(Process) == 24 && sizeof(PciInfo) == 68 && sizeof(Utilization) == 8);
static_assert(sizeof(MemoryLimits) == 32 && sizeof(NewMemoryLimits) == 24);

}  // namespace spillway::nvml
