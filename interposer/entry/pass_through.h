// How memory that the driver serves to the program is counted against the budget: room is made
// before, the charge is noted when the driver has served it, and taken back when it has not.
//
// Called by the hooks of allocations, on any thread, outermost only.
#pragma once

#include <algorithm>

#include "interposer/runtime.h"

namespace spillway::entry {

// The driver gives memory in granules, and serves small requests together from one.
inline constexpr size_t kRoundedFromBytes = size_t{1} << 20;

// What an allocation takes from the device; a size that no device has stays as it is, for the
// driver to refuse.
inline size_t OccupiedBytes(size_t bytes) {
  const size_t rounded_bytes = interposer::RoundUp(bytes, interposer::kGranuleBytes);
  return bytes < kRoundedFromBytes || rounded_bytes < bytes ? bytes : rounded_bytes;
}

// What a pool of the driver's holds beyond what is allocated from it stays charged under the pool's
// own name, until it gives it back (pool_charges.h).
inline std::uint64_t NameOf(CUmemoryPool pool) { return reinterpret_cast<std::uint64_t>(pool); }

inline void AddToPool(interposer::JobMemory* job, CUmemoryPool pool, size_t bytes) {
  if (bytes)
    job->charges().NotePassedThrough(NameOf(pool),
                                     bytes + job->charges().TakePassedThrough(NameOf(pool)));
}

// `call()` is the driver's allocation, `key()` what it is noted as once it is made: its address or
// handle. What `pool` holds and is charged for already, if it is from one, comes first.
template <class Key, class Call>
CUresult PassThrough(interposer::JobMemory* job, size_t bytes, Key key, Call call,
                     CUmemoryPool pool = nullptr) {
  if (!job) return call();
  const size_t occupied_bytes = OccupiedBytes(bytes);
  const size_t pool_bytes = pool ? job->charges().TakePassedThrough(NameOf(pool)) : 0;
  const size_t more_bytes = occupied_bytes - std::min(occupied_bytes, pool_bytes);
  if (more_bytes && !job->charges().Charge(more_bytes)) {
    AddToPool(job, pool, pool_bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult result = call();
  if (result == CUDA_SUCCESS) {
    job->charges().NotePassedThrough(key(), occupied_bytes);
    AddToPool(job, pool, pool_bytes + more_bytes - occupied_bytes);
  } else {
    AddToPool(job, pool, pool_bytes);
    if (more_bytes) job->charges().Discharge(more_bytes);
  }
  return result;
}

// The driver has freed or destroyed it.
inline void ForgetPassedThrough(std::uint64_t key) {
  interposer::ForEachJob(
      [key](interposer::JobMemory* job) { job->charges().ForgetPassedThrough(key); });
}

// `call()` frees it. Its note goes before: the driver may give the address to another thread at
// once. The memory goes back to its pool, if it is from one that may keep it (`heir`).
template <class Call>
CUresult FreePassedThrough(CUdeviceptr address, CUmemoryPool heir, Call call) {
  size_t bytes = 0;
  interposer::JobMemory* const job = interposer::FindJob([&](interposer::JobMemory* one) {
    bytes = one->charges().TakePassedThrough(address);
    return bytes > 0;
  });
  const CUresult result = call();
  if (!job) return result;
  if (result != CUDA_SUCCESS) {
    job->charges().NotePassedThrough(address, bytes);
  } else if (heir) {
    AddToPool(job, heir, bytes);
  } else {
    job->charges().Discharge(bytes);
  }
  return result;
}

}  // namespace spillway::entry
