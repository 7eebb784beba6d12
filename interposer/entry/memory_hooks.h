// Shared code of the allocation hooks: whose memory an allocation becomes, and how it is freed.
#pragma once

#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/free_host_region.h"
#include "interposer/entry/graph_memory.h"
#include "interposer/entry/pass_through.h"
#include "interposer/ledger/app_memory.h"
#include "interposer/ledger/pools.h"
#include "interposer/runtime/report.h"
#include "interposer/share/export_service.h"

namespace spillway::entry {

inline bool HasContext() {
  CUcontext context = nullptr;
  return driver::Driver().cuCtxGetCurrent(&context) == CUDA_SUCCESS && context;
}

template <class Release, class Call>
CUresult Free(CUdeviceptr address, Release release, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost() || !address) return call();
  // A driver that has shut down must answer so, whoever owns the memory.
  if (interposer::ExitBegan() && !HasContext()) return call();
  // These run before the address can be reused.
  const CUmemoryPool heir = interposer::Pools::Instance().Freed(address);
  interposer::share::ExportService::Freed(address);
  if (interposer::FindJob(release))
    return UnlessWrong(CUDA_SUCCESS);  // it may have waited for work
  const auto free = [&] { return FreePassedThrough(address, heir, call); };
  const CUresult result = interposer::HostRegions::MightHold(address)
                              ? FreeHostRegion(reinterpret_cast<const void*>(address), free)
                              : free();
  if (result != CUDA_SUCCESS) return result;
  interposer::AppMemory::Managed().Remove(address);
  RecountLeftGraphMemory();
  return result;
}

}  // namespace spillway::entry
