// Local response normalization across channels: y = x / (k + alpha / n * sum)^beta.
#include <algorithm>
#include <cmath>
#include <vector>

#include "simulator/dnn/cudnn/descriptors.h"

namespace spillway::simulator::dnn {
namespace {

struct LrnParameters {
  std::int64_t window;
  double alpha;
  double beta;
  double k;

  std::int64_t First(std::int64_t channel) const {
    return std::max<std::int64_t>(0, channel - (window - 1) / 2);
  }
  std::int64_t Last(std::int64_t channel, std::int64_t channels) const {
    return std::min(channels - 1, channel + window - (window - 1) / 2 - 1);
  }
};

struct Column {
  const float* data;
  std::int64_t stride;
  float operator[](std::int64_t channel) const { return data[channel * stride]; }
};

// k + alpha / n * sum of squares, for each channel of a column.
void Scales(const LrnParameters& p, Column x, std::int64_t channels, double* scales) {
  for (std::int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (std::int64_t j = p.First(c); j <= p.Last(c, channels); ++j) {
      sum += static_cast<double>(x[j]) * static_cast<double>(x[j]);
    }
    scales[c] = p.k + p.alpha / static_cast<double>(p.window) * sum;
  }
}

struct LrnOperation {
  LrnParameters parameters;
  TensorView x;
  std::int64_t Channels() const { return x.dims[1]; }
  std::int64_t Pixels() const { return x.Inner(2); }

  template <typename Visit>
  void ForEachColumn(Visit visit) const {
    for (std::int64_t n = 0; n < x.dims[0]; ++n) {
      for (std::int64_t pixel = 0; pixel < Pixels(); ++pixel)
        visit(n * Channels() * Pixels() + pixel);
    }
  }
};

struct LrnForwardOperation : LrnOperation {
  static constexpr char kName[] = "cudnn_lrn_cross_channel_forward";
  static constexpr int kOperands = 2;  // x, y
  TensorView y;
  float alpha;
  float beta;
  void Run(void* const* operands) const {
    const DenseInput input(x, operands[0]);
    DenseOutput output(y, operands[1], alpha, beta);
    std::vector<double> scales(Channels());
    ForEachColumn([&](std::int64_t at) {
      const Column column = {input.data() + at, Pixels()};
      Scales(parameters, column, Channels(), scales.data());
      for (std::int64_t c = 0; c < Channels(); ++c) {
        const double value = static_cast<double>(column[c]) * std::pow(scales[c], -parameters.beta);
        output.data()[at + c * Pixels()] = static_cast<float>(value);
      }
    });
    output.Commit();
  }
};

struct LrnBackwardOperation : LrnOperation {
  static constexpr char kName[] = "cudnn_lrn_cross_channel_backward";
  static constexpr int kOperands = 4;  // y, dy, x, dx
  TensorView y;
  TensorView dy;
  TensorView dx;
  float alpha;
  float beta;

  // dx_c = dy_c s_c^-beta - 2 alpha beta / n x_c * sum of dy_j y_j / s_j, over windows j with c.
  void RunColumn(Column x_column, Column y_column, Column dy_column, const double* scales,
                 float* out) const {
    const double factor =
        2 * parameters.alpha * parameters.beta / static_cast<double>(parameters.window);
    const std::int64_t ahead = parameters.window - (parameters.window - 1) / 2 - 1;
    const std::int64_t behind = (parameters.window - 1) / 2;
    for (std::int64_t c = 0; c < Channels(); ++c) {
      double sum = 0;
      const std::int64_t last = std::min(Channels() - 1, c + behind);
      for (std::int64_t j = std::max<std::int64_t>(0, c - ahead); j <= last; ++j) {
        sum += static_cast<double>(dy_column[j]) * static_cast<double>(y_column[j]) / scales[j];
      }
      const double direct =
          static_cast<double>(dy_column[c]) * std::pow(scales[c], -parameters.beta);
      out[c * Pixels()] =
          static_cast<float>(direct - factor * static_cast<double>(x_column[c]) * sum);
    }
  }

