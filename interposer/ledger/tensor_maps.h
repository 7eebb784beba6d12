// Which memory a tensor map names: 128 opaque bytes that the driver encoded from an address.
//
// NoteTensorMap is called by the hooks of the four functions that encode one, the others by
// everything that looks through bytes for addresses (launch parameters, graph nodes, payloads of
// copies): any thread, no lock. Owns its entries; they are never given back, 32 bytes for each
// different map that the program has encoded.
//
// A map is known by its content: programs copy the bytes as they like, into structs, parameters and
// device memory, and the content tells the address, since the driver encodes it. It is recognised
// at multiples of 64 bytes, as the driver and the hardware demand. Maps that a kernel changes
// (tensormap.replace in PTX) are not seen: what they name is found as any pointer in device memory
// is, by a full scan or by parking.
//
// Note [Maps by fingerprint]
// Of the content only 128 bits are kept. A random pair of maps has the same ones with a chance of
// 2^-128; and a map taken for another only makes the wrong memory stay, beside what its own noting
// then overwrites.
//
// Invariants
//  1. What was noted before a call began is found by that call.
//  2. The address of the newest noting of a content counts.
// Never: takes a lock; reads memory that its caller did not name.
#pragma once

#include <cstddef>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

inline constexpr std::size_t kTensorMapBytes = sizeof(CUtensorMap);
inline constexpr std::size_t kTensorMapAlignment = 64;

void NoteTensorMap(const CUtensorMap& map, CUdeviceptr address);

// False until the first noting: most programs have none.
bool AnyTensorMaps();

// The address that the 128 bytes name, or 0 when they are no map that was noted.
CUdeviceptr TensorMapAddress(const void* bytes);

// Calls found(offset, address) for each map in `size_bytes` at `data`, at `first` and every 64
// bytes from there.
template <class Found>
void ForEachTensorMap(const void* data, std::size_t size_bytes, std::size_t first, Found found) {
  if (!AnyTensorMaps()) return;
  for (std::size_t at = first; at + kTensorMapBytes <= size_bytes; at += kTensorMapAlignment) {
    if (const CUdeviceptr address = TensorMapAddress(static_cast<const std::byte*>(data) + at))
      found(at, address);
  }
}

}  // namespace spillway::interposer
