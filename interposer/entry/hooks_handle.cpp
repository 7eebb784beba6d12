// The program's own virtual memory: the handles of its physical memory (own_memory_rules.h).
#include <utility>
#include <vector>

#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/mark_visible.h"
#include "interposer/entry/own_memory_rules.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::kGranuleBytes;
using interposer::Unmovable;

// The job of the memory's device. Null: on the host, or a request that the driver would refuse.
JobMemory* Payer(size_t bytes, const CUmemAllocationProp* properties) {
  if (!properties || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return nullptr;
  if (!bytes || bytes % kGranuleBytes != 0) return nullptr;
  const CUdevice device = properties->location.id;
  if (JobMemory* const job = interposer::JobOf(device)) return job;
  CUdevice current = -1;
  const bool here = Driver().cuCtxGetDevice(&current) == CUDA_SUCCESS && current == device;
  return here ? interposer::JobForAllocation() : nullptr;
}

CUresult Create(CUmemGenericAllocationHandle* handle, size_t bytes,
                const CUmemAllocationProp* properties, unsigned long long flags) {
  const auto call = [&] { return Driver().cuMemCreate(handle, bytes, properties, flags); };
  const ReentryGuard guard;
  JobMemory* const payer = guard.IsOutermost() && handle ? Payer(bytes, properties) : nullptr;
  if (!payer) return call();
  const interposer::TurnPass turn;
  if (!payer->charges().Charge(bytes, Unmovable::kOwnMapping))
    return payer->charges().Refuse(bytes);
  const CUresult result = call();
  if (result != CUDA_SUCCESS) {
    payer->charges().Discharge(bytes, Unmovable::kOwnMapping);
    return result;
  }
  const base::MutexLock lock(Own().mutex);
  const bool is_real = HandlesMayBeTakenUnseen();
  Memory* const memory =
      Own().Created(*handle, bytes, *properties, payer,
                    is_real ? OwnMappings::Name::kReal : OwnMappings::Name::kOurs);
  memory->stays = is_real || !IsPlain(*properties);
  *handle = memory->handle;
  return CUDA_SUCCESS;
}

// Makes the driver's call with the driver's handle for the program's.
template <class Call>
CUresult WithRealHandle(CUmemGenericAllocationHandle handle, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call(handle);
  const interposer::TurnPass turn;
  const base::MutexLock lock(Own().mutex);
  Memory* const memory = Own().Find(handle);
  if (!memory) return call(handle);
  CUmemGenericAllocationHandle real = 0;
  const CUresult result = StaysForGood(memory, &real);
  return result == CUDA_SUCCESS ? call(real) : result;
}

CUresult Release(CUmemGenericAllocationHandle handle) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return Driver().cuMemRelease(handle);
  const base::MutexLock lock(Own().mutex);
  Memory* const memory = Own().Find(handle);
  if (!memory) return Driver().cuMemRelease(handle);
  if (memory->references == 0) return CUDA_ERROR_INVALID_VALUE;
  --memory->references;
  const CUresult result = EndIfUnused(memory);
  if (result != CUDA_SUCCESS) ++memory->references;
  return result;
}

CUresult Retain(CUmemGenericAllocationHandle* handle, CUdeviceptr address) {
  const auto call = [&] {
    return Driver().cuMemRetainAllocationHandle(handle, reinterpret_cast<void*>(address));
  };
  const ReentryGuard guard;
  if (!guard.IsOutermost() || !handle) return call();
  const base::MutexLock lock(Own().mutex);
  const OwnMappings::List at = Own().Within(address, 1);
  if (!at.empty() && at.front().memory != Own().foreign()) {
    ++at.front().memory->references;
    *handle = at.front().memory->handle;
    return CUDA_SUCCESS;
  }
  return interposer::JobOwning(address) ? CUDA_ERROR_INVALID_VALUE : call();
}

CUresult PropertiesOf(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  const auto call = [&] {
    return Driver().cuMemGetAllocationPropertiesFromHandle(properties, handle);
  };
  const ReentryGuard guard;
  if (!guard.IsOutermost() || !properties) return call();
  const base::MutexLock lock(Own().mutex);
  const Memory* const memory = Own().Find(handle);
  if (!memory) return call();
  if (!memory->range)
    return Driver().cuMemGetAllocationPropertiesFromHandle(properties, memory->real);
  *properties = memory->properties;
  return CUDA_SUCCESS;
}

