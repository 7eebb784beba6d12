// A texture or surface object as kernels see it: the handle is the address of a TextureView.
//
// Made by simulator/driver. Read by device/textures.h and device/surfaces.h.
//
// Invariants
//  1. Constant while the object lives. Using a destroyed object reads arbitrary memory.
//  2. The texels lie in device memory, rows of `pitch_bytes`, slices (or layers) of `slice_bytes`.
//     A fetch from unmapped memory faults like a load.
//  3. `format` and the modes are the numbers of cuda.h.
#pragma once

#include <cstdint>

namespace spillway::simulator {

inline constexpr std::uint64_t kTextureMagic = 0x455255545845544dULL;
inline constexpr std::uint64_t kSurfaceMagic = 0x4543414652555354ULL;
inline constexpr std::uint32_t kMaxMipmapLevels = 18;  // of 131072 texels

struct TextureLevel {
  unsigned char* base;
  std::uint64_t pitch_bytes;
  std::uint64_t slice_bytes;
  std::uint32_t width;
  std::uint32_t height;  // 1 for one dimension
  std::uint32_t depth;   // or layers; 1 for up to two dimensions
};

struct TextureView {
  std::uint64_t magic;
  std::uint32_t format;    // CUarray_format of a channel
  std::uint32_t channels;  // 1, 2 or 4
  std::uint32_t texel_bytes;
  std::uint32_t flags;            // CU_TRSF_*
  std::uint32_t address_mode[3];  // CUaddress_mode
  std::uint32_t filter;           // CUfilter_mode, and between levels:
  std::uint32_t mipmap_filter;
  float level_bias;
  float least_level;
  float greatest_level;
  float border[4];
  std::uint32_t levels;
  TextureLevel level[kMaxMipmapLevels];
};

}  // namespace spillway::simulator
