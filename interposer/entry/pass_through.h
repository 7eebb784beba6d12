// How memory that the driver serves to the program is counted against the budget: room is made before, the charge is
// noted when the driver has served it, and taken back when it has not.
//
// Called by the hooks of allocations, on any thread, outermost only.
#pragma once

#include "interposer/runtime.h"

namespace spillway::entry {

// The driver gives memory in granules, and serves small requests together from one.
inline constexpr size_t kRoundedFromBytes = size_t{1} << 20;

// What an allocation takes from the device; a size that no device has stays as it is, for the driver to refuse.
inline size_t OccupiedBytes(size_t bytes) {
  const size_t rounded_bytes = interposer::RoundUp(bytes, interposer::kGranuleBytes);
  return bytes < kRoundedFromBytes || rounded_bytes < bytes ? bytes : rounded_bytes;
}

// `call()` is the driver's allocation, `key()` what it is noted as once it is made: its address or handle.
template <class Key, class Call>
CUresult PassThrough(interposer::JobMemory* job, size_t bytes, Key key, Call call) {
  if (!job) return call();
  const size_t occupied_bytes = OccupiedBytes(bytes);
  if (!job->Charge(occupied_bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = call();
  if (result == CUDA_SUCCESS) {
    job->NotePassedThrough(key(), occupied_bytes);
  } else {
    job->Discharge(occupied_bytes);
  }
  return result;
}

// The driver has freed or destroyed it.
inline void ForgetPassedThrough(std::uint64_t key) {
  interposer::AnyJob([key](interposer::JobMemory* job) {
    job->ForgetPassedThrough(key);
    return false;
  });
}

// `call()` frees it. Its note goes before: the driver may give the address to another thread at once.
template <class Call>
CUresult FreePassedThrough(CUdeviceptr address, Call call) {
  interposer::JobMemory* job = nullptr;
  size_t bytes = 0;
  interposer::AnyJob([&](interposer::JobMemory* one) {
    bytes = one->TakePassedThrough(address);
    if (bytes) job = one;
    return job != nullptr;
  });
  const CUresult result = call();
  if (job) result == CUDA_SUCCESS ? job->Discharge(bytes) : job->NotePassedThrough(address, bytes);
  return result;
}

}  // namespace spillway::entry
