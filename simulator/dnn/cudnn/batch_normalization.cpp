#include <algorithm>
#include <cmath>

#include "simulator/dnn/common/reduction.h"
#include "simulator/dnn/cudnn/descriptors.h"

namespace spillway::simulator::dnn {
namespace {

// A feature has `images` runs of `run` values, `image_stride` apart.
struct Features {
  std::int64_t count;
  std::int64_t images;
  std::int64_t run;
  std::int64_t image_stride;

  std::int64_t Values() const { return images * run; }
  std::int64_t Start(std::int64_t feature, std::int64_t image) const {
    return image * image_stride + feature * run;
  }
};

Features FeaturesOf(cudnnBatchNormMode_t mode, const TensorView& x) {
  if (mode == CUDNN_BATCHNORM_PER_ACTIVATION) return {x.Inner(1), x.dims[0], 1, x.Inner(1)};
  return {x.dims[1], x.dims[0], x.Inner(2), x.Inner(1)};
}

template <typename Term>
double FeatureSum(const Features& features, std::int64_t feature, Term term) {
  double sum = 0;
  for (std::int64_t n = 0; n < features.images; ++n) {
    const std::int64_t start = features.Start(feature, n);
    sum += SumOf(features.run, [&](std::int64_t i) { return term(start + i); });
  }
  return sum;
}

void Affine(const Features& features, std::int64_t feature, float scale, float shift,
            const float* x, float* y) {
  for (std::int64_t n = 0; n < features.images; ++n) {
    const std::int64_t start = features.Start(feature, n);
    for (std::int64_t i = start; i < start + features.run; ++i) y[i] = x[i] * scale + shift;
  }
}

// Factor 1 does not read `to`.
void Blend(float* to, double factor, double value) {
  *to = static_cast<float>(factor == 1 ? value
                                       : factor * value + (1 - factor) * static_cast<double>(*to));
}

struct TrainingOperation {
  static constexpr char kName[] = "cudnn_batch_normalization_forward_training";
  static constexpr int kOperands =
      8;  // x, y, scale, bias, running mean, running variance, saved mean, saved inverse
  TensorView x;
  TensorView y;
  Features features;
  float alpha;
  float beta;
  double factor;
  double epsilon;

  void Run(void* const* operands) const {
    const DenseInput input(x, operands[0]);
    DenseOutput output(y, operands[1], alpha, beta);
    const auto* scale = static_cast<const float*>(operands[2]);
    const auto* bias = static_cast<const float*>(operands[3]);
    auto* const running_mean = static_cast<float*>(operands[4]);
    auto* const running_variance = static_cast<float*>(operands[5]);
    auto* const saved_mean = static_cast<float*>(operands[6]);
    auto* const saved_inverse = static_cast<float*>(operands[7]);
    const auto values = static_cast<double>(features.Values());
    for (std::int64_t f = 0; f < features.count; ++f) {
      const float* data = input.data();
      const double mean = FeatureSum(features, f, [&](std::int64_t i) { return data[i]; }) / values;
      const auto mean_float = static_cast<float>(mean);
      const double squares = FeatureSum(features, f, [&](std::int64_t i) {
        const float difference = data[i] - mean_float;
        return difference * difference;
      });
      const double inverse = 1 / std::sqrt(squares / values + epsilon);
      const double unbiased =
          values > 1 ? squares / (values - 1) : squares;  // as in cuDNN's running variance
      if (running_mean != nullptr) Blend(&running_mean[f], factor, mean);
      if (running_variance != nullptr) Blend(&running_variance[f], factor, unbiased);
      if (saved_mean != nullptr) saved_mean[f] = mean_float;
      if (saved_inverse != nullptr) saved_inverse[f] = static_cast<float>(inverse);
      const double gain = static_cast<double>(scale[f]) * inverse;
      Affine(features, f, static_cast<float>(gain),
             static_cast<float>(static_cast<double>(bias[f]) - mean * gain), data, output.data());
    }
    output.Commit();
  }
};

struct InferenceOperation {
  static constexpr char kName[] = "cudnn_batch_normalization_forward_inference";
  static constexpr int kOperands = 6;  // x, y, scale, bias, mean, variance
  TensorView x;
  TensorView y;
  Features features;
  float alpha;
  float beta;
  double epsilon;

