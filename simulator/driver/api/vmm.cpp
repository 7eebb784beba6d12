// The rules are in vmm.h. No function here documents an error for a missing context (cuda.h).
#include "simulator/driver/calls/capture.h"
#include "simulator/driver/machine/statistics.h"

using namespace spillway::simulator;

SIM_API(cuMemAddressReserve)
(CUdeviceptr* base, size_t size, size_t alignment, CUdeviceptr hint, unsigned long long flags) {
  return WithContextIfAny([&](Call& call) {
    Require(base != nullptr && flags == 0);
    *base = call.sim.vmm.Reserve(size, alignment, hint);
  });
}

SIM_API(cuMemAddressFree)(CUdeviceptr base, size_t size) {
  return WithContextIfAny([&](Call& call) { call.sim.vmm.FreeReservation(base, size); });
}

SIM_API(cuMemCreate)
(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* properties,
 unsigned long long flags) {
  return WithContextIfAny([&](Call& call) {
    RefuseWhileCapturing(call);
    ++TheStatistics().vmm_creates;
    call.Spend(call.sim.profile.vmm_create_ns);
    Require(handle != nullptr && properties != nullptr && flags == 0);
    *handle = call.sim.vmm.Create(size, *properties);
  });
}

SIM_API(cuMemRelease)(CUmemGenericAllocationHandle handle) {
  return WithContextIfAny([&](Call& call) {
    RefuseWhileCapturing(call);
    ++TheStatistics().vmm_releases;
    call.Spend(call.sim.profile.vmm_release_ns);
    call.sim.vmm.Release(handle);
  });
}

SIM_API(cuMemRetainAllocationHandle)(CUmemGenericAllocationHandle* handle, void* address) {
  return WithContextIfAny([&](Call& call) {
    Require(handle != nullptr);
    *handle = call.sim.vmm.Retain(reinterpret_cast<CUdeviceptr>(address));
  });
}

SIM_API(cuMemMap)
(CUdeviceptr base, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
 unsigned long long flags) {
  return WithContextIfAny([&](Call& call) {
    RefuseWhileCapturing(call);
    ++TheStatistics().vmm_maps;
    call.Spend(call.sim.profile.vmm_map_ns);
    Require(flags == 0);
    call.sim.vmm.Map(base, size, offset, handle);
    if (call.sim.vmm.IsForeign(handle)) call.sim.first_uses.NoteWritten(base, size);
  });
}

SIM_API(cuMemUnmap)(CUdeviceptr base, size_t size) {
  return WithContextIfAny([&](Call& call) {
    RefuseWhileCapturing(call);
    ++TheStatistics().vmm_unmaps;
    call.Spend(call.sim.profile.vmm_unmap_ns * call.sim.vmm.CountMappings(base, size));
    call.sim.vmm.Unmap(base, size);
  });
}

SIM_API(cuMemSetAccess)
(CUdeviceptr base, size_t size, const CUmemAccessDesc* accesses, size_t count) {
  return WithContextIfAny([&](Call& call) {
    RefuseWhileCapturing(call);
    ++TheStatistics().vmm_set_accesses;
    call.Spend(call.sim.profile.vmm_set_access_ns * call.sim.vmm.CountMappings(base, size));
    call.sim.vmm.SetAccess(base, size, accesses, count);
  });
}

SIM_API(cuMemGetAccess)
(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  return WithContextIfAny([&](Call& call) {
    Require(flags != nullptr && location != nullptr);
    *flags = call.sim.vmm.GetAccess(*location, address);
  });
}

SIM_API(cuMemGetAllocationGranularity)
(size_t* granularity, const CUmemAllocationProp* properties,
 CUmemAllocationGranularity_flags option) {
  return WithContextIfAny([&](Call&) {
    Require(granularity != nullptr && properties != nullptr);
    Require(option == CU_MEM_ALLOC_GRANULARITY_MINIMUM ||
            option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    *granularity = PhysicalMemory::kGranuleBytes;
  });
}

SIM_API(cuMemGetAllocationPropertiesFromHandle)
(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  return WithContextIfAny([&](Call& call) {
    Require(properties != nullptr);
    *properties = call.sim.vmm.Properties(handle);
  });
}

SIM_API(cuMemExportToShareableHandle)
(void* shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
 unsigned long long flags) {
  return WithContextIfAny([&](Call& call) {
    Require(shareable != nullptr && flags == 0);
    Require((call.sim.vmm.Properties(handle).requestedHandleTypes & type) != 0);
    Require(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_ERROR_NOT_SUPPORTED);
    *static_cast<int*>(shareable) = call.sim.vmm.Export(handle);
  });
}

SIM_API(cuMemImportFromShareableHandle)
(CUmemGenericAllocationHandle* handle, void* shareable, CUmemAllocationHandleType type) {
  return WithContextIfAny([&](Call& call) {
    Require(handle != nullptr);
    Require(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_ERROR_NOT_SUPPORTED);
    *handle = call.sim.vmm.Import(static_cast<int>(reinterpret_cast<std::intptr_t>(shareable)));
  });
}
