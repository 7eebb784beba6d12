// Activation, softmax, AddTensor, OpTensor, SetTensor, ScaleTensor, TransformTensor, ReduceTensor.
#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

constexpr float kAlpha = 1.5f;
constexpr float kBeta = 0.25f;

struct ActivationCase {
  const char* name;
  cudnnActivationMode_t mode;
  double coefficient;
  std::function<double(double)> function;
};

class ActivationTest : public CudnnTest, public testing::WithParamInterface<ActivationCase> {
 protected:
  void SetUp() override {
    CudnnTest::SetUp();
    cudnnCreateActivationDescriptor(&activation_);
    cudnnSetActivationDescriptor(activation_, GetParam().mode, CUDNN_NOT_PROPAGATE_NAN,
                                 GetParam().coefficient);
  }
  void TearDown() override {
    cudnnDestroyActivationDescriptor(activation_);
    CudnnTest::TearDown();
  }
  cudnnActivationDescriptor_t activation_ = nullptr;
  TensorDesc desc_{{2, 3, 4, 5}};
};

TEST_P(ActivationTest, ForwardBlendsIntoTheOutput) {
  const Floats x_values = Values(120, 1);
  const Floats y_values = Values(120, 2);
  const DeviceFloats x(x_values);
  const DeviceFloats y(y_values);
  Floats expected(120);
  for (int i = 0; i < 120; ++i) {
    expected[i] =
        static_cast<float>(kAlpha * GetParam().function(x_values[i]) + kBeta * y_values[i]);
  }

  ASSERT_EQ(
      cudnnActivationForward(handle_, activation_, &kAlpha, desc_, x.get(), &kBeta, desc_, y.get()),
      CUDNN_STATUS_SUCCESS);

  ExpectNear(y.Read(), expected);
}

TEST_P(ActivationTest, ForwardWorksInPlace) {
  const Floats values = Values(120, 3);
  const DeviceFloats x(values);
  Floats expected(120);
  for (int i = 0; i < 120; ++i) expected[i] = static_cast<float>(GetParam().function(values[i]));

  ASSERT_EQ(
      cudnnActivationForward(handle_, activation_, &kOne, desc_, x.get(), &kZero, desc_, x.get()),
      CUDNN_STATUS_SUCCESS);

  ExpectNear(x.Read(), expected);
}

TEST_P(ActivationTest, BackwardIsTheDerivative) {
  const Floats x_values = Values(120, 4);
  const Floats dy_values = Values(120, 5);
  const DeviceFloats x(x_values);
  const DeviceFloats y(120);
  const DeviceFloats dy(dy_values);
  const DeviceFloats dx(120);
  const double step = 1e-6;
  Floats expected(120);
  for (int i = 0; i < 120; ++i) {
    const double at = x_values[i];
    const double slope =
        (GetParam().function(at + step) - GetParam().function(at - step)) / (2 * step);
    expected[i] = static_cast<float>(slope * dy_values[i]);
  }

  ASSERT_EQ(
      cudnnActivationForward(handle_, activation_, &kOne, desc_, x.get(), &kZero, desc_, y.get()),
      CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnActivationBackward(handle_, activation_, &kOne, desc_, y.get(), desc_, dy.get(),
                                    desc_, x.get(), &kZero, desc_, dx.get()),
            CUDNN_STATUS_SUCCESS);

  ExpectNear(dx.Read(), expected, 1e-4f);
}