  void Run(void* const* operands) const {
    const DenseInput input(x, operands[0]);
    DenseOutput output(y, operands[1], alpha, beta);
    const auto* scale = static_cast<const float*>(operands[2]);
    const auto* bias = static_cast<const float*>(operands[3]);
    const auto* mean = static_cast<const float*>(operands[4]);
    const auto* variance = static_cast<const float*>(operands[5]);
    for (std::int64_t f = 0; f < features.count; ++f) {
      const double gain =
          static_cast<double>(scale[f]) / std::sqrt(static_cast<double>(variance[f]) + epsilon);
      const double shift = static_cast<double>(bias[f]) - static_cast<double>(mean[f]) * gain;
      Affine(features, f, static_cast<float>(gain), static_cast<float>(shift), input.data(),
             output.data());
    }
    output.Commit();
  }
};

struct BackwardOperation {
  static constexpr char kName[] = "cudnn_batch_normalization_backward";
  static constexpr int kOperands = 8;  // x, dy, dx, scale, dscale, dbias, saved mean, saved inverse
  TensorView x;
  TensorView dy;
  TensorView dx;
  Features features;
  float alpha_data;
  float beta_data;
  float alpha_parameter;
  float beta_parameter;
  double epsilon;

  struct Statistics {
    double mean;
    double inverse;
  };
  Statistics StatisticsOf(const float* x_data, std::int64_t f) const {
    const auto values = static_cast<double>(features.Values());
    const double mean = FeatureSum(features, f, [&](std::int64_t i) { return x_data[i]; }) / values;
    const double squares = FeatureSum(features, f, [&](std::int64_t i) {
      const double difference = static_cast<double>(x_data[i]) - mean;
      return difference * difference;
    });
    return {mean, 1 / std::sqrt(squares / values + epsilon)};
  }

  static void BlendParameter(float* to, double value, float alpha, float beta) {
    *to = alpha * static_cast<float>(value) + (beta != 0 ? beta * *to : 0.0f);
  }

  void Run(void* const* operands) const {
    const DenseInput input(x, operands[0]);
    const DenseInput gradient(dy, operands[1]);
    DenseOutput output(dx, operands[2], alpha_data, beta_data);
    const auto* scale = static_cast<const float*>(operands[3]);
    auto* dscale = static_cast<float*>(operands[4]);
    auto* dbias = static_cast<float*>(operands[5]);
    const auto* saved_mean = static_cast<const float*>(operands[6]);
    const auto* saved_inverse = static_cast<const float*>(operands[7]);
    for (std::int64_t f = 0; f < features.count; ++f) {
      const Statistics s = saved_mean != nullptr ? Statistics{saved_mean[f], saved_inverse[f]}
                                                 : StatisticsOf(input.data(), f);
      RunFeature(f, s, scale[f], input.data(), gradient.data(), output.data(), dscale, dbias);
    }
    output.Commit();
  }

