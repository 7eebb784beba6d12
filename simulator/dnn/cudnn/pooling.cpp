#include <algorithm>
#include <limits>

#include "simulator/dnn/cudnn/descriptors.h"

namespace spillway::simulator::dnn {
namespace {

constexpr int kSpatial = 3;  // fewer dimensions are padded with ones in front

struct PoolingGeometry {
  std::int64_t planes;
  std::int64_t input[kSpatial];
  std::int64_t output[kSpatial];
  std::int64_t window[kSpatial];
  std::int64_t padding[kSpatial];
  std::int64_t stride[kSpatial];
  cudnnPoolingMode_t mode;

  bool IsMax() const {
    return mode == CUDNN_POOLING_MAX || mode == CUDNN_POOLING_MAX_DETERMINISTIC;
  }
  std::int64_t InputPixels() const { return input[0] * input[1] * input[2]; }
  std::int64_t OutputPixels() const { return output[0] * output[1] * output[2]; }
  std::int64_t WindowPixels() const { return window[0] * window[1] * window[2]; }
};

// Half open; inside the image.
struct Window {
  std::int64_t begin[kSpatial];
  std::int64_t end[kSpatial];
  std::int64_t Count() const {
    return (end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]);
  }
};

Window WindowAt(const PoolingGeometry& g, std::int64_t d, std::int64_t h, std::int64_t w) {
  const std::int64_t at[kSpatial] = {d, h, w};
  Window window;
  for (int i = 0; i < kSpatial; ++i) {
    const std::int64_t start = at[i] * g.stride[i] - g.padding[i];
    window.begin[i] = std::max<std::int64_t>(start, 0);
    window.end[i] = std::max(window.begin[i], std::min(start + g.window[i], g.input[i]));
  }
  return window;
}

template <typename Visit>
void ForEachWindow(const PoolingGeometry& g, Visit visit) {
  std::int64_t index = 0;
  for (std::int64_t d = 0; d < g.output[0]; ++d) {
    for (std::int64_t h = 0; h < g.output[1]; ++h) {
      for (std::int64_t w = 0; w < g.output[2]; ++w) visit(index++, WindowAt(g, d, h, w));
    }
  }
}

template <typename Visit>
void ForEachPixel(const PoolingGeometry& g, const Window& window, Visit visit) {
  for (std::int64_t d = window.begin[0]; d < window.end[0]; ++d) {
    for (std::int64_t h = window.begin[1]; h < window.end[1]; ++h) {
      const std::int64_t row = (d * g.input[1] + h) * g.input[2];
      for (std::int64_t w = window.begin[2]; w < window.end[2]; ++w) visit(row + w);
    }
  }
}

float AverageDivisor(const PoolingGeometry& g, const Window& window) {
  const bool with_padding = g.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  return static_cast<float>(with_padding ? g.WindowPixels()
                                         : std::max<std::int64_t>(window.Count(), 1));
}

void PoolPlane(const PoolingGeometry& g, const float* x, float* y) {
  ForEachWindow(g, [&](std::int64_t out, const Window& window) {
    if (g.IsMax()) {
      float largest = -std::numeric_limits<float>::infinity();
      ForEachPixel(g, window, [&](std::int64_t in) {
        largest = x[in] > largest || x[in] != x[in] ? x[in] : largest;
      });
      y[out] = largest;
    } else {
      float sum = 0;
      ForEachPixel(g, window, [&](std::int64_t in) { sum += x[in]; });
      y[out] = sum / AverageDivisor(g, window);
    }
  });
}

// The gradient of a maximum goes to the first pixel that has it.
void PoolPlaneBackward(const PoolingGeometry& g, const float* x, const float* dy, float* dx) {
  std::fill_n(dx, g.InputPixels(), 0.0f);
  ForEachWindow(g, [&](std::int64_t out, const Window& window) {
    if (g.IsMax()) {
      std::int64_t best = -1;
      ForEachPixel(g, window,
                   [&](std::int64_t in) { best = best < 0 || x[in] > x[best] ? in : best; });
      if (best >= 0) dx[best] += dy[out];
    } else {
      const float share = dy[out] / AverageDivisor(g, window);
      ForEachPixel(g, window, [&](std::int64_t in) { dx[in] += share; });
    }
  });
}

struct PoolingForwardOperation {
  static constexpr char kName[] = "cudnn_pooling_forward";
  static constexpr int kOperands = 2;  // x, y
  TensorView x;
  TensorView y;
  PoolingGeometry geometry = {};
  float alpha;
  float beta;
  void Run(void* const* operands) const {
    const DenseInput input(x, operands[0]);
    DenseOutput output(y, operands[1], alpha, beta);
    for (std::int64_t plane = 0; plane < geometry.planes; ++plane) {
      PoolPlane(geometry, input.data() + plane * geometry.InputPixels(),
                output.data() + plane * geometry.OutputPixels());
    }
    output.Commit();
  }
};

struct PoolingBackwardOperation {
  static constexpr char kName[] = "cudnn_pooling_backward";
  static constexpr int kOperands = 4;  // y, dy, x, dx
  TensorView x;
  TensorView dy;
  TensorView dx;
  PoolingGeometry geometry = {};
  float alpha;
  float beta;
  void Run(void* const* operands) const {
    const DenseInput gradient(dy, operands[1]);
    const DenseInput input(x, operands[2]);
    DenseOutput output(dx, operands[3], alpha, beta);
    for (std::int64_t plane = 0; plane < geometry.planes; ++plane) {
      const std::int64_t in = plane * geometry.InputPixels();
      PoolPlaneBackward(geometry, input.data() + in,
                        gradient.data() + plane * geometry.OutputPixels(), output.data() + in);
    }
    output.Commit();
  }
};

cudnnStatus_t Describe(cudnnPoolingDescriptor_t pooling, cudnnTensorDescriptor_t x_desc,
                       const TensorView& x, const TensorView& y, PoolingGeometry* geometry) {
  SPILLWAY_DNN_REQUIRE(pooling != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  const int rank = pooling->spatial_rank;
  SPILLWAY_DNN_REQUIRE(rank >= 1 && rank <= kSpatial, CUDNN_STATUS_NOT_SUPPORTED);
  SPILLWAY_DNN_REQUIRE(x.rank == rank + 2 && y.rank == rank + 2, CUDNN_STATUS_BAD_PARAM);
  int expected[CUDNN_DIM_MAX];
  const cudnnStatus_t status =
      cudnnGetPoolingNdForwardOutputDim(pooling, x_desc, rank + 2, expected);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  SPILLWAY_DNN_REQUIRE(std::equal(expected, expected + rank + 2, y.dims), CUDNN_STATUS_BAD_PARAM);
  *geometry = {x.dims[0] * x.dims[1], {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1},
               pooling->mode};
  const int first = kSpatial - rank;
  std::copy_n(x.dims + 2, rank, geometry->input + first);
  std::copy_n(y.dims + 2, rank, geometry->output + first);
  std::copy_n(pooling->window, rank, geometry->window + first);
  std::copy_n(pooling->padding, rank, geometry->padding + first);
  std::copy_n(pooling->stride, rank, geometry->stride + first);
  return CUDNN_STATUS_SUCCESS;
}

double Flops(const PoolingGeometry& geometry) {
  return static_cast<double>(geometry.planes * geometry.OutputPixels() * geometry.WindowPixels());
}

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pooling,
                                  const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                  const void* x, const void* beta,
                                  const cudnnTensorDescriptor_t y_desc, void* y) {
  SPILLWAY_DNN_REQUIRE(
      handle != nullptr && alpha != nullptr && x != nullptr && beta != nullptr && y != nullptr,
      CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(x_view, x_desc);
  SPILLWAY_DNN_VIEW(y_view, y_desc);
  PoolingGeometry geometry = {};
  const cudnnStatus_t status = Describe(pooling, x_desc, x_view, y_view, &geometry);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return FromDriver(
      Enqueue(StreamOf(handle),
              PoolingForwardOperation{x_view, y_view, geometry, ScalarOf(alpha), ScalarOf(beta)},
              {Input(x_view, x), Output(y_view, y, beta)}, Flops(geometry)));
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t pooling,
                                   const void* alpha, const cudnnTensorDescriptor_t y_desc,
                                   const void* y, const cudnnTensorDescriptor_t dy_desc,
                                   const void* dy, const cudnnTensorDescriptor_t x_desc,
                                   const void* x, const void* beta,
                                   const cudnnTensorDescriptor_t dx_desc, void* dx) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && alpha != nullptr && y != nullptr && dy != nullptr &&
                           x != nullptr && beta != nullptr && dx != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(y_view, y_desc);
  SPILLWAY_DNN_VIEW(dy_view, dy_desc);
  SPILLWAY_DNN_VIEW(x_view, x_desc);
  SPILLWAY_DNN_VIEW(dx_view, dx_desc);
  SPILLWAY_DNN_REQUIRE(SameShape(y_view, dy_view) && SameShape(x_view, dx_view),
                       CUDNN_STATUS_BAD_PARAM);
  PoolingGeometry geometry = {};
  const cudnnStatus_t status = Describe(pooling, x_desc, x_view, y_view, &geometry);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const PoolingBackwardOperation operation = {x_view,   dy_view,         dx_view,
                                              geometry, ScalarOf(alpha), ScalarOf(beta)};
  return FromDriver(
      Enqueue(StreamOf(handle), operation,
              {Input(y_view, y), Input(dy_view, dy), Input(x_view, x), Output(dx_view, dx, beta)},
              Flops(geometry)));
}

}  // extern "C"
