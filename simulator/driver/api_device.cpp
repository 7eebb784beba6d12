// cuInit, versions, devices and their attributes.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

#include "simulator/driver/books.h"
#include "simulator/driver/call.h"

namespace spillway::simulator {
namespace {

constexpr int kDriverVersion = 13000;
constexpr char kBusId[] = "0000:01:00.0";

void RequireDevice(CUdevice device) { Require(device == 0, CUDA_ERROR_INVALID_DEVICE); }

// Attributes that are the same for every profile.
const std::map<int, int>& CommonAttributes() {
  static const std::map<int, int> common = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
      {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
      {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
      {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
      {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
      {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
      {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
      {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
      {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
      {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 1},
      {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
      {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
      {CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0},
      {CU_DEVICE_ATTRIBUTE_NUMA_ID, -1},
      {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1},
      {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
  };
  return common;
}

int ProfileAttribute(const Profile& profile, CUdevice_attribute attribute) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return profile.compute_major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return profile.compute_minor;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return profile.multiprocessors;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return profile.core_clock_khz;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return profile.memory_clock_khz;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return profile.memory_bus_bits;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return profile.l2_cache_bytes;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return profile.shared_per_block_optin_bytes;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return profile.shared_per_multiprocessor_bytes;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return profile.threads_per_multiprocessor;
    default:
      return 0;
  }
}

CUuuid Uuid(const Profile& profile) {
  CUuuid uuid = {};
  std::snprintf(uuid.bytes, sizeof uuid.bytes, "sim-%s", profile.name.c_str());
  return uuid;
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuInit)(unsigned int flags) { return flags != 0 ? CUDA_ERROR_INVALID_VALUE : Initialise(); }

SIM_API(cuDriverGetVersion)(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetCount)(int* count) {
  return WithDriver([&](Call&) {
    Require(count != nullptr);
    *count = 1;
  });
}

SIM_API(cuDeviceGet)(CUdevice* device, int ordinal) {
  return WithDriver([&](Call&) {
    Require(device != nullptr);
    RequireDevice(ordinal);
    *device = 0;
  });
}

SIM_API(cuDeviceGetName)(char* name, int size, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(name != nullptr && size > 0);
    RequireDevice(device);
    std::snprintf(name, static_cast<std::size_t>(size), "%s", call.sim.profile.device_name.c_str());
  });
}

SIM_API(cuDeviceGetUuid)(CUuuid* uuid, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(uuid != nullptr);
    RequireDevice(device);
    *uuid = Uuid(call.sim.profile);
  });
}

SIM_API(cuDeviceGetUuid_v2)(CUuuid* uuid, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(uuid != nullptr);
    RequireDevice(device);
    *uuid = Uuid(call.sim.profile);
  });
}

SIM_API(cuDeviceTotalMem_v2)(size_t* bytes, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(bytes != nullptr);
    RequireDevice(device);
    *bytes = call.sim.physical.capacity_bytes();
  });
}

SIM_API(cuDeviceGetAttribute)(int* value, CUdevice_attribute attribute, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(value != nullptr && attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX);
    RequireDevice(device);
    const auto common = CommonAttributes().find(attribute);
    *value =
        common != CommonAttributes().end() ? common->second : ProfileAttribute(call.sim.profile, attribute);
  });
}

SIM_API(cuDeviceComputeCapability)(int* major, int* minor, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(major != nullptr && minor != nullptr);
    RequireDevice(device);
    *major = call.sim.profile.compute_major;
    *minor = call.sim.profile.compute_minor;
  });
}

SIM_API(cuDeviceGetProperties)(CUdevprop* properties, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(properties != nullptr);
    RequireDevice(device);
    *properties = CUdevprop{1024,
                            {1024, 1024, 64},
                            {2147483647, 65535, 65535},
                            49152,
                            65536,
                            32,
                            2147483647,
                            65536,
                            call.sim.profile.core_clock_khz,
                            512};
  });
}

SIM_API(cuDeviceGetPCIBusId)(char* text, int size, CUdevice device) {
  return WithDriver([&](Call&) {
    Require(text != nullptr && size > 0);
    RequireDevice(device);
    std::snprintf(text, static_cast<std::size_t>(size), "%s", kBusId);
  });
}

SIM_API(cuDeviceGetByPCIBusId)(CUdevice* device, const char* text) {
  return WithDriver([&](Call&) {
    Require(device != nullptr && text != nullptr);
    Require(std::strcmp(text, kBusId) == 0, CUDA_ERROR_INVALID_DEVICE);
    *device = 0;
  });
}

SIM_API(cuDeviceCanAccessPeer)(int* can, CUdevice device, CUdevice peer) {
  return WithDriver([&](Call&) {
    Require(can != nullptr);
    RequireDevice(device);
    RequireDevice(peer);
    *can = 0;
  });
}

SIM_API(cuDeviceGetP2PAttribute)
(int* value, CUdevice_P2PAttribute attribute, CUdevice source, CUdevice target) {
  return WithDriver([&](Call&) {
    (void)attribute;
    Require(value != nullptr);
    RequireDevice(source);
    RequireDevice(target);
    throw Failure{CUDA_ERROR_INVALID_DEVICE};  // a device is no peer of itself
  });
}

SIM_API(cuDeviceGetExecAffinitySupport)(int* supported, CUexecAffinityType type, CUdevice device) {
  return WithDriver([&](Call&) {
    (void)type;
    Require(supported != nullptr);
    RequireDevice(device);
    *supported = 0;
  });
}

// Its tables are undocumented, so this driver has none.
SIM_API(cuGetExportTable)(const void** table, const CUuuid* id) {
  (void)id;
  if (table != nullptr) *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}