  // dx = scale * inverse * (dy - mean(dy) - normalized * mean(dy * normalized)).
  void RunFeature(std::int64_t f, Statistics s, float scale, const float* x_data,
                  const float* dy_data, float* dx_data, float* dscale, float* dbias) const {
    const auto mean = static_cast<float>(s.mean);
    const double sum = FeatureSum(features, f, [&](std::int64_t i) { return dy_data[i]; });
    const double product = s.inverse * FeatureSum(features, f, [&](std::int64_t i) {
                             return dy_data[i] * (x_data[i] - mean);
                           });
    const auto values = static_cast<double>(features.Values());
    const auto gain = static_cast<float>(static_cast<double>(scale) * s.inverse);
    const auto mean_gradient = static_cast<float>(sum / values);
    const auto slope = static_cast<float>(s.inverse * product / values);
    for (std::int64_t n = 0; n < features.images; ++n) {
      const std::int64_t start = features.Start(f, n);
      for (std::int64_t i = start; i < start + features.run; ++i) {
        dx_data[i] = gain * (dy_data[i] - mean_gradient - (x_data[i] - mean) * slope);
      }
    }
    BlendParameter(&dscale[f], product, alpha_parameter, beta_parameter);
    BlendParameter(&dbias[f], sum, alpha_parameter, beta_parameter);
  }
};

bool ParametersFit(cudnnTensorDescriptor_t parameters, const Features& features) {
  if (parameters == nullptr || parameters->type != CUDNN_DATA_FLOAT) return false;
  std::int64_t count = 1;
  for (int d = 0; d < parameters->rank; ++d) count *= parameters->dims[d];
  return count == features.count;
}

bool ModeIsKnown(cudnnBatchNormMode_t mode) {
  return mode >= CUDNN_BATCHNORM_PER_ACTIVATION && mode <= CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
}

double Flops(const TensorView& x) { return 8.0 * static_cast<double>(x.Count()); }

Operand Gradient(void* pointer, std::uint64_t size_bytes, const void* beta) {
  return ScalarOf(beta) == 0 ? Writes(pointer, size_bytes) : Updates(pointer, size_bytes);
}

}  // namespace
}  // namespace spillway::simulator::dnn

using namespace spillway::simulator::dnn;

