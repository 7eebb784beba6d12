// Convolution on dense row-major floats by oneDNN: one cached primitive per shape and direction.
//
// Invariants
//  1. A shape always runs the same oneDNN implementation on one thread, with the same bits.
//  2. The arithmetic does not depend on the addresses of the tensors.
#pragma once

#include <compare>
#include <cstdint>

namespace spillway::simulator::dnn {

inline constexpr int kMaxSpatialRank = 3;

struct ConvolutionShape {
  std::int64_t spatial_rank;  // 1 to 3
  std::int64_t groups;
  std::int64_t images;
  std::int64_t input_channels;   // C, of all groups
  std::int64_t output_channels;  // K, of all groups
  std::int64_t input[kMaxSpatialRank];
  std::int64_t output[kMaxSpatialRank];
  std::int64_t kernel[kMaxSpatialRank];
  std::int64_t padding[kMaxSpatialRank];
  std::int64_t stride[kMaxSpatialRank];
  std::int64_t dilation[kMaxSpatialRank];

  auto operator<=>(const ConvolutionShape&) const = default;
  std::int64_t InputPixels() const { return Product(input); }
  std::int64_t OutputPixels() const { return Product(output); }
  std::int64_t KernelPixels() const { return Product(kernel); }
  std::int64_t FilterCount() const {
    return output_channels * (input_channels / groups) * KernelPixels();
  }
  double Flops() const { return 2.0 * images * OutputPixels() * FilterCount(); }

 private:
  std::int64_t Product(const std::int64_t (&dims)[kMaxSpatialRank]) const {
    std::int64_t product = 1;
    for (int d = 0; d < spatial_rank; ++d) product *= dims[d];
    return product;
  }
};

enum class Direction { kForward, kBackwardData, kBackwardFilter };

// Cross-correlation. The direction selects which one is the output.
struct ConvolutionTensors {
  float* x;
  float* w;
  float* y;
};
void RunConvolution(Direction direction, const ConvolutionShape& shape,
                    const ConvolutionTensors& tensors);

// True convolution is cross-correlation with a filter turned by 180 degrees.
void TurnFilter(const ConvolutionShape& shape, const float* from, float* to);

}  // namespace spillway::simulator::dnn
