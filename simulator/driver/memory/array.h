// The targets of CUarray and CUmipmappedArray. Texels lie in the device's heap.
//
// Invariants
//  1. Texels lie in rows of `pitch_bytes`, rows in slices; slice, row and column 0 are at `base`.
//     The extent of a missing dimension is 1 here and 0 in the descriptor.
//  2. An array's memory counts as device memory from its creation to its destruction.
//  3. A level's handle lives as long as its mipmapped array and cannot be destroyed by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "simulator/driver/abi.h"

namespace spillway::simulator {

struct Context;
class DeviceHeap;

struct Array {
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  Context* context = nullptr;
  DeviceHeap* heap = nullptr;
  std::uintptr_t base = 0;
  std::size_t texel_bytes = 0;
  std::size_t pitch_bytes = 0;
  std::size_t rows = 1;
  std::size_t slices = 1;
  bool is_level = false;

  std::size_t row_bytes() const { return descriptor.Width * texel_bytes; }
  std::size_t slice_bytes() const { return pitch_bytes * rows; }
  std::size_t size_bytes() const { return slice_bytes() * slices; }
};

struct MipmappedArray {
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  Context* context = nullptr;
  DeviceHeap* heap = nullptr;
  std::uintptr_t base = 0;
  std::vector<std::unique_ptr<Array>> levels;
};

std::size_t ChannelBytes(CUarray_format format);

class ArrayTable {
 public:
  // These throw CUDA_ERROR_INVALID_VALUE for broken rules, CUDA_ERROR_NOT_SUPPORTED for planar,
  // compressed, sparse and deferred arrays, and CUDA_ERROR_OUT_OF_MEMORY.
  CUarray Create(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, Context* context, DeviceHeap& heap);
  CUmipmappedArray CreateMipmapped(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned levels,
                                   Context* context, DeviceHeap& heap);

  Array& Find(CUarray handle) const;
  MipmappedArray& Find(CUmipmappedArray handle) const;
  void Destroy(CUarray handle);
  void Destroy(CUmipmappedArray handle);

  void DestroyAllOf(const Context* context);

 private:
  std::map<CUarray, std::unique_ptr<Array>> arrays_;
  std::map<CUmipmappedArray, std::unique_ptr<MipmappedArray>> mipmapped_;
  std::map<CUarray, Array*> levels_;
};

}  // namespace spillway::simulator
