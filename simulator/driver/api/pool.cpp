#include "simulator/driver/api/pool_handles.h"
#include "simulator/driver/calls/capture.h"
#include "simulator/driver/calls/node_work.h"

namespace spillway::simulator {

Pool* MakePool(Simulator& sim, const CUmemPoolProps& properties, Location where) {
  Device& device = sim.devices.At(where == Location::kDevice ? properties.location.id : 0);
  auto pool = std::make_unique<Pool>(device.physical, sim.addresses, where);
  pool->properties = properties;
  Pool* const key = pool.get();
  sim.pools.emplace(key, std::move(pool));
  return key;
}

void ForgetIfDoomedAndEmpty(Call& call, Pool* pool) {
  if (!pool->doomed || !pool->live.empty()) return;
  std::vector<OperationRef>
      frees;  // a copy: other threads' synchronisations trim the list during the waits
  for (const Pool::FreeBlock& block : pool->free) frees.push_back(block.freed);
  for (const OperationRef& free : frees) call.sim.engine.Wait(call.lock, free);
  call.sim.pools.erase(pool);
}

namespace {

Pool& DefaultPool(Call& call, Device& device) {
  if (device.default_pool == nullptr) {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.ordinal};
    device.default_pool = MakePool(call.sim, properties, Location::kDevice);
  }
  return *device.default_pool;
}

Pool& CurrentPool(Call& call, Device& device) {
  return device.current_pool != nullptr ? *device.current_pool : DefaultPool(call, device);
}

// A captured allocation ignores the named pool: its memory comes from the graph.
CUdeviceptr CaptureAllocation(Call& call, Stream& stream, std::size_t bytes) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = stream.context->ordinal();
  const WorkRef work = MakeAllocWork(call, properties, bytes);
  AddCaptured(call, stream, work);
  return static_cast<const AllocWork&>(*work).allocation()->base;
}

// Addresses stay reserved until the stream reaches the free.
void FreeGraphMemory(Call& call, Stream& stream, std::uintptr_t base) {
  Operation free;
  free.name = "free";
  free.effect = [kept = call.sim.graph_memory.RemoveLive(base)] {};
  call.sim.allocations.Remove(base);
  call.Submit(stream, std::move(free));
}

CUresult AllocateFrom(CUdeviceptr* address, std::size_t bytes, CUmemoryPool handle,
                      CUstream stream_handle) {
  return WithContext([&](Call& call) {
    Require(address != nullptr && bytes != 0);
    Stream& stream = call.StreamOf(stream_handle);
    if (IsCapturing(stream)) {
      *address = CaptureAllocation(call, stream, bytes);
      return;
    }
    RequireUncaptured(call, stream);
    Pool& pool =
        handle == nullptr ? CurrentPool(call, *stream.context->device) : PoolOf(call, handle);
    Require(!pool.imported);
    *address = pool.Allocate(call.sim.engine, call.lock, bytes, stream);
    call.sim.allocations.Add({.base = *address,
                              .size_bytes = bytes,
                              .kind = AllocationKind::kPool,
                              .context = call.context,
                              .device = pool.properties.location.id,
                              .pool = &pool});
  });
}

// This also takes memory of cuMemAlloc; the stream frees it in order.
void FreeLater(Call& call, Stream& stream, std::uintptr_t base) {
  Operation free;
  free.name = "free";
  Simulator& sim = call.sim;
  DeviceHeap& heap = sim.devices.At(sim.allocations.FindBase(base)->device).heap;
  free.effect = [&heap, base] { heap.Free(base); };
  call.sim.allocations.Remove(base);
  call.Submit(stream, std::move(free));
}

std::uint64_t* CounterOf(Pool& pool, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return &pool.release_threshold_bytes;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return &pool.reserved_high_bytes;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return &pool.used_high_bytes;
    default:
      return nullptr;
  }
}

int* SwitchOf(Pool& pool, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      return &pool.reuse_follow_event_dependencies;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      return &pool.reuse_allow_opportunistic;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return &pool.reuse_allow_internal_dependencies;
    default:
      return nullptr;
  }
}

CUresult GivePool(CUmemoryPool* handle, CUdevice device, Pool& (*which)(Call&, Device&)) {
  return WithDriver([&](Call& call) {
    Require(handle != nullptr);
    *handle = Handle(&which(call, call.sim.devices.At(device)));
  });
}

CUresult SetCurrentPool(CUdevice device, CUmemoryPool handle) {
  return WithDriver(
      [&](Call& call) { call.sim.devices.At(device).current_pool = &PoolOf(call, handle); });
}

bool IsDevice(const CUmemLocation* location) {
  return location != nullptr && location->type == CU_MEM_LOCATION_TYPE_DEVICE;
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuMemAllocAsync)(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return AllocateFrom(address, bytes, nullptr, stream);
}

SIM_API(cuMemAllocFromPoolAsync)
(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : AllocateFrom(address, bytes, pool, stream);
}