extern "C" {

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived,
                                            const cudnnTensorDescriptor_t x,
                                            cudnnBatchNormMode_t mode) {
  SPILLWAY_DNN_REQUIRE(derived != nullptr && x != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_REQUIRE(x->rank >= 4 && x->rank <= 5 && ModeIsKnown(mode), CUDNN_STATUS_BAD_PARAM);
  int dims[CUDNN_DIM_MAX];
  std::copy_n(x->dims, x->rank, dims);
  dims[0] = 1;
  if (mode != CUDNN_BATCHNORM_PER_ACTIVATION) std::fill(dims + 2, dims + x->rank, 1);
  const cudnnDataType_t type = x->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  return cudnnSetTensorNdDescriptorEx(derived, CUDNN_TENSOR_NCHW, type, x->rank, dims);
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t x_desc, const void* x, const cudnnTensorDescriptor_t y_desc,
    void* y, const cudnnTensorDescriptor_t parameter_desc, const void* scale, const void* bias,
    double factor, void* running_mean, void* running_variance, double epsilon, void* saved_mean,
    void* saved_inverse) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && alpha != nullptr && beta != nullptr && x != nullptr &&
                           y != nullptr && scale != nullptr && bias != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(x_view, x_desc);
  SPILLWAY_DNN_VIEW(y_view, y_desc);
  SPILLWAY_DNN_REQUIRE(ModeIsKnown(mode) && SameShape(x_view, y_view) && x_view.rank >= 4,
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(x != y || x_view == y_view, CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE((running_mean == nullptr) == (running_variance == nullptr),
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE((saved_mean == nullptr) == (saved_inverse == nullptr),
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(epsilon >= CUDNN_BN_MIN_EPSILON, CUDNN_STATUS_BAD_PARAM);
  const Features features = FeaturesOf(mode, x_view);
  SPILLWAY_DNN_REQUIRE(ParametersFit(parameter_desc, features), CUDNN_STATUS_BAD_PARAM);
  const std::uint64_t bytes = sizeof(float) * features.count;
  const TrainingOperation operation = {x_view,         y_view, features, ScalarOf(alpha),
                                       ScalarOf(beta), factor, epsilon};
  return FromDriver(
      Enqueue(StreamOf(handle), operation,
              {Input(x_view, x), Output(y_view, y, beta), Reads(scale, bytes), Reads(bias, bytes),
               Clobbers(running_mean, bytes), Clobbers(running_variance, bytes),
               Writes(saved_mean, bytes), Writes(saved_inverse, bytes)},
              Flops(x_view), static_cast<double>(x_view.ExtentBytes())));
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t x_desc, const void* x, const cudnnTensorDescriptor_t y_desc,
    void* y, const cudnnTensorDescriptor_t parameter_desc, const void* scale, const void* bias,
    const void* mean, const void* variance, double epsilon) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && alpha != nullptr && beta != nullptr && x != nullptr &&
                           y != nullptr && scale != nullptr && bias != nullptr && mean != nullptr &&
                           variance != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(x_view, x_desc);
  SPILLWAY_DNN_VIEW(y_view, y_desc);
  SPILLWAY_DNN_REQUIRE(ModeIsKnown(mode) && SameShape(x_view, y_view) && x_view.rank >= 4,
                       CUDNN_STATUS_BAD_PARAM);
  const Features features = FeaturesOf(mode, x_view);
  SPILLWAY_DNN_REQUIRE(ParametersFit(parameter_desc, features), CUDNN_STATUS_BAD_PARAM);
  const std::uint64_t bytes = sizeof(float) * features.count;
  const InferenceOperation operation = {x_view,          y_view,         features,
                                        ScalarOf(alpha), ScalarOf(beta), epsilon};
  return FromDriver(Enqueue(StreamOf(handle), operation,
                            {Input(x_view, x), Output(y_view, y, beta), Reads(scale, bytes),
                             Reads(bias, bytes), Reads(mean, bytes), Reads(variance, bytes)},
                            2.0 * static_cast<double>(x_view.Count())));
}

cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha_data, const void* beta_data,
    const void* alpha_parameter, const void* beta_parameter, const cudnnTensorDescriptor_t x_desc,
    const void* x, const cudnnTensorDescriptor_t dy_desc, const void* dy,
    const cudnnTensorDescriptor_t dx_desc, void* dx, const cudnnTensorDescriptor_t parameter_desc,
    const void* scale, void* dscale, void* dbias, double epsilon, const void* saved_mean,
    const void* saved_inverse) {
  SPILLWAY_DNN_REQUIRE(handle != nullptr && alpha_data != nullptr && beta_data != nullptr &&
                           alpha_parameter != nullptr && beta_parameter != nullptr &&
                           x != nullptr && dy != nullptr && dx != nullptr && scale != nullptr &&
                           dscale != nullptr && dbias != nullptr,
                       CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  SPILLWAY_DNN_VIEW(x_view, x_desc);
  SPILLWAY_DNN_VIEW(dy_view, dy_desc);
  SPILLWAY_DNN_VIEW(dx_view, dx_desc);
  SPILLWAY_DNN_REQUIRE(ModeIsKnown(mode) && SameShape(x_view, dy_view) &&
                           SameShape(x_view, dx_view) && x_view.rank >= 4,
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE((saved_mean == nullptr) == (saved_inverse == nullptr),
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(dy != dx || dy_view == dx_view, CUDNN_STATUS_BAD_PARAM);
  const Features features = FeaturesOf(mode, x_view);
  SPILLWAY_DNN_REQUIRE(ParametersFit(parameter_desc, features), CUDNN_STATUS_BAD_PARAM);
  const std::uint64_t bytes = sizeof(float) * features.count;
  const BackwardOperation operation = {x_view,
                                       dy_view,
                                       dx_view,
                                       features,
                                       ScalarOf(alpha_data),
                                       ScalarOf(beta_data),
                                       ScalarOf(alpha_parameter),
                                       ScalarOf(beta_parameter),
                                       epsilon};
  return FromDriver(Enqueue(
      StreamOf(handle), operation,
      {Input(x_view, x), Input(dy_view, dy), Output(dx_view, dx, beta_data), Reads(scale, bytes),
       Gradient(dscale, bytes, beta_parameter), Gradient(dbias, bytes, beta_parameter),
       Reads(saved_mean, bytes), Reads(saved_inverse, bytes)},
      Flops(x_view), static_cast<double>(x_view.ExtentBytes() + dy_view.ExtentBytes())));
}

}  // extern "C"
