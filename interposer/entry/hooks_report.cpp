// A query about an evicted range restores it: the driver knows nothing about unmapped addresses. A
// freed range may still be mapped, so its query uses an address that is never allocated.
#include <algorithm>
#include <cstring>
#include <optional>

#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/execute/state/job_locks.h"
#include "interposer/ledger/own_mappings.h"
#include "interposer/ledger/pools.h"
#include "interposer/share/imports.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::Allocation;
using interposer::JobOwning;
using interposer::OwnMappings;
using interposer::share::Extent;

std::optional<Allocation> Describe(CUdeviceptr address) {
  const bool is_ours = ForwardsEverything() || interposer::StateLock::IsHeldHere();
  JobMemory* const job = is_ours ? nullptr : JobOwning(address);
  return job ? job->view().Describe(address) : std::nullopt;
}

// The driver answers for the chunk at the address; the program asked about all of it.
void CorrectExtent(CUpointer_attribute attribute, const Extent& extent, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      std::memcpy(data, &extent.base, sizeof extent.base);
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      std::memcpy(data, &extent.bytes, sizeof extent.bytes);
      break;
    default:
      break;
  }
}

// At the program's own addresses the driver's answers are right.
void CorrectAttribute(CUpointer_attribute attribute, const Allocation& allocation, void* data) {
  if (allocation.is_mapping) return;
  CorrectExtent(attribute, {allocation.base, allocation.requested_bytes}, data);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: {
      const unsigned int type = CU_MEMORYTYPE_DEVICE;
      std::memcpy(data, &type, sizeof type);
      break;
    }
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: {
      const int device = JobOwning(allocation.base)->device();
      std::memcpy(data, &device, sizeof device);
      break;
    }
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: {
      const void* const none = nullptr;
      std::memcpy(data, &none, sizeof none);
      break;
    }
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      const CUcontext context = JobOwning(allocation.base)->context();
      std::memcpy(data, &context, sizeof context);
      break;
    }
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
      const CUmemoryPool pool = interposer::Pools::Instance().PoolOf(allocation.base);
      std::memcpy(data, &pool, sizeof pool);
      break;
    }
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: {
      const int capable = JobOwning(allocation.base)->sharing().IsShareable();
      std::memcpy(data, &capable, sizeof capable);
      break;
    }
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      std::memcpy(data, &allocation.id, sizeof allocation.id);
      break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: {
      const std::uint64_t none = 0;  // the program may not export our chunks
      std::memcpy(data, &none, sizeof none);
      break;
    }
    default:
      break;
  }
}

// Memory of another process that this one opened: the driver answers for its chunks. A query by our
// own calls needs no such answer, and must not wait for an opening that goes on.
std::optional<Extent> ExtentOpened(CUdeviceptr address) {
  if (ForwardsEverything() || interposer::StateLock::IsHeldHere()) return std::nullopt;
  return interposer::share::Imports::Instance().ExtentOf(address);
}

std::optional<Extent> ExtentOf(CUdeviceptr address) {
  if (const std::optional<Extent> opened = ExtentOpened(address)) return opened;
  const std::optional<Allocation> allocation = Describe(address);
  if (!allocation) return std::nullopt;
  return Extent{allocation->base, allocation->requested_bytes};
}

// The driver answers with our guards (OwnMappings::Reservation).
void CorrectReservation(CUpointer_attribute attribute, CUdeviceptr address, void* data) {
  if (ForwardsEverything() || interposer::StateLock::IsHeldHere()) return;
  if (attribute != CU_POINTER_ATTRIBUTE_RANGE_START_ADDR &&
      attribute != CU_POINTER_ATTRIBUTE_RANGE_SIZE)
    return;
  OwnMappings& own = OwnMappings::Instance();
  const base::MutexLock lock(own.mutex);
  const OwnMappings::Reservation reservation = own.ReservationOf(address);
  if (reservation.bytes > 0) CorrectExtent(attribute, {reservation.base, reservation.bytes}, data);
}

constexpr CUdeviceptr kNobodys = 1;

