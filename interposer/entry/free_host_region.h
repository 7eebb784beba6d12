// Frees memory that the CPU reads and kernels reach: pinned, registered and managed memory.
#pragma once

#include <optional>

#include "interposer/ledger/host_regions.h"
#include "interposer/runtime/runtime.h"

namespace spillway::entry {

// The region leaves the table first, so that no thread reads it during the free. If the driver
// refuses, the region returns to the table.
template <class Call>
CUresult FreeHostRegion(const void* data, Call call) {
  using interposer::HostRegions;
  const std::optional<interposer::HostRegion> region = HostRegions::Instance().Take(data);
  const CUresult result = call();
  if (!region) return result;
  if (result != CUDA_SUCCESS) {
    HostRegions::Instance().Add(*region);
    return result;
  }
  interposer::ForEachJob([&](interposer::JobMemory* job) {
    job->stored_addresses().ForgetHost(region->base, region->bytes);
  });
  return result;
}

}  // namespace spillway::entry