SIM_API(cuMemFreeAsync)(CUdeviceptr address, CUstream stream_handle) {
  return WithContext([&](Call& call) {
    if (address == 0) return;
    Stream& stream = call.StreamOf(stream_handle);
    if (IsCapturing(stream)) {
      AddCaptured(call, stream, MakeFreeWork(call, address));
      return;
    }
    RequireUncaptured(call, stream);
    const Allocation* allocation = call.sim.allocations.FindBase(address);
    Require(allocation != nullptr);
    if (allocation->kind == AllocationKind::kGraph) return FreeGraphMemory(call, stream, address);
    if (allocation->kind == AllocationKind::kDevice) return FreeLater(call, stream, address);
    if (allocation->kind == AllocationKind::kOpened) return FreeImported(call, &stream, address);
    Require(allocation->kind == AllocationKind::kPool);
    Pool* const pool = allocation->pool;
    Operation free;
    free.name = "free";
    pool->Free(address, stream.id, call.Submit(stream, std::move(free)));
    call.sim.allocations.Remove(address);
    ForgetIfDoomedAndEmpty(call, pool);
  });
}

SIM_API(cuMemPoolCreate)(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return WithDriver([&](Call& call) {
    Require(pool != nullptr && properties != nullptr);
    Require(properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
    constexpr unsigned kKnownHandles = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    Require((properties->handleTypes & ~kKnownHandles) == 0, CUDA_ERROR_NOT_SUPPORTED);
    const bool on_device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    const bool on_host = properties->location.type == CU_MEM_LOCATION_TYPE_HOST ||
                         properties->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    Require(on_device || on_host);
    Require(on_device || properties->location.id == 0, CUDA_ERROR_INVALID_DEVICE);
    *pool =
        Handle(MakePool(call.sim, *properties, on_device ? Location::kDevice : Location::kHost));
  });
}

SIM_API(cuMemPoolDestroy)(CUmemoryPool handle) {
  return WithDriver([&](Call& call) {
    Pool& pool = PoolOf(call, handle);
    for (const auto& device : call.sim.devices) {
      Require(&pool != device->default_pool);
      if (&pool == device->current_pool) device->current_pool = nullptr;
    }
    pool.doomed = true;
    pool.release_threshold_bytes = 0;
    ForgetIfDoomedAndEmpty(call, &pool);
  });
}

SIM_API(cuMemPoolTrimTo)(CUmemoryPool pool, size_t keep_bytes) {
  return WithDriver([&](Call& call) {
    RefuseWhileCapturing(call);
    PoolOf(call, pool).TrimTo(keep_bytes);
  });
}

SIM_API(cuMemPoolSetAttribute)(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return WithDriver([&](Call& call) {
    Pool& pool = PoolOf(call, handle);
    Require(value != nullptr);
    if (int* const setting = SwitchOf(pool, attribute)) {
      *setting = *static_cast<int*>(value);
      return;
    }
    std::uint64_t* const counter = CounterOf(pool, attribute);
    Require(counter != nullptr);
    const std::uint64_t wanted = *static_cast<cuuint64_t*>(value);
    Require(attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ||
            wanted == 0);  // a high-water mark can only be reset
    *counter = wanted;
    if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) *counter = pool.heap.physical_bytes();
    if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) *counter = pool.used_bytes;
  });
}

SIM_API(cuMemPoolGetAttribute)(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return WithDriver([&](Call& call) {
    Pool& pool = PoolOf(call, handle);
    Require(value != nullptr);
    if (const int* setting = SwitchOf(pool, attribute)) {
      *static_cast<int*>(value) = *setting;
      return;
    }
    const std::uint64_t* counter = CounterOf(pool, attribute);
    cuuint64_t& answer = *static_cast<cuuint64_t*>(value);
    if (counter != nullptr)
      answer = *counter;
    else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
      answer = pool.heap.physical_bytes();
    else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
      answer = pool.used_bytes;
    else
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  });
}

SIM_API(cuMemPoolSetAccess)(CUmemoryPool handle, const CUmemAccessDesc* accesses, size_t count) {
  return WithDriver([&](Call& call) {
    Pool& pool = PoolOf(call, handle);
    for (std::size_t i = 0; i < count; ++i) {
      const CUmemAccessDesc& wanted = accesses[i];
      Require(wanted.location.type == CU_MEM_LOCATION_TYPE_DEVICE, CUDA_ERROR_INVALID_DEVICE);
      const int device = call.sim.devices.At(wanted.location.id).ordinal;
      const bool gives = wanted.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      // A pool's own device always has access; another device has full access or none.
      Require(gives || (wanted.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE &&
                        device != pool.properties.location.id));
      pool.heap.SetAccessOf(device, gives ? Access::kReadWrite : Access::kNone);
    }
  });
}

SIM_API(cuMemPoolGetAccess)(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  return WithDriver([&](Call& call) {
    Require(flags != nullptr && location != nullptr);
    const DeviceHeap& heap = PoolOf(call, pool).heap;
    const bool may = location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     heap.IsFor(call.sim.devices.At(location->id).ordinal);
    *flags = may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  });
}

SIM_API(cuDeviceGetDefaultMemPool)(CUmemoryPool* pool, CUdevice device) {
  return GivePool(pool, device, DefaultPool);
}
SIM_API(cuDeviceGetMemPool)(CUmemoryPool* pool, CUdevice device) {
  return GivePool(pool, device, CurrentPool);
}
SIM_API(cuDeviceSetMemPool)(CUdevice device, CUmemoryPool pool) {
  return SetCurrentPool(device, pool);
}

SIM_API(cuMemGetDefaultMemPool)
(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  if (!IsDevice(location) || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
  return GivePool(pool, location->id, DefaultPool);
}
SIM_API(cuMemGetMemPool)(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  if (!IsDevice(location) || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
  return GivePool(pool, location->id, CurrentPool);
}
SIM_API(cuMemSetMemPool)(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  if (!IsDevice(location) || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
  return SetCurrentPool(location->id, pool);
}
