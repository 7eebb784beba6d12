// Physical memory that the program holds itself (cuMemCreate), with its handles and mappings.
//
// `payer` is an opaque value that is returned when the memory ends.
// Invariants
//  1. Memory ends when all references to its handle are released and all its mappings are unmapped,
//     in any order (cuMemRelease: "the memory will be freed when all outstanding mappings are
//     unmapped and all references released").
//  2. The driver may reuse a handle or an address as soon as it has ended. So the driver's call is
//     made with the lock held, and its end is noted before a new beginning. The call does not wait.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

class OwnMappings {
 public:
  struct Memory {
    void* payer;
    size_t bytes;
  };
  using Ended = std::vector<Memory>;

  void Created(CUmemGenericAllocationHandle handle, const Memory& memory);
  void Retained(CUmemGenericAllocationHandle handle, CUdeviceptr address);
  void Mapped(CUdeviceptr base, CUmemGenericAllocationHandle handle);

  // `call()` is the driver's. `ended` receives the memory that ends with it.
  template <class Call>
  CUresult Release(CUmemGenericAllocationHandle handle, Ended* ended, Call call) {
    const base::MutexLock lock(mutex_);
    const CUresult result = call();
    if (result == CUDA_SUCCESS) Released(handle, ended);
    return result;
  }
  template <class Call>
  CUresult Unmap(CUdeviceptr base, size_t bytes, Ended* ended, Call call) {
    const base::MutexLock lock(mutex_);
    const CUresult result = call();
    if (result == CUDA_SUCCESS) Unmapped(base, bytes, ended);
    return result;
  }

 private:
  struct Physical {
    Memory memory;
    size_t holders = 0;
  };
  struct Handle {
    std::shared_ptr<Physical> physical;
    size_t references = 0;
  };

  static void Let(const std::shared_ptr<Physical>& physical, Ended* ended);
  void Released(CUmemGenericAllocationHandle handle, Ended* ended) SPILLWAY_REQUIRES(mutex_);
  void Unmapped(CUdeviceptr base, size_t bytes, Ended* ended) SPILLWAY_REQUIRES(mutex_);

  base::Mutex mutex_{base::LockRank::kOwnMappings};
  std::unordered_map<CUmemGenericAllocationHandle, Handle> handles_ SPILLWAY_GUARDED_BY(mutex_);
  std::map<CUdeviceptr, std::shared_ptr<Physical>> mappings_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer
