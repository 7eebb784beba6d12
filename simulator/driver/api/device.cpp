#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>

#include "simulator/driver/calls/call.h"
#include "simulator/driver/machine/identity.h"
#include "simulator/driver/machine/statistics.h"

namespace spillway::simulator {
namespace {

constexpr int kDriverVersion = 13000;

void RequireDevice(Call& call, CUdevice device) { call.sim.devices.At(device); }

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
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 131072},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 2048},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 1 << 28},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 131072},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, 65536},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 2048},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 131072},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 65000},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, 2097120},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, 16384},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, 16384},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, 16384},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, 2046},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, 131072},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS, 2048},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, 131072},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT, 65536},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS, 2048},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, 16384},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT, 16384},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH, 16384},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, 32768},
      {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, 2046},
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
      {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR},
      {CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 1},
      {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
      {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
      {CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
       HasHostNumaMemory() ? 1 : 0},
      {CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0},
      {CU_DEVICE_ATTRIBUTE_NUMA_ID, -1},
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
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
      return profile.compute_major >= 9 ? 1 : 0;
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

CUuuid Uuid(const Profile& profile, CUdevice device) {
  const DeviceUuid bytes = UuidOf(profile, device);
  CUuuid uuid = {};
  std::memcpy(uuid.bytes, bytes.data(), bytes.size());
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
  return WithDriver([&](Call& call) {
    Require(count != nullptr);
    *count = call.sim.devices.count();
  });
}

SIM_API(cuDeviceGet)(CUdevice* device, int ordinal) {
  return WithDriver([&](Call& call) {
    Require(device != nullptr);
    RequireDevice(call, ordinal);
    *device = ordinal;
  });
}

SIM_API(cuDeviceGetName)(char* name, int size, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(name != nullptr && size > 0);
    RequireDevice(call, device);
    std::snprintf(name, static_cast<std::size_t>(size), "%s", call.sim.profile.device_name.c_str());
  });
}

SIM_API(cuDeviceGetUuid)(CUuuid* uuid, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(uuid != nullptr);
    RequireDevice(call, device);
    *uuid = Uuid(call.sim.profile, device);
  });
}

SIM_API(cuDeviceGetUuid_v2)(CUuuid* uuid, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(uuid != nullptr);
    RequireDevice(call, device);
    *uuid = Uuid(call.sim.profile, device);
  });
}

SIM_API(cuDeviceTotalMem_v2)(size_t* bytes, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(bytes != nullptr);
    *bytes = call.sim.devices.At(device).physical.capacity_bytes();
  });
}

SIM_API(cuDeviceGetAttribute)(int* value, CUdevice_attribute attribute, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(value != nullptr && attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX);
    RequireDevice(call, device);
    if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) {
      *value = BusOf(device);
      return;
    }
    const auto common = CommonAttributes().find(attribute);
    *value = common != CommonAttributes().end() ? common->second
                                                : ProfileAttribute(call.sim.profile, attribute);
  });
}

SIM_API(cuDeviceComputeCapability)(int* major, int* minor, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(major != nullptr && minor != nullptr);
    RequireDevice(call, device);
    *major = call.sim.profile.compute_major;
    *minor = call.sim.profile.compute_minor;
  });
}

SIM_API(cuDeviceGetProperties)(CUdevprop* properties, CUdevice device) {
  return WithDriver([&](Call& call) {
    Require(properties != nullptr);
    RequireDevice(call, device);
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
  return WithDriver([&](Call& call) {
    Require(text != nullptr && size > 0);
    RequireDevice(call, device);
    std::snprintf(text, static_cast<std::size_t>(size), "%s", BusIdOf(device).c_str());
  });
}

SIM_API(cuDeviceGetByPCIBusId)(CUdevice* device, const char* text) {
  return WithDriver([&](Call& call) {
    Require(device != nullptr && text != nullptr);
    int ordinal = 0;
    while (ordinal < call.sim.devices.count() && BusIdOf(ordinal) != text) ++ordinal;
    RequireDevice(call, ordinal);
    *device = ordinal;
  });
}

SIM_API(cuDeviceGetExecAffinitySupport)(int* supported, CUexecAffinityType type, CUdevice device) {
  return WithDriver([&](Call& call) {
    (void)type;
    Require(supported != nullptr);
    RequireDevice(call, device);
    *supported = 0;
  });
}

// Undocumented, so this driver has none. NVIDIA's own CUDA runtime needs them.
SIM_API(cuGetExportTable)(const void** table, const CUuuid* id) {
  (void)id;
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    std::fprintf(stderr,
                 "simulated GPU: NVIDIA's CUDA runtime is in this process, and it needs "
                 "undocumented tables of the driver. A program that has it linked in must be "
                 "linked with -cudart shared; then the simulated runtime must be found first in "
                 "LD_LIBRARY_PATH\n");
  }
  if (table != nullptr) *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}
