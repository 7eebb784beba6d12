// The documented rules of tensor maps, and the simulator's encoding of them.
//
// Source: cuda.h 13.0, cuTensorMapEncodeTiled, EncodeIm2col and EncodeIm2colWide. A broken rule is
// CUDA_ERROR_INVALID_VALUE.
#pragma once

#include "simulator/driver/abi.h"
#include "simulator/kernels/tensor_map_view.h"

namespace spillway::simulator {

struct TensorLayout {
  CUtensorMapDataType type;
  cuuint32_t rank;
  void* address;
  const cuuint64_t* sizes;
  const cuuint64_t* strides;
  const cuuint32_t* element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
};

struct PixelBox {
  const int* lower_corner;  // {D, H, W}, one per spatial dimension
  const int* upper_corner;
  cuuint32_t channels;
  cuuint32_t pixels;
};

struct WidePixelBox {
  int lower_corner;  // W
  int upper_corner;
  cuuint32_t channels;
  cuuint32_t pixels;
  CUtensorMapIm2ColWideMode mode;
};

void EncodeTiled(CUtensorMap* map, const TensorLayout& layout, const cuuint32_t* box);
void EncodeIm2col(CUtensorMap* map, const TensorLayout& layout, const PixelBox& box);
void EncodeIm2colWide(CUtensorMap* map, const TensorLayout& layout, const WidePixelBox& box);
void ReplaceAddress(CUtensorMap* map, void* address);

}  // namespace spillway::simulator
