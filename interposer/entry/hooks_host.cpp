// Pinned host memory and managed memory: the driver's, passed through and counted.
//
// Note [Managed memory and the budget]
// The driver moves managed memory by itself and may hold all of it on the device, so it is charged like any memory of the
// driver's. What does not fit the budget is given nevertheless, as it would be on a full device: with the advice that it
// belongs on the host (CU_MEM_ADVISE_SET_PREFERRED_LOCATION), so that kernels reach it there instead of its moving in.
#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/pass_through.h"
#include "interposer/ledger/app_memory.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::AppMemory;

std::uint64_t NameOf(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

CUresult Pinned(CUresult result, void* const* pointer, size_t bytes) {
  if (result == CUDA_SUCCESS && !ForwardsEverything()) AppMemory::Pinned().Add(NameOf(*pointer), bytes);
  return result;
}

CUresult Unpinned(CUresult result, const void* pointer) {
  if (result == CUDA_SUCCESS && !ForwardsEverything()) AppMemory::Pinned().Remove(NameOf(pointer));
  return result;
}

// Only advice: where the driver takes none, the memory is the driver's to place.
void KeepOnHost(CUdeviceptr address, size_t bytes) {
  Driver().cuMemAdvise(address, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU);
}

CUresult AllocateManaged(CUdeviceptr* out, size_t bytes, unsigned int flags) {
  const auto call = [&] { return Driver().cuMemAllocManaged(out, bytes, flags); };
  const ReentryGuard guard;
  if (!guard.IsOutermost() || !out || !bytes) return call();
  JobMemory* const managed = interposer::JobForAllocation();
  CUresult result = PassThrough(
      managed ? managed : interposer::JobHere(), bytes, [out] { return *out; }, call);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    result = call();
    if (result == CUDA_SUCCESS) KeepOnHost(*out, bytes);
  }
  if (result == CUDA_SUCCESS) AppMemory::Managed().Add(*out, bytes);
  return result;
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::Pinned;
using spillway::entry::Unpinned;

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
  return Unpinned(Driver().cuMemFreeHost(pointer), pointer);
}
SPILLWAY_EXPORT CUresult cuMemHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  return Pinned(Driver().cuMemHostRegister(pointer, bytes, flags), &pointer, bytes);
}
SPILLWAY_EXPORT CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned int flags) {
  return Pinned(Driver().cuMemHostRegister_v2(pointer, bytes, flags), &pointer, bytes);
}
SPILLWAY_EXPORT CUresult cuMemHostUnregister(void* pointer) {
  return Unpinned(Driver().cuMemHostUnregister(pointer), pointer);
}
SPILLWAY_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned int flags) {
  return spillway::entry::AllocateManaged(out, bytes, flags);
}