// Others use these addresses, or what the driver makes of them, unseen.
template <class Call>
CUresult WithAddressesThatStay(CUdeviceptr base, size_t bytes, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  const interposer::TurnPass turn;
  const base::MutexLock lock(Own().mutex);
  for (const Mapping& mapping : Own().Within(base, bytes)) {
    CUmemGenericAllocationHandle real = 0;
    const CUresult result = StaysForGood(mapping.memory, &real);
    if (result != CUDA_SUCCESS) return result;
  }
  return call();
}

template <class Call>
CUresult MapArrays(CUarrayMapInfo* list, unsigned int count, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost() || !list) return call(list);
  const interposer::TurnPass turn;
  const base::MutexLock lock(Own().mutex);
  std::vector<CUarrayMapInfo> with_real(list, list + count);
  for (CUarrayMapInfo& info : with_real) {
    Memory* const memory = Own().Find(info.memHandle.memHandle);
    if (!memory) continue;
    const CUresult result = StaysForGood(memory, &info.memHandle.memHandle);
    if (result != CUDA_SUCCESS) return result;
  }
  return call(with_real.data());
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;

SPILLWAY_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                                     const CUmemAllocationProp* properties,
                                     unsigned long long flags) {
  return spillway::entry::Create(handle, bytes, properties, flags);
}

SPILLWAY_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return spillway::entry::Release(handle);
}

SPILLWAY_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                                     void* address) {
  return spillway::entry::Retain(handle, reinterpret_cast<CUdeviceptr>(address));
}

SPILLWAY_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  return spillway::entry::PropertiesOf(properties, handle);
}

SPILLWAY_EXPORT CUresult cuMemExportToShareableHandle(void* out,
                                                      CUmemGenericAllocationHandle handle,
                                                      CUmemAllocationHandleType type,
                                                      unsigned long long flags) {
  const auto call = [&](CUmemGenericAllocationHandle real) {
    return Driver().cuMemExportToShareableHandle(out, real, type, flags);
  };
  return spillway::entry::MarkVisibleIf(spillway::entry::WithRealHandle(handle, call));
}

SPILLWAY_EXPORT CUresult cuMemGetHandleForAddressRange(void* out, CUdeviceptr base, size_t bytes,
                                                       CUmemRangeHandleType type,
                                                       unsigned long long flags) {
  const auto call = [&] {
    return Driver().cuMemGetHandleForAddressRange(out, base, bytes, type, flags);
  };
  return spillway::entry::MarkVisibleIf(spillway::entry::WithAddressesThatStay(base, bytes, call));
}

SPILLWAY_EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast,
                                            size_t multicast_offset_bytes,
                                            CUmemGenericAllocationHandle handle,
                                            size_t offset_bytes, size_t bytes,
                                            unsigned long long flags) {
  return spillway::entry::WithRealHandle(handle, [&](CUmemGenericAllocationHandle real) {
    return Driver().cuMulticastBindMem(multicast, multicast_offset_bytes, real, offset_bytes, bytes,
                                       flags);
  });
}

SPILLWAY_EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast,
                                             size_t multicast_offset_bytes, CUdeviceptr base,
                                             size_t bytes, unsigned long long flags) {
  return spillway::entry::WithAddressesThatStay(base, bytes, [&] {
    return Driver().cuMulticastBindAddr(multicast, multicast_offset_bytes, base, bytes, flags);
  });
}

SPILLWAY_EXPORT CUresult cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned int count,
                                            CUstream stream) {
  return spillway::entry::MapArrays(list, count, [&](CUarrayMapInfo* real) {
    return Driver().cuMemMapArrayAsync(real, count, stream);
  });
}

SPILLWAY_EXPORT CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned int count,
                                                 CUstream stream) {
  return spillway::entry::MapArrays(list, count, [&](CUarrayMapInfo* real) {
    return Driver().cuMemMapArrayAsync_ptsz(real, count, stream);
  });
}
