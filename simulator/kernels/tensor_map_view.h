// The simulated content of a CUtensorMap's 128 opaque bytes; NVIDIA's layout is not documented.
//
// Made by simulator/driver. Read by device/tensor_maps.h, and by the driver, for the memory that a
// launch may use.
//
// Invariants
//  1. Plain bytes that may be copied anywhere; a copy is as good as the original.
//  2. The address is inverted: as in a GPU's opaque tensor map, no word may look like a pointer.
#pragma once

#include <cstdint>

namespace spillway::simulator {

inline constexpr std::uint64_t kTensorMapMagic = 0x50414d524f534e54ULL;
inline constexpr std::uint32_t kMaxTensorRank = 5;

enum class TensorMapKind : std::uint8_t { kTiled, kIm2col, kIm2colWide };

struct TensorMapView {
  std::uint64_t magic;
  std::uint64_t inverted_address;
  std::uint64_t strides[kMaxTensorRank - 1];  // bytes, of dimensions 1 and up
  std::uint32_t last[kMaxTensorRank];         // size - 1, innermost dimension first
  std::uint16_t
      box[kMaxTensorRank];       // tiled: elements; im2col: {channels per pixel, pixels per column}
  std::int16_t lower_corner[3];  // im2col: innermost (W) first
  std::int16_t upper_corner[3];
  std::uint8_t element_strides[kMaxTensorRank];
  std::uint8_t rank;
  TensorMapKind kind;
  std::uint8_t data_type;  // CUtensorMapDataType
  std::uint8_t interleave;
  std::uint8_t swizzle;  // CUtensorMapSwizzle
  std::uint8_t fill;     // CUtensorMapFloatOOBfill
  std::uint8_t promotion;
  std::uint8_t wide_mode;

  std::uint64_t Address() const { return ~inverted_address; }
};
static_assert(sizeof(TensorMapView) <= 128);

}  // namespace spillway::simulator