  void Run(void* const* operands) const {
    const DenseInput result(y, operands[0]);
    const DenseInput gradient(dy, operands[1]);
    const DenseInput input(x, operands[2]);
    DenseOutput output(dx, operands[3], alpha, beta);
    std::vector<double> scales(Channels());
    ForEachColumn([&](std::int64_t at) {
      const Column column = {input.data() + at, Pixels()};
      Scales(parameters, column, Channels(), scales.data());
      RunColumn(column, {result.data() + at, Pixels()}, {gradient.data() + at, Pixels()},
                scales.data(), output.data() + at);
    });
    output.Commit();
  }
};

LrnParameters ParametersOf(cudnnLRNDescriptor_t lrn) {
  return {static_cast<std::int64_t>(lrn->n), lrn->alpha, lrn->beta, lrn->k};
}

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

cudnnStatus_t cudnnLRNCrossChannelForward(cudnnHandle_t handle, cudnnLRNDescriptor_t lrn,
                                          cudnnLRNMode_t mode, const void* alpha,
                                          const cudnnTensorDescriptor_t x_desc, const void* x,
                                          const void* beta, const cudnnTensorDescriptor_t y_desc,
                                          void* y) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && lrn != nullptr && alpha != nullptr && x != nullptr &&
                           beta != nullptr && y != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(x_view, x_desc);
  SPILLWAY_DNN_VIEW(y_view, y_desc);
  SPILLWAY_DNN_REQUIRE(mode == CUDNN_LRN_CROSS_CHANNEL_DIM1 && SameShape(x_view, y_view) &&
                           x_view.rank >= 3 && x != y,
                       CUDNN_STATUS_BAD_PARAM);
  LrnForwardOperation operation = {
      {ParametersOf(lrn), x_view}, y_view, ScalarOf(alpha), ScalarOf(beta)};
  return FromDriver(Enqueue(StreamOf(handle), operation,
                            {Input(x_view, x), Output(y_view, y, beta)},
                            20.0 * static_cast<double>(x_view.Count())));
}

cudnnStatus_t cudnnLRNCrossChannelBackward(cudnnHandle_t handle, cudnnLRNDescriptor_t lrn,
                                           cudnnLRNMode_t mode, const void* alpha,
                                           const cudnnTensorDescriptor_t y_desc, const void* y,
                                           const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           const cudnnTensorDescriptor_t x_desc, const void* x,
                                           const void* beta, const cudnnTensorDescriptor_t dx_desc,
                                           void* dx) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && lrn != nullptr && alpha != nullptr && y != nullptr &&
                           dy != nullptr && x != nullptr && beta != nullptr && dx != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(y_view, y_desc);
  SPILLWAY_DNN_VIEW(dy_view, dy_desc);
  SPILLWAY_DNN_VIEW(x_view, x_desc);
  SPILLWAY_DNN_VIEW(dx_view, dx_desc);
  SPILLWAY_DNN_REQUIRE(
      SameShape(x_view, y_view) && SameShape(x_view, dy_view) && SameShape(x_view, dx_view),
      CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(
      mode == CUDNN_LRN_CROSS_CHANNEL_DIM1 && x_view.rank >= 3 && dx != dy && dx != x,
      CUDNN_STATUS_BAD_PARAM);
  LrnBackwardOperation operation = {
      {ParametersOf(lrn), x_view}, y_view, dy_view, dx_view, ScalarOf(alpha), ScalarOf(beta)};
  return FromDriver(
      Enqueue(StreamOf(handle), operation,
              {Input(y_view, y), Input(dy_view, dy), Input(x_view, x), Output(dx_view, dx, beta)},
              40.0 * static_cast<double>(x_view.Count())));
}

}  // extern "C"