// Scratch memory of a launch of ours is nobody's either. What belongs to the program cannot be told
// below the lock.
CUdeviceptr AskedFor(CUdeviceptr address) {
  if (interposer::StateLock::IsHeldHere()) return kNobodys;
  JobMemory* const job = ForwardsEverything() ? nullptr : JobOwning(address);
  return job && job->view().IsFreed(address) ? kNobodys : address;
}

template <class Call>
CUresult AroundQuery(CUdeviceptr address, Call call) {
  const CUdeviceptr asked = AskedFor(address);
  return Around(
      {nullptr, false}, Effect::kReads, [&](Collector& add) { add(asked); },
      [&] { return call(asked); });
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::JobMemory;
using spillway::entry::ReentryGuard;

SPILLWAY_EXPORT CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  const ReentryGuard guard;
  size_t device_free = 0, device_total = 0;
  const CUresult result = Driver().cuMemGetInfo_v2(&device_free, &device_total);
  if (result != CUDA_SUCCESS || !guard.IsOutermost()) {
    return result != CUDA_SUCCESS ? result : Driver().cuMemGetInfo_v2(free_bytes, total_bytes);
  }
  CUdevice device = 0;
  static_cast<void>(Driver().cuCtxGetDevice(&device));
  const auto shown = spillway::interposer::ShownMemory(spillway::interposer::JobOf(device),
                                                       spillway::interposer::BudgetOf(device),
                                                       device_free, device_total);
  if (total_bytes) *total_bytes = shown.total_bytes;
  if (free_bytes) *free_bytes = shown.free_bytes;
  return CUDA_SUCCESS;
}

SPILLWAY_EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  const ReentryGuard guard;
  const CUresult result = Driver().cuDeviceTotalMem_v2(bytes, device);
  if (result == CUDA_SUCCESS && guard.IsOutermost())
    *bytes = spillway::interposer::BudgetBytes(spillway::interposer::BudgetOf(device), *bytes);
  return result;
}

SPILLWAY_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes,
                                                 CUdeviceptr address) {
  const auto extent = spillway::entry::ExtentOf(address);
  if (!extent)
    return Driver().cuMemGetAddressRange_v2(base, bytes, spillway::entry::AskedFor(address));
  if (base) *base = extent->base;
  if (bytes) *bytes = extent->bytes;
  return CUDA_SUCCESS;
}

SPILLWAY_EXPORT CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute,
                                               CUdeviceptr address) {
  const CUresult result = spillway::entry::AroundQuery(address, [&](CUdeviceptr asked) {
    return Driver().cuPointerGetAttribute(data, attribute, asked);
  });
  if (result != CUDA_SUCCESS) return result;
  if (const auto opened = spillway::entry::ExtentOpened(address))
    spillway::entry::CorrectExtent(attribute, *opened, data);
  spillway::entry::CorrectReservation(attribute, address, data);
  const auto allocation = spillway::entry::Describe(address);
  if (!allocation) return result;
  spillway::entry::CorrectAttribute(attribute, *allocation, data);
  // Device memory has no host pointer, even while it is parked.
  const bool is_host_pointer = attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER;
  return is_host_pointer && !allocation->is_mapping ? CUDA_ERROR_INVALID_VALUE : result;
}

SPILLWAY_EXPORT CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes,
                                                void** data, CUdeviceptr address) {
  const CUresult result = spillway::entry::AroundQuery(address, [&](CUdeviceptr asked) {
    return Driver().cuPointerGetAttributes(count, attributes, data, asked);
  });
  if (result != CUDA_SUCCESS) return result;
  if (const auto opened = spillway::entry::ExtentOpened(address)) {
    for (unsigned int i = 0; i < count; ++i)
      spillway::entry::CorrectExtent(attributes[i], *opened, data[i]);
  }
  for (unsigned int i = 0; i < count; ++i)
    spillway::entry::CorrectReservation(attributes[i], address, data[i]);
  const auto allocation = spillway::entry::Describe(address);
  if (!allocation) return result;
  for (unsigned int i = 0; i < count; ++i)
    spillway::entry::CorrectAttribute(attributes[i], *allocation, data[i]);
  return result;
}
