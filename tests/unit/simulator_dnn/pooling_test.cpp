// Pooling against loops that follow the definition.
#include <algorithm>
#include <limits>

#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

struct PoolingCase {
  const char* name;
  cudnnPoolingMode_t mode;
  int in[2], window[2], pad[2], stride[2];
  int Out(int d) const { return (in[d] + 2 * pad[d] - window[d]) / stride[d] + 1; }
};

constexpr int kPlanes = 6;  // two images of three channels

// Calls visit(output index, input index or -1 for padding, whether this is the window's first
// cell).
template <typename Visit>
void ForEachCell(const PoolingCase& t, Visit visit) {
  for (int p = 0; p < kPlanes; ++p)
    for (int oh = 0; oh < t.Out(0); ++oh)
      for (int ow = 0; ow < t.Out(1); ++ow)
        for (int kh = 0; kh < t.window[0]; ++kh)
          for (int kw = 0; kw < t.window[1]; ++kw) {
            const int ih = oh * t.stride[0] - t.pad[0] + kh;
            const int iw = ow * t.stride[1] - t.pad[1] + kw;
            const bool inside = ih >= 0 && iw >= 0 && ih < t.in[0] && iw < t.in[1];
            visit((p * t.Out(0) + oh) * t.Out(1) + ow,
                  inside ? (p * t.in[0] + ih) * t.in[1] + iw : -1);
          }
}

class PoolingTest : public CudnnTest, public testing::WithParamInterface<PoolingCase> {
 protected:
  void SetUp() override {
    CudnnTest::SetUp();
    const PoolingCase& t = GetParam();
    cudnnCreatePoolingDescriptor(&pooling_);
    cudnnSetPooling2dDescriptor(pooling_, t.mode, CUDNN_NOT_PROPAGATE_NAN, t.window[0], t.window[1],
                                t.pad[0], t.pad[1], t.stride[0], t.stride[1]);
    x_count_ = kPlanes * t.in[0] * t.in[1];
    y_count_ = kPlanes * t.Out(0) * t.Out(1);
  }
  void TearDown() override {
    cudnnDestroyPoolingDescriptor(pooling_);
    CudnnTest::TearDown();
  }
  bool IsMax() const {
    return GetParam().mode == CUDNN_POOLING_MAX ||
           GetParam().mode == CUDNN_POOLING_MAX_DETERMINISTIC;
  }
  // Cells that share an average.
  Floats Divisors() const {
    Floats divisors(y_count_);
    const bool with_padding = GetParam().mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
    ForEachCell(GetParam(),
                [&](int out, int in) { divisors[out] += with_padding || in >= 0 ? 1.0f : 0.0f; });
    return divisors;
  }
  cudnnPoolingDescriptor_t pooling_ = nullptr;
  int x_count_ = 0;
  int y_count_ = 0;
};

TEST_P(PoolingTest, ForwardAndBackwardMatchTheDefinition) {
  const PoolingCase& t = GetParam();
  const TensorDesc x_desc({2, 3, t.in[0], t.in[1]});
  const TensorDesc y_desc({2, 3, t.Out(0), t.Out(1)});
  int n = 0, c = 0, h = 0, w = 0;
  ASSERT_EQ(cudnnGetPooling2dForwardOutputDim(pooling_, x_desc, &n, &c, &h, &w),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(std::vector<int>({n, c, h, w}), std::vector<int>({2, 3, t.Out(0), t.Out(1)}));
  const Floats x_values = Values(x_count_, 1);
  const Floats dy_values = Values(y_count_, 2);
  const Floats old = Values(std::max(x_count_, y_count_), 3);
  const float alpha = 2, beta = -1;

  Floats y_expected(y_count_, IsMax() ? -std::numeric_limits<float>::infinity() : 0.0f);
  std::vector<int> best(y_count_, -1);
  const Floats divisors = Divisors();
  ForEachCell(t, [&](int out, int in) {
    if (in < 0) return;
    if (!IsMax()) y_expected[out] += x_values[in] / divisors[out];
    if (IsMax() && x_values[in] > y_expected[out]) {
      y_expected[out] = x_values[in];
      best[out] = in;
    }
  });
  Floats dx_expected(x_count_);
  ForEachCell(t, [&](int out, int in) {
    if (in < 0) return;
    if (!IsMax()) dx_expected[in] += dy_values[out] / divisors[out];
    if (IsMax() && best[out] == in) dx_expected[in] += dy_values[out];
  });
  Floats y_blended = y_expected, dx_blended = dx_expected;
  for (int i = 0; i < y_count_; ++i) y_blended[i] = alpha * y_expected[i] + beta * old[i];
  for (int i = 0; i < x_count_; ++i) dx_blended[i] = alpha * dx_expected[i] + beta * old[i];

  const DeviceFloats x(x_values), y(Floats(old.begin(), old.begin() + y_count_));
  const DeviceFloats dy(dy_values), dx(Floats(old.begin(), old.begin() + x_count_));
  ASSERT_EQ(cudnnPoolingForward(handle_, pooling_, &alpha, x_desc, x.get(), &beta, y_desc, y.get()),
            CUDNN_STATUS_SUCCESS);
  ExpectNear(y.Read(), y_blended);
  ASSERT_EQ(cudnnPoolingForward(handle_, pooling_, &kOne, x_desc, x.get(), &kZero, y_desc, y.get()),
            CUDNN_STATUS_SUCCESS);
  ExpectNear(y.Read(), y_expected);
  ASSERT_EQ(cudnnPoolingBackward(handle_, pooling_, &alpha, y_desc, y.get(), y_desc, dy.get(),
                                 x_desc, x.get(), &beta, x_desc, dx.get()),
            CUDNN_STATUS_SUCCESS);
  ExpectNear(dx.Read(), dx_blended);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PoolingTest,
    testing::Values(
        PoolingCase{"Max2x2", CUDNN_POOLING_MAX, {6, 8}, {2, 2}, {0, 0}, {2, 2}},
        PoolingCase{
            "MaxOverlapping", CUDNN_POOLING_MAX_DETERMINISTIC, {7, 7}, {3, 3}, {1, 1}, {2, 2}},
        PoolingCase{"AverageWithPadding",
                    CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
                    {5, 6},
                    {3, 2},
                    {1, 1},
                    {2, 1}},
        PoolingCase{"AverageWithoutPadding",
                    CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
                    {5, 6},
                    {3, 2},
                    {1, 1},
                    {2, 1}},
        PoolingCase{
            "Global", CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, {4, 4}, {4, 4}, {0, 0}, {4, 4}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace spillway::simulator::dnn
