// Batch normalization and local response normalization against the definition and numerical
// gradients.
#include <cmath>

#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

constexpr int kN = 3, kC = 4, kPixels = 6;
constexpr int kCount = kN * kC * kPixels;
constexpr double kEpsilon = 1e-5;

class BatchNormTest : public CudnnTest, public testing::WithParamInterface<cudnnBatchNormMode_t> {
 protected:
  bool Spatial() const { return GetParam() != CUDNN_BATCHNORM_PER_ACTIVATION; }
  int Features() const { return Spatial() ? kC : kC * kPixels; }
  int FeatureOf(int i) const { return Spatial() ? i / kPixels % kC : i % (kC * kPixels); }
  double ValuesPerFeature() const { return double(kCount) / Features(); }

  struct Statistics {
    std::vector<double> mean, variance;
  };
  Statistics StatisticsOf(const Floats& x) const {
    Statistics s = {std::vector<double>(Features()), std::vector<double>(Features())};
    for (int i = 0; i < kCount; ++i) s.mean[FeatureOf(i)] += double(x[i]) / ValuesPerFeature();
    for (int i = 0; i < kCount; ++i) {
      s.variance[FeatureOf(i)] +=
          std::pow(double(x[i]) - s.mean[FeatureOf(i)], 2) / ValuesPerFeature();
    }
    return s;
  }
  std::vector<double> Normalize(const Floats& x, const Floats& scale, const Floats& bias) const {
    const Statistics s = StatisticsOf(x);
    std::vector<double> y(kCount);
    for (int i = 0; i < kCount; ++i) {
      const int f = FeatureOf(i);
      y[i] = (double(x[i]) - s.mean[f]) / std::sqrt(s.variance[f] + kEpsilon) * double(scale[f]) +
             double(bias[f]);
    }
    return y;
  }

  void SetUp() override {
    CudnnTest::SetUp();
    cudnnCreateTensorDescriptor(&parameters_);
    ASSERT_EQ(cudnnDeriveBNTensorDescriptor(parameters_, x_, GetParam()), CUDNN_STATUS_SUCCESS);
    scale_values_ = Values(Features(), 11);
    bias_values_ = Values(Features(), 12);
  }
  void TearDown() override {
    cudnnDestroyTensorDescriptor(parameters_);
    CudnnTest::TearDown();
  }

  TensorDesc x_{{kN, kC, 2, 3}};
  cudnnTensorDescriptor_t parameters_ = nullptr;
  Floats scale_values_, bias_values_;
};

TEST_P(BatchNormTest, TrainingNormalizesAndKeepsStatistics) {
  const Floats x_values = Values(kCount, 1);
  const Floats old_mean = Values(Features(), 2);
  const Floats old_variance = Values(Features(), 3);
  const DeviceFloats x(x_values), y(kCount), scale(scale_values_), bias(bias_values_);
  const DeviceFloats running_mean(old_mean), running_variance(old_variance);
  const DeviceFloats saved_mean(Features()), saved_inverse(Features());

  ASSERT_EQ(cudnnBatchNormalizationForwardTraining(
                handle_, GetParam(), &kOne, &kZero, x_, x.get(), x_, y.get(), parameters_,
                scale.get(), bias.get(), 0.3, running_mean.get(), running_variance.get(), kEpsilon,
                saved_mean.get(), saved_inverse.get()),
            CUDNN_STATUS_SUCCESS);

  const std::vector<double> expected = Normalize(x_values, scale_values_, bias_values_);
  ExpectNear(y.Read(), Floats(expected.begin(), expected.end()));
  const Statistics s = StatisticsOf(x_values);
  const double unbiased = ValuesPerFeature() / (ValuesPerFeature() - 1);
  for (int f = 0; f < Features(); ++f) {
    EXPECT_NEAR(saved_mean.Read()[f], s.mean[f], 1e-6);
    EXPECT_NEAR(saved_inverse.Read()[f], 1 / std::sqrt(s.variance[f] + kEpsilon), 1e-4);
    EXPECT_NEAR(running_mean.Read()[f], 0.3 * s.mean[f] + 0.7 * double(old_mean[f]), 1e-6);
    EXPECT_NEAR(running_variance.Read()[f],
                0.3 * s.variance[f] * unbiased + 0.7 * double(old_variance[f]), 1e-6);
  }
}

TEST_P(BatchNormTest, FirstAverageFactorDoesNotReadTheRunningStatistics) {
  const DeviceFloats x(Values(kCount, 1)), y(kCount), scale(scale_values_), bias(bias_values_);
  const DeviceFloats running_mean(Floats(Features(), NAN)),
      running_variance(Floats(Features(), NAN));
  ASSERT_EQ(
      cudnnBatchNormalizationForwardTraining(
          handle_, GetParam(), &kOne, &kZero, x_, x.get(), x_, y.get(), parameters_, scale.get(),
          bias.get(), 1.0, running_mean.get(), running_variance.get(), kEpsilon, nullptr, nullptr),
      CUDNN_STATUS_SUCCESS);
  for (const float value : running_mean.Read()) EXPECT_FALSE(std::isnan(value));
  for (const float value : running_variance.Read()) EXPECT_FALSE(std::isnan(value));
}

