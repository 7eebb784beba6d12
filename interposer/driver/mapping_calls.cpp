#include "interposer/driver/mapping_calls.h"

#include <atomic>

#include "interposer/driver/driver_api.h"

namespace spillway::driver {
namespace {

constinit std::atomic<std::uint64_t> creates{0}, maps{0}, set_accesses{0}, unmaps{0}, releases{0};

void Count(std::atomic<std::uint64_t>* calls) { calls->fetch_add(1, std::memory_order_relaxed); }
std::uint64_t Read(const std::atomic<std::uint64_t>& calls) {
  return calls.load(std::memory_order_relaxed);
}

}  // namespace

MappingCalls ReadMappingCalls() {
  return {Read(creates), Read(maps), Read(set_accesses), Read(unmaps), Read(releases)};
}

CUresult MemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                   const CUmemAllocationProp* properties) {
  Count(&creates);
  return Driver().cuMemCreate(handle, bytes, properties, 0);
}

CUresult MemMap(CUdeviceptr base, std::size_t bytes, CUmemGenericAllocationHandle handle) {
  Count(&maps);
  return Driver().cuMemMap(base, bytes, 0, handle, 0);
}

CUresult MemSetAccess(CUdeviceptr base, std::size_t bytes, const CUmemAccessDesc* access,
                      std::size_t count) {
  Count(&set_accesses);
  return Driver().cuMemSetAccess(base, bytes, access, count);
}

CUresult MemUnmap(CUdeviceptr base, std::size_t bytes) {
  Count(&unmaps);
  return Driver().cuMemUnmap(base, bytes);
}

CUresult MemRelease(CUmemGenericAllocationHandle handle) {
  Count(&releases);
  return Driver().cuMemRelease(handle);
}

}  // namespace spillway::driver