INSTANTIATE_TEST_SUITE_P(
    Functions, ActivationTest,
    testing::Values(
        ActivationCase{"Relu", CUDNN_ACTIVATION_RELU, 0, [](double x) { return std::max(0.0, x); }},
        ActivationCase{"ClippedRelu", CUDNN_ACTIVATION_CLIPPED_RELU, 0.5,
                       [](double x) { return std::min(0.5, std::max(0.0, x)); }},
        ActivationCase{"Sigmoid", CUDNN_ACTIVATION_SIGMOID, 0,
                       [](double x) { return 1 / (1 + std::exp(-x)); }},
        ActivationCase{"Tanh", CUDNN_ACTIVATION_TANH, 0, [](double x) { return std::tanh(x); }},
        ActivationCase{"Elu", CUDNN_ACTIVATION_ELU, 0.7,
                       [](double x) { return x > 0 ? x : 0.7 * std::expm1(x); }},
        ActivationCase{"Swish", CUDNN_ACTIVATION_SWISH, 0,
                       [](double x) { return x / (1 + std::exp(-x)); }},
        ActivationCase{"Identity", CUDNN_ACTIVATION_IDENTITY, 0, [](double x) { return x; }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(CudnnTest, ReluPassesNanThrough) {
  cudnnActivationDescriptor_t relu = nullptr;
  cudnnCreateActivationDescriptor(&relu);
  cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0);
  const TensorDesc desc({1, 1, 1, 2});
  const DeviceFloats x(Floats{NAN, -1.0f});
  ASSERT_EQ(cudnnActivationForward(handle_, relu, &kOne, desc, x.get(), &kZero, desc, x.get()),
            CUDNN_STATUS_SUCCESS);
  EXPECT_TRUE(std::isnan(x.Read()[0]));
  EXPECT_EQ(x.Read()[1], 0.0f);
  cudnnDestroyActivationDescriptor(relu);
}

std::vector<double> SoftmaxByDefinition(const Floats& x, int groups, int classes, int stride,
                                        bool log) {
  std::vector<double> y(x.size());
  for (int g = 0; g < groups; ++g) {
    const int base = g / stride * classes * stride + g % stride;
    double sum = 0;
    for (int c = 0; c < classes; ++c) sum += std::exp(double(x[base + c * stride]));
    for (int c = 0; c < classes; ++c) {
      const double value = std::exp(double(x[base + c * stride])) / sum;
      y[base + c * stride] = log ? std::log(value) : value;
    }
  }
  return y;
}

struct SoftmaxCase {
  cudnnSoftmaxAlgorithm_t algorithm;
  cudnnSoftmaxMode_t mode;
};

class SoftmaxTest : public CudnnTest, public testing::WithParamInterface<SoftmaxCase> {};

TEST_P(SoftmaxTest, ForwardAndBackwardMatchTheDefinition) {
  const bool channel = GetParam().mode == CUDNN_SOFTMAX_MODE_CHANNEL;
  const bool log = GetParam().algorithm == CUDNN_SOFTMAX_LOG;
  const int groups = channel ? 12 : 2;
  const int classes = channel ? 5 : 30;
  const int stride = channel ? 6 : 1;
  const TensorDesc desc({2, 5, 2, 3});
  const Floats x_values = Values(60, 1);
  const Floats dy_values = Values(60, 2);
  const DeviceFloats x(x_values);
  const DeviceFloats y(60);
  const DeviceFloats dy(dy_values);
  const DeviceFloats dx(60);

  ASSERT_EQ(cudnnSoftmaxForward(handle_, GetParam().algorithm, GetParam().mode, &kOne, desc,
                                x.get(), &kZero, desc, y.get()),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnSoftmaxBackward(handle_, GetParam().algorithm, GetParam().mode, &kOne, desc,
                                 y.get(), desc, dy.get(), &kZero, desc, dx.get()),
            CUDNN_STATUS_SUCCESS);

  // Then y is the definition's and dx its gradient by differences.
  const std::vector<double> expected = SoftmaxByDefinition(x_values, groups, classes, stride, log);
  ExpectNear(y.Read(), Floats(expected.begin(), expected.end()));
  Floats gradient(60);
  const float step = 1e-2f;
  for (int i = 0; i < 60; ++i) {
    Floats moved = x_values;
    moved[i] += step;
    const auto above = SoftmaxByDefinition(moved, groups, classes, stride, log);
    moved[i] -= 2 * step;
    const auto below = SoftmaxByDefinition(moved, groups, classes, stride, log);
    double slope = 0;
    for (int j = 0; j < 60; ++j)
      slope += (above[j] - below[j]) / (2 * double(step)) * double(dy_values[j]);
    gradient[i] = static_cast<float>(slope);
  }
  ExpectNear(dx.Read(), gradient, 2e-4f);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, SoftmaxTest,
    testing::Values(SoftmaxCase{CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_CHANNEL},
                    SoftmaxCase{CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL},
                    SoftmaxCase{CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_CHANNEL},
                    SoftmaxCase{CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_INSTANCE},
                    SoftmaxCase{CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE},
                    SoftmaxCase{CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_INSTANCE}));

TEST_F(CudnnTest, AccurateSoftmaxSurvivesLargeValues) {
  const TensorDesc desc({1, 2, 1, 1});
  const DeviceFloats x(Floats{1000.0f, 1000.0f});
  ASSERT_EQ(cudnnSoftmaxForward(handle_, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &kOne,
                                desc, x.get(), &kZero, desc, x.get()),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(x.Read(), (Floats{0.5f, 0.5f}));
}

TEST_F(CudnnTest, AddTensorRepeatsBiasOverImagesAndPixels) {
  const TensorDesc bias_desc({1, 3, 1, 1});
  const TensorDesc c_desc({2, 3, 2, 2});
  const Floats bias_values = {1, 2, 3};
  const Floats old = Values(24, 1);
  const DeviceFloats bias(bias_values);
  const DeviceFloats c(old);
  Floats expected(24);
  for (int i = 0; i < 24; ++i) expected[i] = kAlpha * bias_values[i / 4 % 3] + kBeta * old[i];

  ASSERT_EQ(cudnnAddTensor(handle_, &kAlpha, bias_desc, bias.get(), &kBeta, c_desc, c.get()),
            CUDNN_STATUS_SUCCESS);

  ExpectNear(c.Read(), expected);
}

TEST_F(CudnnTest, AddTensorRefusesShapesThatDoNotRepeat) {
  const TensorDesc a_desc({1, 2, 1, 1});
  const TensorDesc c_desc({2, 3, 2, 2});
  const DeviceFloats a(2);
  const DeviceFloats c(24);
  EXPECT_EQ(cudnnAddTensor(handle_, &kOne, a_desc, a.get(), &kOne, c_desc, c.get()),
            CUDNN_STATUS_BAD_PARAM);
}

TEST_F(CudnnTest, OpTensorJoinsTwoTensors) {
  const TensorDesc a_desc({2, 2, 1, 3});
  const TensorDesc b_desc({1, 2, 1, 1});
  const Floats a_values = Values(12, 1);
  const Floats b_values = {0.5f, -2.0f};
  const Floats c_values = Values(12, 2);
  const DeviceFloats a(a_values);
  const DeviceFloats b(b_values);
  cudnnOpTensorDescriptor_t op = nullptr;
  cudnnCreateOpTensorDescriptor(&op);
  const std::pair<cudnnOpTensorOp_t, std::function<float(float, float)>> cases[] = {
      {CUDNN_OP_TENSOR_ADD, [](float x, float y) { return x + y; }},
      {CUDNN_OP_TENSOR_MUL, [](float x, float y) { return x * y; }},
      {CUDNN_OP_TENSOR_MIN, [](float x, float y) { return std::min(x, y); }},
      {CUDNN_OP_TENSOR_MAX, [](float x, float y) { return std::max(x, y); }},
      {CUDNN_OP_TENSOR_NOT, [](float x, float) { return 1 - x; }},
  };
  for (const auto& [what, function] : cases) {
    const DeviceFloats c(c_values);
    cudnnSetOpTensorDescriptor(op, what, CUDNN_DATA_FLOAT, CUDNN_NOT_PROPAGATE_NAN);
    Floats expected(12);
    for (int i = 0; i < 12; ++i) {
      expected[i] = function(kAlpha * a_values[i], 2 * b_values[i / 3 % 2]) + kBeta * c_values[i];
    }
    const float two = 2;
    ASSERT_EQ(cudnnOpTensor(handle_, op, &kAlpha, a_desc, a.get(), &two, b_desc, b.get(), &kBeta,
                            a_desc, c.get()),
              CUDNN_STATUS_SUCCESS);
    ExpectNear(c.Read(), expected);
  }
  cudnnDestroyOpTensorDescriptor(op);
}

TEST_F(CudnnTest, SetAndScaleWriteOnlyTheTensorsOwnElements) {
  // Given a 2 x 2 tensor with a gap of two floats after each row.
  cudnnTensorDescriptor_t desc = nullptr;
  cudnnCreateTensorDescriptor(&desc);
  cudnnSetTensor4dDescriptorEx(desc, CUDNN_DATA_FLOAT, 1, 1, 2, 2, 8, 8, 4, 1);
  size_t bytes = 0;
  cudnnGetTensorSizeInBytes(desc, &bytes);
  EXPECT_EQ(bytes, 6 * sizeof(float));
  const DeviceFloats y(Floats(8, 9.0f));
  const float value = 3;
  const float factor = -2;

  ASSERT_EQ(cudnnSetTensor(handle_, desc, y.get(), &value), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnScaleTensor(handle_, desc, y.get(), &factor), CUDNN_STATUS_SUCCESS);

  EXPECT_EQ(y.Read(), (Floats{-6, -6, 9, 9, -6, -6, 9, 9}));
  cudnnDestroyTensorDescriptor(desc);
}

TEST_F(CudnnTest, TransformChangesLayoutAndBack) {
  const TensorDesc planar({2, 3, 2, 2}, CUDNN_TENSOR_NCHW);
  const TensorDesc interleaved({2, 3, 2, 2}, CUDNN_TENSOR_NHWC);
  const Floats values = Values(24, 1);
  const DeviceFloats x(values);
  const DeviceFloats turned(24);
  const DeviceFloats back(24);

  ASSERT_EQ(
      cudnnTransformTensor(handle_, &kOne, planar, x.get(), &kZero, interleaved, turned.get()),
      CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(
      cudnnTransformTensor(handle_, &kOne, interleaved, turned.get(), &kZero, planar, back.get()),
      CUDNN_STATUS_SUCCESS);

  EXPECT_EQ(turned.Read(), ToChannelsLast(values, 2, 3, 4));
  EXPECT_EQ(back.Read(), values);
}

TEST_F(CudnnTest, TransformConvertsHalfAndBfloat16) {
  const TensorDesc floats({1, 1, 1, 6});
  const Floats values = {0.0f, 1.0f, -2.5f, 65504.0f, 0x1p-24f, 0x1p-14f};  // all exact in half
  const DeviceFloats x(values);
  const DeviceFloats back(6);
  const Device<std::uint16_t> words(6);
  const TensorDesc half({1, 1, 1, 6}, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF);

  ASSERT_EQ(cudnnTransformTensor(handle_, &kOne, floats, x.get(), &kZero, half, words.get()),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(words.Read(), (std::vector<std::uint16_t>{0, 0x3c00, 0xc100, 0x7bff, 0x0001, 0x0400}));
  ASSERT_EQ(cudnnTransformTensor(handle_, &kOne, half, words.get(), &kZero, floats, back.get()),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(back.Read(), values);

  const TensorDesc bfloat({1, 1, 1, 6}, CUDNN_TENSOR_NCHW, CUDNN_DATA_BFLOAT16);
  ASSERT_EQ(cudnnTransformTensor(handle_, &kOne, floats, x.get(), &kZero, bfloat, words.get()),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(words.Read()[2], 0xc020);
}

TEST_F(CudnnTest, UnsimulatedTypesAreRefused) {
  const TensorDesc doubles({1, 1, 1, 6}, CUDNN_TENSOR_NCHW, CUDNN_DATA_DOUBLE);
  const Device<double> x(6);
  const double one = 1;
  EXPECT_EQ(cudnnScaleTensor(handle_, doubles, x.get(), &one), CUDNN_STATUS_NOT_SUPPORTED);
}

TEST_F(CudnnTest, ReduceTensorFollowsItsOperation) {
  const TensorDesc a_desc({2, 3, 1, 2});
  const TensorDesc c_desc({1, 3, 1, 1});
  const DeviceFloats a(Floats{1, -2, 3, 4, 5, 0, 7, 8, -9, 10, 11, 12});
  cudnnReduceTensorDescriptor_t reduce = nullptr;
  cudnnCreateReduceTensorDescriptor(&reduce);
  const std::pair<cudnnReduceTensorOp_t, Floats> cases[] = {
      {CUDNN_REDUCE_TENSOR_ADD, {14, 8, 28}},
      {CUDNN_REDUCE_TENSOR_MUL, {-112, -1080, 0}},
      {CUDNN_REDUCE_TENSOR_MIN, {-2, -9, 0}},
      {CUDNN_REDUCE_TENSOR_MAX, {8, 10, 12}},
      {CUDNN_REDUCE_TENSOR_AMAX, {8, 10, 12}},
      {CUDNN_REDUCE_TENSOR_AVG, {3.5f, 2, 7}},
      {CUDNN_REDUCE_TENSOR_NORM1, {18, 26, 28}},
      {CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS, {-112, -1080, 660}},
      {CUDNN_REDUCE_TENSOR_NORM2, {std::sqrt(118.0f), std::sqrt(206.0f), std::sqrt(290.0f)}},
  };
  for (const auto& [op, expected] : cases) {
    cudnnSetReduceTensorDescriptor(reduce, op, CUDNN_DATA_FLOAT, CUDNN_NOT_PROPAGATE_NAN,
                                   CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES);
    size_t bytes = 0;
    ASSERT_EQ(cudnnGetReductionWorkspaceSize(handle_, reduce, a_desc, c_desc, &bytes),
              CUDNN_STATUS_SUCCESS);
    const DeviceBytes workspace(bytes);
    const DeviceFloats c(3);
    ASSERT_EQ(cudnnReduceTensor(handle_, reduce, nullptr, 0, workspace.get(), bytes, &kOne, a_desc,
                                a.get(), &kZero, c_desc, c.get()),
              CUDNN_STATUS_SUCCESS);
    ExpectNear(c.Read(), expected);
    EXPECT_EQ(cudnnReduceTensor(handle_, reduce, nullptr, 0, workspace.get(), bytes - 1, &kOne,
                                a_desc, a.get(), &kZero, c_desc, c.get()),
              CUDNN_STATUS_BAD_PARAM);
  }
  cudnnDestroyReduceTensorDescriptor(reduce);
}

}  // namespace
}  // namespace spillway::simulator::dnn
