#include <algorithm>
#include <cmath>

#include "simulator/dnn/cudnn/descriptors.h"

namespace spillway::simulator::dnn {
namespace {

// Softmax runs over `classes` values, `stride` apart; there are outer * stride such groups.
struct Grouping {
  std::int64_t outer;
  std::int64_t classes;
  std::int64_t stride;
};

Grouping GroupingOf(cudnnSoftmaxMode_t mode, const TensorView& view) {
  if (mode == CUDNN_SOFTMAX_MODE_CHANNEL) return {view.dims[0], view.dims[1], view.Inner(2)};
  return {view.dims[0], view.Inner(1), 1};
}

template <typename Group>
void ForEachGroup(const Grouping& grouping, Group group) {
  for (std::int64_t n = 0; n < grouping.outer; ++n) {
    for (std::int64_t s = 0; s < grouping.stride; ++s)
      group(n * grouping.classes * grouping.stride + s);
  }
}

struct SoftmaxForwardOperation {
  static constexpr char kName[] = "cudnn_softmax_forward";
  static constexpr int kOperands = 2;  // x, y
  TensorView x;
  TensorView y;
  Grouping grouping;
  cudnnSoftmaxAlgorithm_t algorithm;
  float alpha;
  float beta;

  void RunGroup(const float* from, float* to) const {
    const std::int64_t count = grouping.classes;
    const std::int64_t stride = grouping.stride;
    float shift = 0;
    if (algorithm != CUDNN_SOFTMAX_FAST) {
      shift = from[0];
      for (std::int64_t i = 1; i < count; ++i) shift = std::max(shift, from[i * stride]);
    }
    const bool log = algorithm == CUDNN_SOFTMAX_LOG;
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const float exponential = std::exp(from[i * stride] - shift);
      sum += static_cast<double>(exponential);
      if (!log) to[i * stride] = exponential;
    }
    if (log) {
      const float log_sum = shift + static_cast<float>(std::log(sum));
      for (std::int64_t i = 0; i < count; ++i) to[i * stride] = from[i * stride] - log_sum;
    } else {
      const auto factor = static_cast<float>(1 / sum);
      for (std::int64_t i = 0; i < count; ++i) to[i * stride] *= factor;
    }
  }

  void Run(void* const* operands) const {
    const DenseInput input(x, operands[0]);
    DenseOutput output(y, operands[1], alpha, beta);
    ForEachGroup(grouping,
                 [&](std::int64_t at) { RunGroup(input.data() + at, output.data() + at); });
    output.Commit();
  }
};

struct SoftmaxBackwardOperation {
  static constexpr char kName[] = "cudnn_softmax_backward";
  static constexpr int kOperands = 3;  // y, dy, dx
  TensorView y;
  TensorView dy;
  TensorView dx;
  Grouping grouping;
  cudnnSoftmaxAlgorithm_t algorithm;
  float alpha;
  float beta;

  void RunGroup(const float* result, const float* gradient, float* to) const {
    const std::int64_t count = grouping.classes;
    const std::int64_t stride = grouping.stride;
    const bool log = algorithm == CUDNN_SOFTMAX_LOG;
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      sum += static_cast<double>(gradient[i * stride]) *
             (log ? 1.0 : static_cast<double>(result[i * stride]));
    }
    const auto total = static_cast<float>(sum);
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = result[i * stride];
      to[i * stride] = log ? gradient[i * stride] - std::exp(value) * total
                           : value * (gradient[i * stride] - total);
    }
  }

  void Run(void* const* operands) const {
    const DenseInput result(y, operands[0]);
    const DenseInput gradient(dy, operands[1]);
    DenseOutput output(dx, operands[2], alpha, beta);
    ForEachGroup(grouping, [&](std::int64_t at) {
      RunGroup(result.data() + at, gradient.data() + at, output.data() + at);
    });
    output.Commit();
  }
};

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t mode, const void* alpha,
                                  const cudnnTensorDescriptor_t x_desc, const void* x,
                                  const void* beta, const cudnnTensorDescriptor_t y_desc, void* y) {
  SPILLWAY_DNN_REQUIRE(
      handle != nullptr && alpha != nullptr && x != nullptr && beta != nullptr && y != nullptr,
      CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(algorithm >= CUDNN_SOFTMAX_FAST && algorithm <= CUDNN_SOFTMAX_LOG,
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_VIEW(x_view, x_desc);
  SPILLWAY_DNN_VIEW(y_view, y_desc);
  SPILLWAY_DNN_REQUIRE(SameShape(x_view, y_view) && x_view.rank >= 3, CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(x != y || x_view == y_view, CUDNN_STATUS_BAD_PARAM);
  const SoftmaxForwardOperation operation = {x_view,    y_view,          GroupingOf(mode, x_view),
                                             algorithm, ScalarOf(alpha), ScalarOf(beta)};
  return FromDriver(Enqueue(StreamOf(handle), operation,
                            {Input(x_view, x), Output(y_view, y, beta)},
                            10.0 * static_cast<double>(x_view.Count())));
}

cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                   cudnnSoftmaxMode_t mode, const void* alpha,
                                   const cudnnTensorDescriptor_t y_desc, const void* y,
                                   const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                   const void* beta, const cudnnTensorDescriptor_t dx_desc,
                                   void* dx) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && alpha != nullptr && y != nullptr && dy != nullptr &&
                           beta != nullptr && dx != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(y_view, y_desc);
  SPILLWAY_DNN_VIEW(dy_view, dy_desc);
  SPILLWAY_DNN_VIEW(dx_view, dx_desc);
  SPILLWAY_DNN_REQUIRE(SameShape(y_view, dy_view) && SameShape(y_view, dx_view) && y_view.rank >= 3,
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(dy != dx || dy_view == dx_view, CUDNN_STATUS_BAD_PARAM);
  const SoftmaxBackwardOperation operation = {
      y_view,    dy_view,         dx_view,       GroupingOf(mode, y_view),
      algorithm, ScalarOf(alpha), ScalarOf(beta)};
  return FromDriver(Enqueue(StreamOf(handle), operation,
                            {Input(y_view, y), Input(dy_view, dy), Output(dx_view, dx, beta)},
                            6.0 * static_cast<double>(y_view.Count())));
}

}  // extern "C"
