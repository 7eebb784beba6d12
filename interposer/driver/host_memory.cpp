#include "interposer/driver/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "interposer/driver/device_attribute.h"
#include "interposer/driver/driver_api.h"
#include "interposer/driver/host_free_memory.h"
#include "interposer/driver/mapping_calls.h"

namespace spillway::driver {
namespace {

CUmemLocation NodeNear(CUdevice device) {
  int node = 0;
  Driver().cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device);
  return {CU_MEM_LOCATION_TYPE_HOST_NUMA, std::max(node, 0)};
}

bool AllowBoth(CUdevice device, CUmemLocation node, CUdeviceptr base, std::size_t bytes) {
  CUmemAccessDesc access[2] = {};
  access[0].location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  access[1].location = node;
  access[0].flags = access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return MemSetAccess(base, bytes, access, 2) == CUDA_SUCCESS;
}

bool Show(CUdevice device, CUmemLocation node, const HostMemory& memory, CUdeviceptr base) {
  if (MemMap(base, memory.bytes, memory.handle) != CUDA_SUCCESS) return false;
  if (AllowBoth(device, node, base, memory.bytes)) return true;
  MemUnmap(base, memory.bytes);
  return false;
}

}  // namespace

std::size_t HostBytesToSpare() { return FreeHostBytes() / 10 * 8; }

bool PromisesMappableHostMemory(CUdevice device) {
  return HasAttribute(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
}

std::optional<HostMemory> NewMappableHostMemory(CUdevice device, std::size_t bytes) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = NodeNear(device);
  HostMemory memory{.bytes = bytes};
  if (MemCreate(&memory.handle, bytes, &properties) != CUDA_SUCCESS) return {};
  CUdeviceptr base = 0;
  if (Driver().cuMemAddressReserve(&base, bytes, 0, 0, 0) == CUDA_SUCCESS) {
    memory.data = reinterpret_cast<void*>(base);
    if (Show(device, properties.location, memory, base)) return memory;
    Driver().cuMemAddressFree(base, bytes);
  }
  MemRelease(memory.handle);
  return {};
}

std::optional<HostMemory> NewPinnedHostMemory(std::size_t bytes) {
  HostMemory memory{.bytes = bytes};
  if (Driver().cuMemHostAlloc(&memory.data, bytes, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS)
    return {};
  return memory;
}

// MADV_DONTFORK: a forked child has no use for the memory.
std::optional<HostMemory> NewOrdinaryHostMemory(std::size_t bytes) {
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return {};
  madvise(data, bytes, MADV_DONTFORK);
  return HostMemory{.data = data, .bytes = bytes, .is_pinned = false};
}

namespace {

// Mapped memory stays without its handle.
bool MapImported(CUdevice device, int file, CUdeviceptr base, std::size_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  void* const shared = reinterpret_cast<void*>(static_cast<std::intptr_t>(file));
  if (Driver().cuMemImportFromShareableHandle(
          &handle, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS)
    return false;
  CUmemAllocationProp properties{};
  const bool is_mapped =
      Driver().cuMemGetAllocationPropertiesFromHandle(&properties, handle) == CUDA_SUCCESS &&
      Show(device, properties.location, {.bytes = bytes, .handle = handle}, base);
  MemRelease(handle);
  return is_mapped;
}

}  // namespace

void* MapImportedHostMemory(CUdevice device, const std::vector<int>& files,
                            std::size_t bytes_each) {
  CUdeviceptr base = 0;
  const std::size_t bytes = files.size() * bytes_each;
  if (Driver().cuMemAddressReserve(&base, bytes, 0, 0, 0) != CUDA_SUCCESS) return nullptr;
  std::size_t done_bytes = 0;
  for (const int file : files) {
    if (!MapImported(device, file, base + done_bytes, bytes_each)) break;
    done_bytes += bytes_each;
  }
  if (done_bytes == bytes) return reinterpret_cast<void*>(base);
  if (done_bytes > 0) MemUnmap(base, done_bytes);
  Driver().cuMemAddressFree(base, bytes);
  return nullptr;
}

void UnmapImportedHostMemory(void* data, std::size_t bytes) {
  const auto base = reinterpret_cast<CUdeviceptr>(data);
  MemUnmap(base, bytes);
  Driver().cuMemAddressFree(base, bytes);
}

void DeleteHostMemory(const HostMemory& memory) {
  if (!memory.is_pinned) {
    munmap(memory.data, memory.bytes);
    return;
  }
  if (!memory.handle) {
    Driver().cuMemFreeHost(memory.data);
    return;
  }
  const auto base = reinterpret_cast<CUdeviceptr>(memory.data);
  MemUnmap(base, memory.bytes);
  Driver().cuMemAddressFree(base, memory.bytes);
  MemRelease(memory.handle);
}

}  // namespace spillway::driver
