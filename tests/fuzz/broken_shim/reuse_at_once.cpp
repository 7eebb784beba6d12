// A preload library that reuses freed device memory without waiting for the work that still uses
// it. The differential fuzzer must notice.
#include <cuda.h>
#include <dlfcn.h>

#include <map>
#include <mutex>

namespace {

std::mutex mutex;
std::map<CUdeviceptr, size_t> live;        // guarded by mutex
std::multimap<size_t, CUdeviceptr> freed;  // guarded by mutex

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) CUresult cuMemAlloc_v2(CUdeviceptr* address,
                                                                         size_t bytes) {
  static const auto next = Next<CUresult (*)(CUdeviceptr*, size_t)>("cuMemAlloc_v2");
  const std::lock_guard lock(mutex);
  const auto found = freed.lower_bound(bytes);
  if (bytes != 0 && found != freed.end() && found->first <= 2 * bytes) {
    *address = found->second;
    live[*address] = found->first;
    freed.erase(found);
    return CUDA_SUCCESS;
  }
  const CUresult result = next(address, bytes);
  if (result == CUDA_SUCCESS) live[*address] = bytes;
  return result;
}

extern "C" __attribute__((visibility("default"))) CUresult cuMemFree_v2(CUdeviceptr address) {
  static const auto next = Next<CUresult (*)(CUdeviceptr)>("cuMemFree_v2");
  const std::lock_guard lock(mutex);
  const auto found = live.find(address);
  if (found == live.end()) return next(address);
  freed.emplace(found->second, address);
  live.erase(found);
  return CUDA_SUCCESS;
}
