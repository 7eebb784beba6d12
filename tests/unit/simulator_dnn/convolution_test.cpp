// Convolution in all directions against loops that follow the definition.
#include <algorithm>

#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

struct Case {
  const char* name;
  int n, c, k, groups;
  int in[2], kernel[2], pad[2], stride[2], dilation[2];
  cudnnConvolutionMode_t mode;
  cudnnTensorFormat_t format;
  int Out(int d) const {
    return (in[d] + 2 * pad[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  }
  int XCount() const { return n * c * in[0] * in[1]; }
  int WCount() const { return k * (c / groups) * kernel[0] * kernel[1]; }
  int YCount() const { return n * k * Out(0) * Out(1); }
};

const Case kCases[] = {
    {"Plain3x3",
     2,
     3,
     4,
     1,
     {7, 6},
     {3, 3},
     {1, 1},
     {1, 1},
     {1, 1},
     CUDNN_CROSS_CORRELATION,
     CUDNN_TENSOR_NCHW},
    {"Strided5x3",
     2,
     4,
     6,
     1,
     {11, 9},
     {5, 3},
     {2, 0},
     {2, 3},
     {1, 1},
     CUDNN_CROSS_CORRELATION,
     CUDNN_TENSOR_NCHW},
    {"Dilated",
     1,
     2,
     3,
     1,
     {9, 9},
     {3, 3},
     {2, 2},
     {1, 1},
     {2, 2},
     CUDNN_CROSS_CORRELATION,
     CUDNN_TENSOR_NCHW},
    {"Grouped",
     2,
     4,
     8,
     2,
     {6, 6},
     {3, 3},
     {1, 1},
     {1, 1},
     {1, 1},
     CUDNN_CROSS_CORRELATION,
     CUDNN_TENSOR_NCHW},
    {"Depthwise",
     2,
     4,
     4,
     4,
     {6, 5},
     {3, 3},
     {1, 1},
     {2, 2},
     {1, 1},
     CUDNN_CROSS_CORRELATION,
     CUDNN_TENSOR_NCHW},
    {"OneByOne",
     3,
     16,
     32,
     1,
     {5, 5},
     {1, 1},
     {0, 0},
     {1, 1},
     {1, 1},
     CUDNN_CROSS_CORRELATION,
     CUDNN_TENSOR_NCHW},
    {"TrueConvolution",
     2,
     3,
     4,
     1,
     {6, 6},
     {3, 2},
     {1, 1},
     {1, 1},
     {1, 1},
     CUDNN_CONVOLUTION,
     CUDNN_TENSOR_NCHW},
    {"ChannelsLast",
     2,
     3,
     4,
     1,
     {7, 6},
     {3, 3},
     {1, 1},
     {2, 1},
     {1, 1},
     CUDNN_CROSS_CORRELATION,
     CUDNN_TENSOR_NHWC},
};

// Calls visit(x index, w index, y index) for each product of the definition, in NCHW order.
template <typename Visit>
void ForEachProduct(const Case& t, Visit visit) {
  const int group_c = t.c / t.groups;
  const int group_k = t.k / t.groups;
  for (int n = 0; n < t.n; ++n)
    for (int k = 0; k < t.k; ++k)
      for (int oh = 0; oh < t.Out(0); ++oh)
        for (int ow = 0; ow < t.Out(1); ++ow)
          for (int c = 0; c < group_c; ++c)
            for (int kh = 0; kh < t.kernel[0]; ++kh)
              for (int kw = 0; kw < t.kernel[1]; ++kw) {
                const int ih = oh * t.stride[0] - t.pad[0] + kh * t.dilation[0];
                const int iw = ow * t.stride[1] - t.pad[1] + kw * t.dilation[1];
                if (ih < 0 || iw < 0 || ih >= t.in[0] || iw >= t.in[1]) continue;
                const bool turned = t.mode == CUDNN_CONVOLUTION;
                const int fh = turned ? t.kernel[0] - 1 - kh : kh;
                const int fw = turned ? t.kernel[1] - 1 - kw : kw;
                visit(((n * t.c + k / group_k * group_c + c) * t.in[0] + ih) * t.in[1] + iw,
                      ((k * group_c + c) * t.kernel[0] + fh) * t.kernel[1] + fw,
                      ((n * t.k + k) * t.Out(0) + oh) * t.Out(1) + ow);
              }
}

Floats Blend(const std::vector<double>& sums, float alpha, float beta, const Floats& old) {
  Floats result(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i)
    result[i] = static_cast<float>(alpha * sums[i] + beta * old[i]);
  return result;
}

class ConvolutionTest : public CudnnTest, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    CudnnTest::SetUp();
    Describe(GetParam());
  }

