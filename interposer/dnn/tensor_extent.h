// The bytes between a tensor's first and last element, and whether they are all elements.
//
// Called from: the hooks of cuDNN, on the program's threads. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway::dnn {

// cudnnDataType_t
inline constexpr int kFloat = 0, kDouble = 1, kHalf = 2, kInt8 = 3, kInt32 = 4, kUint8 = 6,
                     kBfloat16 = 9, kInt64 = 10;
inline constexpr int kFp8E4m3 = 12, kFp8E5m2 = 13, kUint32 = 19;
inline constexpr int kMostDimensions = 8;  // CUDNN_DIM_MAX

// More than any memory has: such a description is invalid.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 56;

// 0: unknown type.
std::size_t ElementBytes(int type);

struct Dimension {
  std::int64_t size, stride;  // in elements
};

struct TensorExtent {
  std::size_t bytes = 0;  // 0: not understood
  bool leaves_no_gap = false;
};

// Not understood: no or more than kMostDimensions dimensions, sizes or strides below 1, unknown
// types, more elements than any memory has.
TensorExtent ExtentOf(int type, std::span<const Dimension> dimensions);

}  // namespace spillway::dnn
