// Note [Managed memory and the budget]
// The driver moves managed memory by itself and may hold all of it on the device. So it is charged
// like other memory of the driver's. A request beyond the budget is still granted, as on a full
// device. CU_MEM_ADVISE_SET_PREFERRED_LOCATION lets kernels reach it on the host.
#include "interposer/driver/device_attribute.h"
#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/free_host_region.h"
#include "interposer/entry/pass_through.h"
#include "interposer/ledger/app_memory.h"
#include "interposer/ledger/host_regions.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::AppMemory;
using interposer::HostRegion;
using interposer::HostRegions;

std::uint64_t NameOf(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

CUcontext CurrentContext() {
  CUcontext context = nullptr;
  Driver().cuCtxGetCurrent(&context);
  return context;
}

// Kernels may use another address for it than the CPU.
void RegisterRegion(const void* pointer, size_t bytes, HostRegion::Reading reading) {
  CUdeviceptr address = 0;
  const CUresult told =
      Driver().cuMemHostGetDevicePointer_v2(&address, const_cast<void*>(pointer), 0);
  if (told != CUDA_SUCCESS || !address) address = reinterpret_cast<CUdeviceptr>(pointer);
  HostRegions::Instance().Add(
      {address, bytes, static_cast<const std::byte*>(pointer), reading, CurrentContext()});
}

CUresult Pinned(CUresult result, void* const* pointer, size_t bytes,
                HostRegion::Reading reading = HostRegion::Reading::kDirect) {
  if (result != CUDA_SUCCESS || ForwardsEverything()) return result;
  AppMemory::Pinned().Add(NameOf(*pointer), bytes);
  RegisterRegion(*pointer, bytes, reading);
  return result;
}

template <class Call>
CUresult Unpin(const void* pointer, Call call) {
  if (ForwardsEverything()) return call();
  const CUresult result = FreeHostRegion(pointer, call);
  if (result == CUDA_SUCCESS) AppMemory::Pinned().Remove(NameOf(pointer));
  return result;
}

// We read managed memory only if the CPU may access it while the device works.
HostRegion::Reading ReadingOfManaged() {
  CUdevice device = 0;
  const bool may_read = Driver().cuCtxGetDevice(&device) == CUDA_SUCCESS &&
                        driver::HasAttribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
  return may_read ? HostRegion::Reading::kDirect : HostRegion::Reading::kNone;
}

// Only advice: if the driver ignores it, the driver places the memory.
void KeepOnHost(CUdeviceptr address, size_t bytes) {
  Driver().cuMemAdvise(address, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU);
}

CUresult AllocateManaged(CUdeviceptr* out, size_t bytes, unsigned int flags) {
  const auto call = [&] { return Driver().cuMemAllocManaged(out, bytes, flags); };
  const ReentryGuard guard;
  if (!guard.IsOutermost() || !out || !bytes) return call();
  const interposer::TurnPass turn;
  CUresult result = PassThrough(
      interposer::JobToCharge(), bytes, [out] { return *out; }, call);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    result = call();
    if (result == CUDA_SUCCESS) KeepOnHost(*out, bytes);
  }
  if (result != CUDA_SUCCESS) return result;
  AppMemory::Managed().Add(*out, bytes);
  HostRegions::Instance().Add({*out, bytes, reinterpret_cast<const std::byte*>(*out),
                               ReadingOfManaged(), CurrentContext()});
  return result;
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::Pinned;
using spillway::entry::Unpin;
using spillway::interposer::HostRegion;

SPILLWAY_EXPORT CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return Pinned(Driver().cuMemHostAlloc(pointer, bytes, flags), pointer, bytes);
}
SPILLWAY_EXPORT CUresult cuMemAllocHost(void** pointer, unsigned int bytes) {
  return Pinned(Driver().cuMemAllocHost(pointer, bytes), pointer, bytes);
}
SPILLWAY_EXPORT CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return Pinned(Driver().cuMemAllocHost_v2(pointer, bytes), pointer, bytes);
}
SPILLWAY_EXPORT CUresult cuMemFreeHost(void* pointer) {
  return Unpin(pointer, [&] { return Driver().cuMemFreeHost(pointer); });
}
SPILLWAY_EXPORT CUresult cuMemHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  return Pinned(Driver().cuMemHostRegister(pointer, bytes, flags), &pointer, bytes,
                HostRegion::Reading::kRegistered);
}
SPILLWAY_EXPORT CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned int flags) {
  return Pinned(Driver().cuMemHostRegister_v2(pointer, bytes, flags), &pointer, bytes,
                HostRegion::Reading::kRegistered);
}
SPILLWAY_EXPORT CUresult cuMemHostUnregister(void* pointer) {
  return Unpin(pointer, [&] { return Driver().cuMemHostUnregister(pointer); });
}
SPILLWAY_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned int flags) {
  return spillway::entry::AllocateManaged(out, bytes, flags);
}