  void Describe(const Case& t) {
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnCreateTensorDescriptor(&x_);
    cudnnCreateTensorDescriptor(&y_);
    cudnnCreateFilterDescriptor(&w_);
    cudnnCreateConvolutionDescriptor(&convolution_);
    ASSERT_EQ(cudnnSetTensor4dDescriptor(x_, t.format, type, t.n, t.c, t.in[0], t.in[1]),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetFilter4dDescriptor(w_, type, t.format, t.k, t.c / t.groups, t.kernel[0],
                                         t.kernel[1]),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(
        cudnnSetConvolution2dDescriptor(convolution_, t.pad[0], t.pad[1], t.stride[0], t.stride[1],
                                        t.dilation[0], t.dilation[1], t.mode, type),
        CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetConvolutionGroupCount(convolution_, t.groups), CUDNN_STATUS_SUCCESS);
    int n = 0, c = 0, h = 0, w = 0;
    ASSERT_EQ(cudnnGetConvolution2dForwardOutputDim(convolution_, x_, w_, &n, &c, &h, &w),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(std::vector<int>({n, c, h, w}), std::vector<int>({t.n, t.k, t.Out(0), t.Out(1)}));
    ASSERT_EQ(cudnnSetTensor4dDescriptor(y_, t.format, type, n, c, h, w), CUDNN_STATUS_SUCCESS);
    x_values_ = Values(t.XCount(), 1);
    w_values_ = Values(t.WCount(), 2);
    y_values_ = Values(t.YCount(), 3);
  }

  void TearDown() override {
    cudnnDestroyTensorDescriptor(x_);
    cudnnDestroyTensorDescriptor(y_);
    cudnnDestroyFilterDescriptor(w_);
    cudnnDestroyConvolutionDescriptor(convolution_);
    CudnnTest::TearDown();
  }

  Floats XLayout(const Floats& v) const {
    return Layout(v, GetParam().n, GetParam().c, GetParam().in);
  }
  Floats YLayout(const Floats& v) const {
    const int out[2] = {GetParam().Out(0), GetParam().Out(1)};
    return Layout(v, GetParam().n, GetParam().k, out);
  }
  Floats WLayout(const Floats& v) const {
    return Layout(v, GetParam().k, GetParam().c / GetParam().groups, GetParam().kernel);
  }
  static Floats Layout(const Floats& v, int n, int c, const int (&pixels)[2]) {
    return GetParam().format == CUDNN_TENSOR_NHWC ? ToChannelsLast(v, n, c, pixels[0] * pixels[1])
                                                  : v;
  }

  cudnnTensorDescriptor_t x_ = nullptr;
  cudnnTensorDescriptor_t y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  Floats x_values_, w_values_, y_values_;
};

constexpr float kAlpha = 0.75f;
constexpr float kBeta = -0.5f;

TEST_P(ConvolutionTest, ForwardMatchesTheDefinitionWithEveryAlgorithm) {
  std::vector<double> sums(GetParam().YCount());
  ForEachProduct(GetParam(), [&](int x, int w, int y) {
    sums[y] += double(x_values_[x]) * double(w_values_[w]);
  });
  const Floats expected = YLayout(Blend(sums, kAlpha, kBeta, y_values_));
  const DeviceFloats x(XLayout(x_values_));
  const DeviceFloats w(WLayout(w_values_));

  cudnnConvolutionFwdAlgoPerf_t results[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
  int count = 0;
  ASSERT_EQ(cudnnGetConvolutionForwardAlgorithm_v7(handle_, x_, w_, convolution_, y_,
                                                   std::size(results), &count, results),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(count, CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
  for (int i = 0; i < count; ++i) {
    const DeviceFloats y(YLayout(y_values_));
    const DeviceBytes workspace(results[i].memory);
    const cudnnStatus_t status = cudnnConvolutionForward(
        handle_, &kAlpha, x_, x.get(), w_, w.get(), convolution_, results[i].algo, workspace.get(),
        results[i].memory, &kBeta, y_, y.get());
    ASSERT_EQ(status, results[i].status);
    if (status == CUDNN_STATUS_SUCCESS) ExpectNear(y.Read(), expected);
  }
}

TEST_P(ConvolutionTest, BackwardDataMatchesTheDefinitionWithEveryAlgorithm) {
  std::vector<double> sums(GetParam().XCount());
  ForEachProduct(GetParam(), [&](int x, int w, int y) {
    sums[x] += double(y_values_[y]) * double(w_values_[w]);
  });
  const Floats expected = XLayout(Blend(sums, kAlpha, kBeta, x_values_));
  const DeviceFloats dy(YLayout(y_values_));
  const DeviceFloats w(WLayout(w_values_));

  for (int algorithm = 0; algorithm < CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT; ++algorithm) {
    const auto algo = static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm);
    size_t bytes = 0;
    const cudnnStatus_t supported = cudnnGetConvolutionBackwardDataWorkspaceSize(
        handle_, w_, y_, convolution_, x_, algo, &bytes);
    const DeviceFloats dx(XLayout(x_values_));
    const DeviceBytes workspace(bytes);
    ASSERT_EQ(
        cudnnConvolutionBackwardData(handle_, &kAlpha, w_, w.get(), y_, dy.get(), convolution_,
                                     algo, workspace.get(), bytes, &kBeta, x_, dx.get()),
        supported);
    if (supported == CUDNN_STATUS_SUCCESS) ExpectNear(dx.Read(), expected);
  }
}

TEST_P(ConvolutionTest, BackwardFilterMatchesTheDefinitionWithEveryAlgorithm) {
  std::vector<double> sums(GetParam().WCount());
  ForEachProduct(GetParam(), [&](int x, int w, int y) {
    sums[w] += double(y_values_[y]) * double(x_values_[x]);
  });
  const Floats expected = WLayout(Blend(sums, kAlpha, kBeta, w_values_));
  const DeviceFloats dy(YLayout(y_values_));
  const DeviceFloats x(XLayout(x_values_));

  for (int algorithm = 0; algorithm < CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT; ++algorithm) {
    const auto algo = static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm);
    size_t bytes = 0;
    const cudnnStatus_t supported = cudnnGetConvolutionBackwardFilterWorkspaceSize(
        handle_, x_, y_, convolution_, w_, algo, &bytes);
    const DeviceFloats dw(WLayout(w_values_));
    const DeviceBytes workspace(bytes);
    ASSERT_EQ(
        cudnnConvolutionBackwardFilter(handle_, &kAlpha, x_, x.get(), y_, dy.get(), convolution_,
                                       algo, workspace.get(), bytes, &kBeta, w_, dw.get()),
        supported);
    if (supported == CUDNN_STATUS_SUCCESS) ExpectNear(dw.Read(), expected, 5e-5f);
  }
}

TEST_P(ConvolutionTest, BetaZeroDoesNotReadTheOutput) {
  const DeviceFloats x(XLayout(x_values_));
  const DeviceFloats w(WLayout(w_values_));
  const DeviceFloats y(Floats(GetParam().YCount(), NAN));

  ASSERT_EQ(cudnnConvolutionForward(handle_, &kAlpha, x_, x.get(), w_, w.get(), convolution_,
                                    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &kZero,
                                    y_, y.get()),
            CUDNN_STATUS_SUCCESS);

  for (const float value : y.Read()) ASSERT_FALSE(std::isnan(value));
}

TEST_P(ConvolutionTest, SameBitsOnEveryRunAtEveryAddress) {
  const Floats x_layout = XLayout(x_values_);
  const DeviceFloats w(WLayout(w_values_));
  Floats first;
  for (int shift = 0; shift < 5; ++shift) {  // in floats: every alignment within 16 bytes
    Floats shifted(shift, 0.0f);
    shifted.insert(shifted.end(), x_layout.begin(), x_layout.end());
    const DeviceFloats x(shifted);
    const DeviceFloats y(GetParam().YCount());
    ASSERT_EQ(cudnnConvolutionForward(handle_, &kOne, x_, x.get() + shift, w_, w.get(),
                                      convolution_, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                      nullptr, 0, &kZero, y_, y.get()),
              CUDNN_STATUS_SUCCESS);
    const Floats result = y.Read();
    if (shift == 0) first = result;
    ASSERT_EQ(result, first);
  }
}

TEST_P(ConvolutionTest, WorkspaceTooSmallIsRefusedAndNothingIsWritten) {
  const DeviceFloats x(XLayout(x_values_));
  const DeviceFloats w(WLayout(w_values_));
  const DeviceFloats y(YLayout(y_values_));
  const auto algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  size_t bytes = 0;
  ASSERT_EQ(
      cudnnGetConvolutionForwardWorkspaceSize(handle_, x_, w_, convolution_, y_, algo, &bytes),
      CUDNN_STATUS_SUCCESS);
  ASSERT_GT(bytes, 0u);
  const DeviceBytes workspace(bytes);

  EXPECT_EQ(cudnnConvolutionForward(handle_, &kOne, x_, x.get(), w_, w.get(), convolution_, algo,
                                    workspace.get(), bytes - 1, &kZero, y_, y.get()),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(cudnnConvolutionForward(handle_, &kOne, x_, x.get(), w_, w.get(), convolution_, algo,
                                    nullptr, bytes, &kZero, y_, y.get()),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(y.Read(), YLayout(y_values_));
}

TEST_P(ConvolutionTest, WorkspaceIsWrittenToItsLastByte) {
  const DeviceFloats x(XLayout(x_values_));
  const DeviceFloats w(WLayout(w_values_));
  const DeviceFloats y(GetParam().YCount());
  const auto algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  size_t bytes = 0;
  cudnnGetConvolutionForwardWorkspaceSize(handle_, x_, w_, convolution_, y_, algo, &bytes);
  const DeviceBytes workspace(bytes + 1);

  ASSERT_EQ(cudnnConvolutionForward(handle_, &kOne, x_, x.get(), w_, w.get(), convolution_, algo,
                                    workspace.get(), bytes, &kZero, y_, y.get()),
            CUDNN_STATUS_SUCCESS);

  const std::vector<unsigned char> content = workspace.Read();
  for (size_t at = 0; at < bytes; at += 512) EXPECT_NE(content[at], 0) << at;
  EXPECT_NE(content[bytes - 1], 0);
  EXPECT_EQ(content[bytes], 0);
}

TEST_P(ConvolutionTest, BiasGradientSumsOverImagesAndPixels) {
  const Case& t = GetParam();
  const int pixels = t.Out(0) * t.Out(1);
  const Floats old = Values(t.k, 5);
  std::vector<double> sums(t.k);
  for (int i = 0; i < t.YCount(); ++i) sums[i / pixels % t.k] += double(y_values_[i]);
  const DeviceFloats dy(YLayout(y_values_));
  const DeviceFloats db(old);
  const TensorDesc db_desc({1, t.k, 1, 1});

  ASSERT_EQ(cudnnConvolutionBackwardBias(handle_, &kAlpha, y_, dy.get(), &kBeta, db_desc, db.get()),
            CUDNN_STATUS_SUCCESS);

  ExpectNear(db.Read(), Blend(sums, kAlpha, kBeta, old));
}

TEST_P(ConvolutionTest, BiasAndActivationAreFused) {
  const Case& t = GetParam();
  const int pixels = t.Out(0) * t.Out(1);
  const Floats bias_values = Values(t.k, 6);
  std::vector<double> sums(t.YCount());
  ForEachProduct(
      t, [&](int x, int w, int y) { sums[y] += double(x_values_[x]) * double(w_values_[w]); });
  Floats expected = Blend(sums, kAlpha, kBeta, y_values_);
  for (int i = 0; i < t.YCount(); ++i)
    expected[i] = std::max(0.0f, expected[i] + bias_values[i / pixels % t.k]);
  const DeviceFloats x(XLayout(x_values_));
  const DeviceFloats w(WLayout(w_values_));
  const DeviceFloats y(YLayout(y_values_));  // z and y are the same tensor
  const DeviceFloats bias(bias_values);
  const TensorDesc bias_desc({1, t.k, 1, 1});
  cudnnActivationDescriptor_t relu = nullptr;
  cudnnCreateActivationDescriptor(&relu);
  cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0);

  ASSERT_EQ(cudnnConvolutionBiasActivationForward(
                handle_, &kAlpha, x_, x.get(), w_, w.get(), convolution_,
                CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &kBeta, y_, y.get(),
                bias_desc, bias.get(), relu, y_, y.get()),
            CUDNN_STATUS_SUCCESS);

  ExpectNear(y.Read(), YLayout(expected));
  cudnnDestroyActivationDescriptor(relu);
}

TEST_P(ConvolutionTest, SearchOverwritesTheOutputAndReportsAlgorithmsThatDoNotFit) {
  const DeviceFloats x(XLayout(x_values_));
  const DeviceFloats w(WLayout(w_values_));
  const DeviceFloats y(Floats(GetParam().YCount(), 77.0f));
  cudnnConvolutionFwdAlgoPerf_t results[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
  int count = 0;

  ASSERT_EQ(cudnnFindConvolutionForwardAlgorithmEx(handle_, x_, x.get(), w_, w.get(), convolution_,
                                                   y_, y.get(), std::size(results), &count, results,
                                                   nullptr, 0),
            CUDNN_STATUS_SUCCESS);

  EXPECT_EQ(results[0].status, CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(results[0].algo, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM);
  for (int i = 1; i < count; ++i) EXPECT_NE(results[i].status, CUDNN_STATUS_SUCCESS);
  const Floats after = y.Read();
  EXPECT_EQ(std::count(after.begin(), after.end(), 77.0f), 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvolutionTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

class AlgorithmRankTest : public CudnnTest {
 protected:
  void SetUp() override {
    CudnnTest::SetUp();
    cudnnCreateFilterDescriptor(&w_);
    cudnnCreateConvolutionDescriptor(&convolution_);
    cudnnSetFilter4dDescriptor(w_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 256, 128, 3, 3);
    cudnnSetConvolution2dDescriptor(convolution_, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                    CUDNN_DATA_FLOAT);
  }
  void TearDown() override {
    cudnnDestroyFilterDescriptor(w_);
    cudnnDestroyConvolutionDescriptor(convolution_);
    CudnnTest::TearDown();
  }
  TensorDesc x_{{64, 128, 56, 56}};
  TensorDesc y_{{64, 256, 56, 56}};
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
};

template <typename Perf>
void ExpectSortedAndDistinct(const Perf* results, int count) {
  int supported = 0;
  while (supported < count && results[supported].status == CUDNN_STATUS_SUCCESS) ++supported;
  ASSERT_GE(supported, 3);
  for (int i = 1; i < supported; ++i) {
    EXPECT_LT(results[i - 1].time, results[i].time);
    for (int j = 0; j < i; ++j) EXPECT_NE(results[i].memory, results[j].memory);
  }
  EXPECT_EQ(results[supported - 1].memory, 0u);  // the slowest needs no workspace
  for (int i = supported; i < count; ++i) EXPECT_EQ(results[i].status, CUDNN_STATUS_NOT_SUPPORTED);
}

TEST_F(AlgorithmRankTest, EveryDirectionOffersAlgorithmsThatTradeWorkspaceForTime) {
  int count = 0;
  cudnnConvolutionFwdAlgoPerf_t forward[8];
  ASSERT_EQ(
      cudnnGetConvolutionForwardAlgorithm_v7(handle_, x_, w_, convolution_, y_, 8, &count, forward),
      CUDNN_STATUS_SUCCESS);
  ExpectSortedAndDistinct(forward, count);
  cudnnConvolutionBwdDataAlgoPerf_t data[8];
  ASSERT_EQ(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle_, w_, y_, convolution_, x_, 8,
                                                        &count, data),
            CUDNN_STATUS_SUCCESS);
  ExpectSortedAndDistinct(data, count);
  cudnnConvolutionBwdFilterAlgoPerf_t filter[8];
  ASSERT_EQ(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle_, x_, y_, convolution_, w_, 8,
                                                          &count, filter),
            CUDNN_STATUS_SUCCESS);
  ExpectSortedAndDistinct(filter, count);
}

TEST_F(AlgorithmRankTest, TransformAlgorithmsRequireUnitStride) {
  cudnnSetConvolution2dDescriptor(convolution_, 1, 1, 2, 2, 1, 1, CUDNN_CROSS_CORRELATION,
                                  CUDNN_DATA_FLOAT);
  const TensorDesc y({64, 256, 28, 28});
  size_t bytes = 0;
  for (const auto algo :
       {CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING,
        CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED}) {
    EXPECT_EQ(
        cudnnGetConvolutionForwardWorkspaceSize(handle_, x_, w_, convolution_, y, algo, &bytes),
        CUDNN_STATUS_NOT_SUPPORTED);
  }
}

TEST_F(AlgorithmRankTest, DescriptorsThatDisagreeAreRefused) {
  const TensorDesc wrong({64, 256, 55, 56});
  size_t bytes = 0;
  EXPECT_EQ(
      cudnnGetConvolutionForwardWorkspaceSize(handle_, x_, w_, convolution_, wrong,
                                              CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &bytes),
      CUDNN_STATUS_BAD_PARAM);
  char reason[128];
  cudnnGetLastErrorString(reason, sizeof(reason));
  EXPECT_NE(std::string(reason).find("BAD_PARAM"), std::string::npos);
}

TEST_F(AlgorithmRankTest, StreamTakesTheModelledTime) {
  const TensorDesc x({1, 128, 28, 28});
  const TensorDesc y({1, 256, 28, 28});
  const DeviceFloats x_device(128 * 784), w_device(256 * 128 * 9), y_device(256 * 784);
  cudnnConvolutionFwdAlgoPerf_t results[8];
  int count = 0;
  cudnnGetConvolutionForwardAlgorithm_v7(handle_, x, w_, convolution_, y, 8, &count, results);
  CUevent before = nullptr, after = nullptr;
  cuEventCreate(&before, CU_EVENT_DEFAULT);
  cuEventCreate(&after, CU_EVENT_DEFAULT);
  for (int i = 0; i < count && results[i].status == CUDNN_STATUS_SUCCESS; ++i) {
    const DeviceBytes workspace(results[i].memory);
    cuEventRecord(before, nullptr);
    ASSERT_EQ(cudnnConvolutionForward(handle_, &kOne, x, x_device.get(), w_, w_device.get(),
                                      convolution_, results[i].algo, workspace.get(),
                                      results[i].memory, &kZero, y, y_device.get()),
              CUDNN_STATUS_SUCCESS);
    cuEventRecord(after, nullptr);
    cuEventSynchronize(after);
    float milliseconds = 0;
    cuEventElapsedTime(&milliseconds, before, after);
    constexpr float kLaunchMilliseconds = 0.002f;  // the profile's launch overhead
    EXPECT_NEAR(milliseconds, results[i].time + kLaunchMilliseconds,
                0.2f * results[i].time + 0.001f)
        << "algorithm " << results[i].algo;
  }
  cuEventDestroy(before);
  cuEventDestroy(after);
}

TEST_F(CudnnTest, HalfPrecisionConvolutionRoundsTheFloatResult) {
  const TensorDesc x_desc({1, 2, 1, 4}, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF);
  const TensorDesc y_desc({1, 1, 1, 4}, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF);
  cudnnFilterDescriptor_t w_desc = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  cudnnCreateFilterDescriptor(&w_desc);
  cudnnCreateConvolutionDescriptor(&convolution);
  cudnnSetFilter4dDescriptor(w_desc, CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, 1, 2, 1, 1);
  cudnnSetConvolution2dDescriptor(convolution, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                  CUDNN_DATA_FLOAT);
  const Device<std::uint16_t> x(
      std::vector<std::uint16_t>{0x3c00, 0x3c00, 0x4000, 0x4000, 0, 0x3c00, 0xbc00, 0});
  const Device<std::uint16_t> w(std::vector<std::uint16_t>{0x3800, 0x3800});
  const Device<std::uint16_t> y(4);

  ASSERT_EQ(cudnnConvolutionForward(handle_, &kOne, x_desc, x.get(), w_desc, w.get(), convolution,
                                    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &kZero,
                                    y_desc, y.get()),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(y.Read(),
            (std::vector<std::uint16_t>{0x3c00, 0x4000, 0x3800, 0xb800}));  // 1, 2, 0.5, -0.5
  const TensorDesc floats({1, 1, 1, 4});
  EXPECT_EQ(cudnnConvolutionForward(handle_, &kOne, x_desc, x.get(), w_desc, w.get(), convolution,
                                    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &kZero,
                                    floats, y.get()),
            CUDNN_STATUS_NOT_SUPPORTED);
  cudnnDestroyFilterDescriptor(w_desc);
  cudnnDestroyConvolutionDescriptor(convolution);
}

TEST_F(CudnnTest, ConvolutionInThreeDimensions) {
  const TensorDesc x_desc({1, 2, 3, 3, 3});
  const TensorDesc y_desc({1, 1, 2, 2, 2});
  cudnnFilterDescriptor_t w_desc = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  cudnnCreateFilterDescriptor(&w_desc);
  cudnnCreateConvolutionDescriptor(&convolution);
  const int filter_dims[] = {1, 2, 2, 2, 2};
  const int zeros[] = {0, 0, 0};
  const int ones[] = {1, 1, 1};
  cudnnSetFilterNdDescriptor(w_desc, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 5, filter_dims);
  cudnnSetConvolutionNdDescriptor(convolution, 3, zeros, ones, ones, CUDNN_CROSS_CORRELATION,
                                  CUDNN_DATA_FLOAT);
  const DeviceFloats x(Floats(54, 1.0f));
  const DeviceFloats w(Floats(16, 1.0f));
  const DeviceFloats y(8);

  ASSERT_EQ(cudnnConvolutionForward(handle_, &kOne, x_desc, x.get(), w_desc, w.get(), convolution,
                                    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &kZero,
                                    y_desc, y.get()),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(y.Read(), Floats(8, 16.0f));
  cudnnDestroyFilterDescriptor(w_desc);
  cudnnDestroyConvolutionDescriptor(convolution);
}

}  // namespace
}  // namespace spillway::simulator::dnn
