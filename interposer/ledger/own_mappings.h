// Physical memory that the program holds itself (cuMemCreate): by which handles and mappings, until
// the last is gone.
//
// Called by the hooks, on any thread; synchronises itself. Owns plain facts. Who pays for the
// memory is the caller's affair: a name that comes back when the memory has ended.
//
// Invariants
//  1. Memory ends when every reference to its handle has been released and every mapping of it
//  unmapped, in whatever order
//     (cuMemRelease: "the memory will be freed when all outstanding mappings are unmapped and all
//     references released").
//  2. The driver may give a handle or an address out anew as soon as it has ended: ends are noted
//  before any other thread
//     can note a beginning of the same name, as the driver's call is made with the lock held. It
//     does not wait.
// Never: holds memory, or asks the driver anything.
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
  // The program asked for the handle of what is mapped at the address.
  void Retained(CUmemGenericAllocationHandle handle, CUdeviceptr address);
  void Mapped(CUdeviceptr base, CUmemGenericAllocationHandle handle);

  // `call()` is the driver's; what ends with it is answered in `ended`.
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
    size_t holders = 0;  // references of handles, and mappings
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