TEST_P(BatchNormTest, InferenceUsesTheEstimates) {
  const Floats x_values = Values(kCount, 1);
  const Floats mean_values = Values(Features(), 2);
  Floats variance_values = Values(Features(), 3);
  for (float& value : variance_values) value = value * value + 0.1f;
  const DeviceFloats x(x_values), y(kCount), scale(scale_values_), bias(bias_values_);
  const DeviceFloats mean(mean_values), variance(variance_values);
  Floats expected(kCount);
  for (int i = 0; i < kCount; ++i) {
    const int f = FeatureOf(i);
    expected[i] = static_cast<float>((double(x_values[i]) - double(mean_values[f])) /
                                         std::sqrt(double(variance_values[f]) + kEpsilon) *
                                         double(scale_values_[f]) +
                                     double(bias_values_[f]));
  }

  ASSERT_EQ(cudnnBatchNormalizationForwardInference(
                handle_, GetParam(), &kOne, &kZero, x_, x.get(), x_, y.get(), parameters_,
                scale.get(), bias.get(), mean.get(), variance.get(), kEpsilon),
            CUDNN_STATUS_SUCCESS);

  ExpectNear(y.Read(), expected);
}

// The gradient of sum(dy * y) by central differences in double.
TEST_P(BatchNormTest, BackwardIsTheGradientWithAndWithoutSavedStatistics) {
  const Floats x_values = Values(kCount, 1);
  const Floats dy_values = Values(kCount, 2);
  const auto loss = [&](const Floats& x, const Floats& scale, const Floats& bias) {
    const std::vector<double> y = Normalize(x, scale, bias);
    double sum = 0;
    for (int i = 0; i < kCount; ++i) sum += y[i] * double(dy_values[i]);
    return sum;
  };
  const float step = 0x1p-9f;
  Floats dx_expected(kCount), dscale_expected(Features()), dbias_expected(Features());
  Floats x = x_values, scale = scale_values_, bias = bias_values_;
  const auto differences = [&](Floats* moved, Floats* result) {
    for (std::size_t i = 0; i < moved->size(); ++i) {
      const float before = (*moved)[i];
      (*moved)[i] = before + step;
      const double above = loss(x, scale, bias);
      (*moved)[i] = before - step;
      (*result)[i] = static_cast<float>((above - loss(x, scale, bias)) / (2 * double(step)));
      (*moved)[i] = before;
    }
  };
  differences(&x, &dx_expected);
  differences(&scale, &dscale_expected);
  differences(&bias, &dbias_expected);

  const Statistics s = StatisticsOf(x_values);
  Floats mean_values(s.mean.begin(), s.mean.end()), inverse_values(Features());
  for (int f = 0; f < Features(); ++f)
    inverse_values[f] = static_cast<float>(1 / std::sqrt(s.variance[f] + kEpsilon));
  const DeviceFloats mean(mean_values), inverse(inverse_values);
  const DeviceFloats x_device(x_values), dy(dy_values), scale_device(scale_values_);
  for (const bool saved : {true, false}) {
    const DeviceFloats dx(kCount), dscale(Features()), dbias(Floats(Features(), 1.0f));
    const float half = 0.5f;
    ASSERT_EQ(cudnnBatchNormalizationBackward(handle_, GetParam(), &kOne, &kZero, &kOne, &half, x_,
                                              x_device.get(), x_, dy.get(), x_, dx.get(),
                                              parameters_, scale_device.get(), dscale.get(),
                                              dbias.get(), kEpsilon, saved ? mean.get() : nullptr,
                                              saved ? inverse.get() : nullptr),
              CUDNN_STATUS_SUCCESS);
    ExpectNear(dx.Read(), dx_expected, Spatial() ? 1e-3f : 2e-2f);
    ExpectNear(dscale.Read(), dscale_expected, 1e-3f);
    Floats blended = dbias_expected;
    for (float& value : blended) value += 0.5f;
    ExpectNear(dbias.Read(), blended, 1e-3f);
  }
}

