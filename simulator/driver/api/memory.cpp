#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "simulator/driver/api/pool_handles.h"
#include "simulator/driver/calls/capture.h"
#include "simulator/driver/machine/compute_mode.h"
#include "simulator/driver/machine/statistics.h"
#include "simulator/driver/memory/sparse_bytes.h"

namespace spillway::simulator {
namespace {

constexpr std::size_t kPitchAlignment = 512;

CUdeviceptr Allocate(Call& call, std::size_t bytes) {
  RefuseWhileCapturing(call);
  Require(bytes != 0);
  Device& device = *call.context->device;
  const std::uintptr_t base = device.heap.Allocate(bytes);
  call.sim.allocations.Add({.base = base,
                            .size_bytes = bytes,
                            .kind = AllocationKind::kDevice,
                            .context = call.context,
                            .device = device.ordinal});
  return base;
}

// cuMemFree waits for all work of the context: programs rely on that. Memory of a pool is the
// exception: "this API will not perform any implicit synchronization when the pointer was allocated
// with cuMemAllocAsync or cuMemAllocFromPoolAsync" (cuda.h, cuMemFree).
void Free(Call& call, CUdeviceptr address) {
  if (address == 0) return;
  RefuseWhileCapturing(call);
  const Allocation* before = call.sim.allocations.FindBase(address);
  Require(before != nullptr);
  Require(before->kind == AllocationKind::kDevice || before->kind == AllocationKind::kManaged ||
          before->kind == AllocationKind::kPool || before->kind == AllocationKind::kGraph ||
          (before->kind == AllocationKind::kOpened && before->pool != nullptr));
  if (before->kind != AllocationKind::kPool) call.WaitForContext(*call.context);
  const Allocation* allocation =
      call.sim.allocations.FindBase(address);  // another thread may have freed it
  Require(allocation != nullptr);
  if (allocation->kind == AllocationKind::kOpened) return FreeImported(call, nullptr, address);
  const bool from_pool = allocation->kind == AllocationKind::kPool;
  call.sim.Release(address);
  if (from_pool) call.TrimPools();
}

void* MapHost(std::size_t size_bytes) {
  const bool sparse = TheComputeMode() == ComputeMode::kTags;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (sparse ? MAP_NORESERVE : 0);
  void* const memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (sparse && memory != MAP_FAILED) madvise(memory, size_bytes, MADV_NOHUGEPAGE);
  return memory;
}

void SpendPinning(Call& call, std::size_t bytes, std::size_t present_bytes = 0) {
  const Profile& profile = call.sim.profile;
  const std::size_t new_bytes = bytes - std::min(bytes, present_bytes);
  call.Spend((profile.pin_ns_per_mebibyte * (new_bytes >> 10) +
              profile.register_ns_per_mebibyte * ((bytes - new_bytes) >> 10)) >>
             10);
}

// Pages of that memory that need not be made and zeroed.
std::size_t PresentBytes(std::uintptr_t base, std::size_t bytes) {
  constexpr std::uintptr_t kPageBytes = 4096;
  const std::uintptr_t begin = base / kPageBytes * kPageBytes;
  std::vector<unsigned char> pages(WholePages(base + bytes - begin) / kPageBytes);
  if (mincore(reinterpret_cast<void*>(begin), base + bytes - begin, pages.data()) != 0) return 0;
  const auto is_present = [](unsigned char page) { return (page & 1U) != 0; };
  return static_cast<std::size_t>(std::count_if(pages.begin(), pages.end(), is_present)) *
         kPageBytes;
}

CUresult HostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return WithContext([&](Call& call) {
    RefuseWhileCapturing(call);
    const unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    Require(pointer != nullptr && bytes != 0 && (flags & ~known) == 0);
    void* memory = MapHost(WholePages(bytes));
    Require(memory != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
    TheStatistics().host_bytes.Add(WholePages(bytes));
    SpendPinning(call, bytes);
    call.sim.allocations.Add({.base = reinterpret_cast<std::uintptr_t>(memory),
                              .size_bytes = bytes,
                              .kind = AllocationKind::kPinnedHost,
                              .flags = flags,
                              .context = call.context});
    *pointer = memory;
  });
}

CUresult Register(void* pointer, std::size_t bytes, unsigned flags) {
  return WithContext([&](Call& call) {
    RefuseWhileCapturing(call);
    const auto base = reinterpret_cast<std::uintptr_t>(pointer);
    Require(base != 0 && bytes != 0 && !call.sim.addresses.Contains(base));
    Allocation* before = call.sim.allocations.Find(base);
    if (before == nullptr) before = call.sim.allocations.Find(base + bytes - 1);
    Require(before == nullptr, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    NoteFileMapping(base, bytes);  // it may be one
    TheStatistics().host_bytes.Add(WholePages(bytes));
    SpendPinning(call, bytes, PresentBytes(base, bytes));
    call.sim.allocations.Add({.base = base,
                              .size_bytes = bytes,
                              .kind = AllocationKind::kRegisteredHost,
                              .flags = flags,
                              .context = call.context});
  });
}

// Waits for all work that may use it. `otherwise` is the error for another kind.
void ReleaseHost(Call& call, void* pointer, AllocationKind kind, CUresult otherwise) {
  RefuseWhileCapturing(call);
  const auto base = reinterpret_cast<std::uintptr_t>(pointer);
  const auto require_it = [&] {
    const Allocation* found = call.sim.allocations.FindBase(base);
    Require(found != nullptr && found->kind == kind, otherwise);
  };
  require_it();
  call.WaitForContext(*call.context);
  require_it();  // another thread may have released it
  call.sim.Release(base);
}

CUresult CheckManaged(CUdeviceptr address) {
  return WithContext([&](Call& call) {
    const Allocation* managed = call.sim.allocations.Find(address);
    Require(managed != nullptr && managed->kind == AllocationKind::kManaged);
  });
}

CUresult MemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return WithContext([&](Call& call) {
    const PhysicalMemory& physical = call.context->device->physical;
    if (free_bytes != nullptr) *free_bytes = physical.free_bytes();
    if (total_bytes != nullptr) *total_bytes = physical.capacity_bytes();
  });
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuMemGetInfo_v2)(size_t* free_bytes, size_t* total_bytes) {
  return MemGetInfo(free_bytes, total_bytes);
}

SIM_API(cuMemAlloc_v2)(CUdeviceptr* address, size_t bytes) {
  return WithContext([&](Call& call) {
    Require(address != nullptr);
    *address = Allocate(call, bytes);
  });
}

SIM_API(cuMemAllocPitch_v2)
(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned int element) {
  return WithContext([&](Call& call) {
    Require(address != nullptr && pitch != nullptr && width != 0 && height != 0);
    Require(element == 4 || element == 8 || element == 16);
    const std::size_t pitch_bytes =
        (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    Require(pitch_bytes >= width && height <= SIZE_MAX / pitch_bytes, CUDA_ERROR_OUT_OF_MEMORY);
    *address = Allocate(call, pitch_bytes * height);
    *pitch = pitch_bytes;
  });
}

SIM_API(cuMemFree_v2)(CUdeviceptr address) {
  return WithContext([&](Call& call) { Free(call, address); });
}

SIM_API(cuMemAllocManaged)(CUdeviceptr* address, size_t bytes, unsigned int flags) {
  return WithContext([&](Call& call) {
    RefuseWhileCapturing(call);
    Require(address != nullptr && bytes != 0);
    Require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST);
    *address = call.sim.managed_heap.Allocate(bytes);
    call.sim.allocations.Add({.base = *address,
                              .size_bytes = bytes,
                              .kind = AllocationKind::kManaged,
                              .flags = flags,
                              .context = call.context});
  });
}

SIM_API(cuMemHostAlloc)(void** pointer, size_t bytes, unsigned int flags) {
  return HostAlloc(pointer, bytes, flags);
}
SIM_API(cuMemAllocHost)(void** pointer, unsigned int bytes) { return HostAlloc(pointer, bytes, 0); }
SIM_API(cuMemAllocHost_v2)(void** pointer, size_t bytes) { return HostAlloc(pointer, bytes, 0); }
SIM_API(cuMemHostRegister)(void* pointer, size_t bytes, unsigned int flags) {
  return Register(pointer, bytes, flags);
}
SIM_API(cuMemHostRegister_v2)(void* pointer, size_t bytes, unsigned int flags) {
  return Register(pointer, bytes, flags);
}

SIM_API(cuMemFreeHost)(void* pointer) {
  return WithContext([&](Call& call) {
    if (pointer == nullptr) return;
    ReleaseHost(call, pointer, AllocationKind::kPinnedHost, CUDA_ERROR_INVALID_VALUE);
  });
}

SIM_API(cuMemHostUnregister)(void* pointer) {
  return WithContext([&](Call& call) {
    ReleaseHost(call, pointer, AllocationKind::kRegisteredHost,
                CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  });
}

SIM_API(cuMemHostGetDevicePointer_v2)(CUdeviceptr* address, void* pointer, unsigned int flags) {
  return WithContext([&](Call& call) {
    const auto base = reinterpret_cast<std::uintptr_t>(pointer);
    const Allocation* host = call.sim.allocations.Find(base);
    Require(address != nullptr && flags == 0 && host != nullptr);
    Require(host->kind == AllocationKind::kPinnedHost ||
            host->kind == AllocationKind::kRegisteredHost);
    *address = base;
  });
}

SIM_API(cuMemHostGetFlags)(unsigned int* flags, void* pointer) {
  return WithContext([&](Call& call) {
    const Allocation* host = call.sim.allocations.Find(reinterpret_cast<std::uintptr_t>(pointer));
    Require(flags != nullptr && host != nullptr && host->kind == AllocationKind::kPinnedHost);
    *flags = host->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  });
}

SIM_API(cuMemGetAddressRange_v2)(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  return WithContext([&](Call& call) {
    CUdeviceptr start = 0;
    std::size_t bytes = 0;
    CUmemAllocationProp properties;
    if (const Allocation* allocation = call.sim.allocations.Find(address); allocation != nullptr) {
      start = allocation->base;
      bytes = allocation->size_bytes;
    } else {
      Require(call.sim.vmm.FindMapping(address, properties, start, bytes), CUDA_ERROR_NOT_FOUND);
    }
    if (base != nullptr) *base = start;
    if (size != nullptr) *size = bytes;
  });
}

// Managed memory has one place here, so advice and prefetching do nothing.
SIM_API(cuMemAdvise)(CUdeviceptr address, size_t count, CUmem_advise advice, CUdevice device) {
  (void)count;
  (void)advice;
  (void)device;
  return CheckManaged(address);
}
SIM_API(cuMemAdvise_v2)
(CUdeviceptr address, size_t count, CUmem_advise advice, CUmemLocation location) {
  (void)count;
  (void)advice;
  (void)location;
  return CheckManaged(address);
}
SIM_API(cuMemPrefetchAsync)(CUdeviceptr address, size_t count, CUdevice device, CUstream stream) {
  (void)count;
  (void)device;
  (void)stream;
  return CheckManaged(address);
}

SIM_API(cuMemPrefetchAsync_v2)
(CUdeviceptr address, size_t count, CUmemLocation location, unsigned int flags, CUstream stream) {
  (void)count;
  (void)location;
  (void)stream;
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : CheckManaged(address);
}
