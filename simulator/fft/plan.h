// A cuFFT plan: a batch of transforms, and where its work area is.
//
// Invariant: device memory is allocated for a plan's work area alone, as the real library does,
// unless the program has switched that off. Every transform overwrites its work area.
#pragma once

#include <cufft.h>

#include "simulator/dnn/common/operation.h"

namespace spillway::simulator::fft {

inline constexpr int kMostRank = 3;

struct Layout {
  std::int64_t strides[kMostRank];  // in elements
  std::int64_t batch_stride;
};

struct Shape {
  std::int32_t rank;
  std::int64_t lengths[kMostRank];
  std::int64_t batch;

  std::int64_t Points() const;
};

struct Plan {
  Shape shape;
  cufftType type;
  bool is_basic;  // its layout depends on whether a transform is in place
  Layout input, output;
  cudaStream_t stream;
  bool allocates;  // not the program
  bool is_made;
  void* work_area;
  std::uint64_t work_bytes;
};

inline bool IsDouble(cufftType type) {
  return type == CUFFT_D2Z || type == CUFFT_Z2D || type == CUFFT_Z2Z;
}
inline bool ReadsReals(cufftType type) { return type == CUFFT_R2C || type == CUFFT_D2Z; }
inline bool WritesReals(cufftType type) { return type == CUFFT_C2R || type == CUFFT_Z2D; }

// Reals of an in-place transform are padded to hold the complex ones.
Layout DenseLayout(const Shape& shape, bool is_real, bool is_half, bool in_place);

// `is_half`: the last length is halved.
std::uint64_t ExtentElements(const Shape& shape, const Layout& layout, bool is_half);

Plan* Find(cufftHandle handle);

}  // namespace spillway::simulator::fft