TEST_P(BatchNormTest, InterleavedLayoutGivesTheSameValues) {
  const Floats x_values = Values(kCount, 1);
  const TensorDesc interleaved({kN, kC, 2, 3}, CUDNN_TENSOR_NHWC);
  const DeviceFloats scale(scale_values_), bias(bias_values_);
  const DeviceFloats x(x_values), y(kCount), x_turned(ToChannelsLast(x_values, kN, kC, kPixels)),
      y_turned(kCount);
  const auto run = [&](cudnnTensorDescriptor_t desc, const DeviceFloats& from,
                       const DeviceFloats& to) {
    return cudnnBatchNormalizationForwardTraining(
        handle_, GetParam(), &kOne, &kZero, desc, from.get(), desc, to.get(), parameters_,
        scale.get(), bias.get(), 1.0, nullptr, nullptr, kEpsilon, nullptr, nullptr);
  };
  ASSERT_EQ(run(x_, x, y), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(run(interleaved, x_turned, y_turned), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(y_turned.Read(), ToChannelsLast(y.Read(), kN, kC, kPixels));
}

INSTANTIATE_TEST_SUITE_P(Modes, BatchNormTest,
                         testing::Values(CUDNN_BATCHNORM_SPATIAL, CUDNN_BATCHNORM_PER_ACTIVATION,
                                         CUDNN_BATCHNORM_SPATIAL_PERSISTENT));

TEST_F(CudnnTest, ExFormsRunThePlainOperationAndRefuseFusion) {
  const TensorDesc x_desc({2, 2, 1, 2});
  const TensorDesc parameters({1, 2, 1, 1});
  const DeviceFloats x(Values(8, 1)), y(8), y_plain(8), scale(Values(2, 2)), bias(Values(2, 3));
  size_t bytes = 1;
  ASSERT_EQ(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
                handle_, CUDNN_BATCHNORM_SPATIAL, CUDNN_BATCHNORM_OPS_BN, x_desc, nullptr, x_desc,
                parameters, nullptr, &bytes),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(bytes, 0u);
  const auto run = [&](cudnnBatchNormOps_t ops) {
    return cudnnBatchNormalizationForwardTrainingEx(
        handle_, CUDNN_BATCHNORM_SPATIAL, ops, &kOne, &kZero, x_desc, x.get(), nullptr, nullptr,
        x_desc, y.get(), parameters, scale.get(), bias.get(), 1.0, nullptr, nullptr, kEpsilon,
        nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0);
  };
  EXPECT_EQ(run(CUDNN_BATCHNORM_OPS_BN), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(run(CUDNN_BATCHNORM_OPS_BN_ACTIVATION), CUDNN_STATUS_NOT_SUPPORTED);
  cudnnBatchNormalizationForwardTraining(
      handle_, CUDNN_BATCHNORM_SPATIAL, &kOne, &kZero, x_desc, x.get(), x_desc, y_plain.get(),
      parameters, scale.get(), bias.get(), 1.0, nullptr, nullptr, kEpsilon, nullptr, nullptr);
  EXPECT_EQ(y.Read(), y_plain.Read());
}

std::vector<double> LrnByDefinition(const Floats& x, int channels, int pixels, int window,
                                    double alpha, double beta, double k) {
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int pixel = static_cast<int>(i) % pixels;
    const int channel = static_cast<int>(i) / pixels % channels;
    const int image = static_cast<int>(i) / pixels / channels;
    double sum = 0;
    for (int j = channel - (window - 1) / 2; j <= channel + window - (window - 1) / 2 - 1; ++j) {
      if (j >= 0 && j < channels)
        sum += std::pow(double(x[(image * channels + j) * pixels + pixel]), 2);
    }
    y[i] = double(x[i]) / std::pow(k + alpha / window * sum, beta);
  }
  return y;
}

class LrnTest : public CudnnTest, public testing::WithParamInterface<int> {};

TEST_P(LrnTest, ForwardAndBackwardMatchTheDefinition) {
  const double alpha = 0.8, beta = 0.75, k = 2;
  cudnnLRNDescriptor_t lrn = nullptr;
  cudnnCreateLRNDescriptor(&lrn);
  ASSERT_EQ(cudnnSetLRNDescriptor(lrn, GetParam(), alpha, beta, k), CUDNN_STATUS_SUCCESS);
  const TensorDesc desc({2, 6, 1, 2});
  const Floats x_values = Values(24, 1);
  const Floats dy_values = Values(24, 2);
  const DeviceFloats x(x_values), y(24), dy(dy_values), dx(24);

  ASSERT_EQ(cudnnLRNCrossChannelForward(handle_, lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, &kOne, desc,
                                        x.get(), &kZero, desc, y.get()),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(
      cudnnLRNCrossChannelBackward(handle_, lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, &kOne, desc, y.get(),
                                   desc, dy.get(), desc, x.get(), &kZero, desc, dx.get()),
      CUDNN_STATUS_SUCCESS);

  const auto expected = LrnByDefinition(x_values, 6, 2, GetParam(), alpha, beta, k);
  ExpectNear(y.Read(), Floats(expected.begin(), expected.end()));
  Floats gradient(24);
  const float step = 0x1p-8f;
  for (int i = 0; i < 24; ++i) {
    Floats moved = x_values;
    moved[i] += step;
    const auto above = LrnByDefinition(moved, 6, 2, GetParam(), alpha, beta, k);
    moved[i] = x_values[i] - step;
    const auto below = LrnByDefinition(moved, 6, 2, GetParam(), alpha, beta, k);
    double slope = 0;
    for (int j = 0; j < 24; ++j)
      slope += (above[j] - below[j]) / (2 * double(step)) * double(dy_values[j]);
    gradient[i] = static_cast<float>(slope);
  }
  ExpectNear(dx.Read(), gradient, 1e-4f);
  cudnnDestroyLRNDescriptor(lrn);
}

INSTANTIATE_TEST_SUITE_P(Windows, LrnTest, testing::Values(1, 3, 4, 5));

}  // namespace
}  // namespace spillway::simulator::dnn
