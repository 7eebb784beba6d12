// Counts memory that the driver serves to the program against the budget. The charge is made before
// the driver's call, noted on success, and withdrawn on failure.
#pragma once

#include <algorithm>

#include "interposer/runtime/runtime.h"

namespace spillway::entry {

// The driver gives memory in granules, and serves small requests together from one.
inline constexpr size_t kRoundedFromBytes = size_t{1} << 20;

// Impossible sizes stay unchanged: the driver refuses.
inline size_t OccupiedBytes(size_t bytes) {
  const size_t rounded_bytes = interposer::RoundUp(bytes, interposer::kGranuleBytes);
  return bytes < kRoundedFromBytes || rounded_bytes < bytes ? bytes : rounded_bytes;
}

// A driver pool's unused memory stays charged under the pool's name (pool_charges.h).
inline std::uint64_t NameOf(CUmemoryPool pool) { return reinterpret_cast<std::uint64_t>(pool); }

inline void AddToPool(interposer::JobMemory* job, CUmemoryPool pool, size_t bytes) {
  if (bytes)
    job->charges().NotePassedThrough(NameOf(pool),
                                     bytes + job->charges().TakePassedThrough(NameOf(pool)));
}

// `call()` is the driver's allocation. `key()` returns its address or handle afterwards. An
// allocation from `pool` first uses memory that is already charged to the pool.
template <class Key, class Call>
CUresult PassThrough(interposer::JobMemory* job, size_t bytes, Key key, Call call,
                     CUmemoryPool pool = nullptr) {
  if (!job) return call();
  const size_t occupied_bytes = OccupiedBytes(bytes);
  const size_t pool_bytes = pool ? job->charges().TakePassedThrough(NameOf(pool)) : 0;
  const size_t more_bytes = occupied_bytes - std::min(occupied_bytes, pool_bytes);
  if (more_bytes && !job->charges().Charge(more_bytes)) {
    AddToPool(job, pool, pool_bytes);
    return job->charges().Refuse(occupied_bytes);
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

inline void ForgetPassedThrough(std::uint64_t key) {
  interposer::ForEachJob(
      [key](interposer::JobMemory* job) { job->charges().ForgetPassedThrough(key); });
}

template <class End, class Call>
CUresult EndPassedThrough(std::uint64_t key, End end, Call call) {
  size_t bytes = 0;
  interposer::JobMemory* const job = interposer::FindJob([&](interposer::JobMemory* one) {
    bytes = one->charges().TakePassedThrough(key);
    return bytes > 0;
  });
  const CUresult result = call();
  if (!job) return result;
  result == CUDA_SUCCESS ? end(job, bytes) : job->charges().NotePassedThrough(key, bytes);
  return result;
}

// If the memory is from a pool that may keep it (`heir`), the charge moves to the pool.
template <class Call>
CUresult FreePassedThrough(CUdeviceptr address, CUmemoryPool heir, Call call) {
  const auto end = [heir](interposer::JobMemory* job, size_t bytes) {
    heir ? AddToPool(job, heir, bytes) : job->charges().Discharge(bytes);
  };
  return EndPassedThrough(address, end, call);
}

}  // namespace spillway::entry
