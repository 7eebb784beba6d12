// Copies between tiles in shared memory and the tensor that a CUtensorMap describes.
//
// Used by kernels compiled for the simulator, in place of cp.async.bulk.tensor instructions in
// inline PTX. A program writes, in one thread of a block:
//
//   #ifdef SPILLWAY_SIMULATED_KERNELS
//     spillway_tensor_load(tile, &map, x, y);       // any number of coordinates, innermost first
//   #else
//     ... cp.async.bulk.tensor.2d.shared::cluster.global ... and wait for its barrier
//   #endif
//
// The copy is done when the call returns. Elements outside the tensor read as zeros and are not
// stored. Interleaved layouts, packed types and the 32- and 64-byte swizzle atoms end the kernel.
#pragma once

// A program may have a header of its own named cuda.h.
#ifdef SPILLWAY_TOOLKIT_CUDA_H
#include SPILLWAY_TOOLKIT_CUDA_H
#else
#include <cuda.h>
#endif

#include <cstdint>
#include <cstring>

#include "simulator/kernels/device/surfaces.h"
#include "simulator/kernels/tensor_map_view.h"

namespace spillway::simulator::device {

enum class TileDirection { kLoad, kStore };

inline TensorMapView MapAt(const void* map) {
  TensorMapView view;
  std::memcpy(&view, map, sizeof view);
  const bool offered =
      view.magic == kTensorMapMagic && view.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE &&
      view.data_type < CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B &&
      view.swizzle <= CU_TENSOR_MAP_SWIZZLE_128B && view.kind != TensorMapKind::kIm2colWide;
  if (!offered) Trap();
  return view;
}

inline std::uint64_t ElementBytes(const TensorMapView& map) {
  switch (map.data_type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 8;
    default:
      return 4;
  }
}

// A span's 16-byte chunks are permuted in shared memory.
inline std::uint64_t Swizzled(std::uint64_t offset, unsigned swizzle) {
  const std::uint64_t mask = swizzle == CU_TENSOR_MAP_SWIZZLE_128B  ? 7
                             : swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 3
                             : swizzle == CU_TENSOR_MAP_SWIZZLE_32B ? 1
                                                                    : 0;
  return offset ^ ((offset >> 7 & mask) << 4);
}

inline unsigned char* ElementAt(const TensorMapView& map,
                                const std::int64_t (&position)[kMaxTensorRank]) {
  std::uint64_t address = map.Address();
  for (unsigned i = 0; i < map.rank; ++i) {
    if (position[i] < 0 || position[i] > std::int64_t{map.last[i]}) return nullptr;
    address +=
        static_cast<std::uint64_t>(position[i]) * (i == 0 ? ElementBytes(map) : map.strides[i - 1]);
  }
  return reinterpret_cast<unsigned char*>(address);
}

inline void MoveElement(const TensorMapView& map, const std::int64_t (&position)[kMaxTensorRank],
                        void* shared, std::uint64_t index, TileDirection direction) {
  const std::uint64_t bytes = ElementBytes(map);
  unsigned char* const tile =
      static_cast<unsigned char*>(shared) + Swizzled(index * bytes, map.swizzle);
  unsigned char* const element = ElementAt(map, position);
  if (direction == TileDirection::kStore) {
    if (element != nullptr) std::memcpy(element, tile, bytes);
  } else if (element != nullptr) {
    std::memcpy(tile, element, bytes);
  } else {
    std::memset(tile, 0, bytes);
  }
}

// Innermost dimension fastest.
template <typename Visit>
void ForEachInBox(const TensorMapView& map, const std::int64_t (&corner)[kMaxTensorRank],
                  Visit visit) {
  std::int64_t step[kMaxTensorRank] = {};
  for (;;) {
    std::int64_t position[kMaxTensorRank];
    for (unsigned i = 0; i < kMaxTensorRank; ++i) position[i] = corner[i] + step[i];
    visit(position);
    unsigned dimension = 0;
    while (dimension < map.rank) {
      step[dimension] += map.element_strides[dimension];
      if (step[dimension] < map.box[dimension]) break;
      step[dimension++] = 0;
    }
    if (dimension == map.rank) return;
  }
}

inline void MoveTile(void* shared, const void* map_bytes,
                     const std::int64_t (&corner)[kMaxTensorRank], TileDirection direction) {
  const TensorMapView map = MapAt(map_bytes);
  if (map.kind != TensorMapKind::kTiled) Trap();
  std::uint64_t index = 0;
  ForEachInBox(map, corner, [&](const std::int64_t(&position)[kMaxTensorRank]) {
    MoveElement(map, position, shared, index++, direction);
  });
}

// Within the box that the corners define: W fastest, the batch last.
inline void NextPixel(const TensorMapView& map, std::int64_t (&pixel)[kMaxTensorRank]) {
  for (unsigned i = 1; i + 1 < map.rank; ++i) {
    pixel[i] += map.element_strides[i];
    if (pixel[i] <= std::int64_t{map.last[i]} + map.upper_corner[i - 1]) return;
    pixel[i] = map.lower_corner[i - 1];
  }
  ++pixel[map.rank - 1];
}

inline void LoadColumn(void* shared, const void* map_bytes,
                       const std::int64_t (&first)[kMaxTensorRank],
                       const std::int64_t (&offsets)[3]) {
  const TensorMapView map = MapAt(map_bytes);
  if (map.kind != TensorMapKind::kIm2col) Trap();
  std::int64_t pixel[kMaxTensorRank];
  std::memcpy(pixel, first, sizeof pixel);
  std::uint64_t index = 0;
  for (unsigned i = 0; i < map.box[1]; ++i, NextPixel(map, pixel)) {
    std::int64_t position[kMaxTensorRank];
    std::memcpy(position, pixel, sizeof position);
    for (unsigned d = 0; d + 2 < map.rank; ++d) position[1 + d] += offsets[d];
    for (unsigned channel = 0; channel < map.box[0]; ++channel, ++position[0]) {
      MoveElement(map, position, shared, index++, TileDirection::kLoad);
    }
  }
}

}  // namespace spillway::simulator::device

template <typename... Coordinates>
static inline void spillway_tensor_load(void* tile, const void* map, Coordinates... coordinates) {
  namespace device = spillway::simulator::device;
  const std::int64_t corner[spillway::simulator::kMaxTensorRank] = {
      static_cast<std::int64_t>(coordinates)...};
  device::MoveTile(tile, map, corner, device::TileDirection::kLoad);
}

template <typename... Coordinates>
static inline void spillway_tensor_store(const void* map, void* tile, Coordinates... coordinates) {
  namespace device = spillway::simulator::device;
  const std::int64_t corner[spillway::simulator::kMaxTensorRank] = {
      static_cast<std::int64_t>(coordinates)...};
  device::MoveTile(tile, map, corner, device::TileDirection::kStore);
}

// `first`: {c, w, h, d, n} up to the rank. `offsets`: {w, h, d}, the column's filter position.
static inline void spillway_tensor_load_im2col(
    void* tile, const void* map, const std::int64_t (&first)[spillway::simulator::kMaxTensorRank],
    const std::int64_t (&offsets)[3]) {
  spillway::simulator::device::LoadColumn(tile, map, first, offsets);
}
