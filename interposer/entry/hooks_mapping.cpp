// The program's own virtual memory (cuMemCreate and its mappings): never moved. Its physical memory
// on a device counts against the budget until its last handle and mapping are gone.
//
// Memory on the host is not counted. Imported memory counts in the process that made it.
//
// Programs get no handles of our chunks (libraries that register buffers ask for them). They get
// the driver's answer for memory that cuMemCreate did not make.
#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/ledger/own_mappings.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::kGranuleBytes;
using interposer::OwnMappings;
using interposer::Unmovable;

OwnMappings& Mappings() {
  static OwnMappings* const mappings = new OwnMappings;  // calls come until the process ends
  return *mappings;
}

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
  if (!payer->charges().Charge(bytes, Unmovable::kOwnMapping))
    return payer->charges().Refuse(bytes);
  const CUresult result = call();
  if (result == CUDA_SUCCESS) {
    Mappings().Created(*handle, {payer, bytes});
  } else {
    payer->charges().Discharge(bytes, Unmovable::kOwnMapping);
  }
  return result;
}

bool IsOurs(CUdeviceptr address) { return interposer::JobOwning(address) != nullptr; }

// `end(ended)` makes the driver's call and lists the memory that ends with it.
template <class End>
CUresult GiveBack(End end) {
  OwnMappings::Ended ended;
  const CUresult result = end(&ended);
  for (const OwnMappings::Memory& memory : ended)
    static_cast<JobMemory*>(memory.payer)
        ->charges()
        .Discharge(memory.bytes, Unmovable::kOwnMapping);
  return result;
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::GiveBack;
using spillway::entry::Mappings;
using spillway::entry::ReentryGuard;
using spillway::interposer::OwnMappings;

SPILLWAY_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                                     const CUmemAllocationProp* properties,
                                     unsigned long long flags) {
  return spillway::entry::Create(handle, bytes, properties, flags);
}

SPILLWAY_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const ReentryGuard guard;
  const auto call = [&] { return Driver().cuMemRelease(handle); };
  if (!guard.IsOutermost()) return call();
  return GiveBack(
      [&](OwnMappings::Ended* ended) { return Mappings().Release(handle, ended, call); });
}

SPILLWAY_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                                     void* address) {
  const ReentryGuard guard;
  const bool is_ours =
      guard.IsOutermost() && spillway::entry::IsOurs(reinterpret_cast<CUdeviceptr>(address));
  if (is_ours) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Driver().cuMemRetainAllocationHandle(handle, address);
  if (result == CUDA_SUCCESS && guard.IsOutermost())
    Mappings().Retained(*handle, reinterpret_cast<CUdeviceptr>(address));
  return result;
}

SPILLWAY_EXPORT CUresult cuMemMap(CUdeviceptr base, size_t bytes, size_t offset_bytes,
                                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const ReentryGuard guard;
  const CUresult result = Driver().cuMemMap(base, bytes, offset_bytes, handle, flags);
  if (result == CUDA_SUCCESS && guard.IsOutermost()) Mappings().Mapped(base, handle);
  return result;
}

SPILLWAY_EXPORT CUresult cuMemUnmap(CUdeviceptr base, size_t bytes) {
  const ReentryGuard guard;
  const auto call = [&] { return Driver().cuMemUnmap(base, bytes); };
  if (!guard.IsOutermost()) return call();
  if (spillway::entry::IsOurs(base)) return CUDA_ERROR_INVALID_VALUE;
  return GiveBack(
      [&](OwnMappings::Ended* ended) { return Mappings().Unmap(base, bytes, ended, call); });
}
