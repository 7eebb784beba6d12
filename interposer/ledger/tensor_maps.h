// The memory that a tensor map names: the driver encodes an address into 128 undocumented bytes.
//
// Any thread, no lock. Owns its entries and never frees them: 32 bytes for each different map.
//
// A map is recognised by its content, because programs copy the bytes freely. It lies at multiples
// of 64 bytes, as the driver and the hardware demand. Maps that a kernel changes (tensormap.replace
// in PTX) are not seen: a full scan, or parking, finds their addresses like other pointers.
//
// Note [Maps by fingerprint]
// Two random maps collide with a chance of 2^-128. A map taken for another only keeps the wrong
// memory resident.
// Invariants
//  1. A call finds all maps that were noted before it began.
//  2. The newest address of a content counts.
// Never: takes a lock; reads memory that its caller did not name.
#pragma once

#include <cstddef>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

inline constexpr std::size_t kTensorMapBytes = sizeof(CUtensorMap);
inline constexpr std::size_t kTensorMapAlignment = 64;

void NoteTensorMap(const CUtensorMap& map, CUdeviceptr address);

// False until the first map is noted: most programs have none.
bool AnyTensorMaps();

// 0 if the 128 bytes are no known map.
CUdeviceptr TensorMapAddress(const void* bytes);

// From offset `first` on, every 64 bytes.
template <class Found>
void ForEachTensorMap(const void* data, std::size_t size_bytes, std::size_t first, Found found) {
  if (!AnyTensorMaps()) return;
  for (std::size_t at = first; at + kTensorMapBytes <= size_bytes; at += kTensorMapAlignment) {
    if (const CUdeviceptr address = TensorMapAddress(static_cast<const std::byte*>(data) + at))
      found(at, address);
  }
}

}  // namespace spillway::interposer
