// simulator/rules/pytorch.rules: the kernels of layers, whose parameters are pointers, sizes and
// views of tensors. Each case is one form of rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/simulator_driver/fake_launch.h"
#include "tests/unit/simulator_driver/pytorch_rules.h"

namespace spillway::simulator {
namespace {

using Texts = std::vector<std::string>;

// Parameter i is the pointer (i + 1) << 16 where its value is kPointer.
constexpr std::uint64_t kPointer = ~std::uint64_t{0};

struct Case {
  const char* name;
  std::vector<std::uint64_t> parameters;
  std::uint32_t grid[3];
  Texts uses;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class PytorchLayersTest : public PytorchRulesTest<testing::TestWithParam<Case>> {};

TEST_P(PytorchLayersTest, UsesWhatTheLayerUses) {
  const Case& one = GetParam();
  const DeclaredKernel* const kernel = rules_->Find(one.name);
  ASSERT_NE(kernel, nullptr);
  std::vector<std::uint64_t> values;
  for (std::size_t i = 0; i < one.parameters.size(); ++i)
    values.push_back(one.parameters[i] == kPointer ? (i + 1) << 16 : one.parameters[i]);
  std::vector<KernelParameter> places;
  std::vector<void*> arguments;
  for (std::uint64_t& value : values) {
    places.push_back({static_cast<std::uint32_t>(8 * places.size()), 8});
    arguments.push_back(&value);
  }
  const KernelEntry entry{"kernel", nullptr, nullptr, static_cast<std::uint32_t>(places.size()),
                          places.data()};
  const LaunchShape shape{{one.grid[0], one.grid[1], one.grid[2]}, {128, 1, 1}, 0};

  EXPECT_EQ(TextsOf(kernel->Describe({entry, shape, arguments.data()})), one.uses);
}

constexpr std::uint64_t P = kPointer;

INSTANTIATE_TEST_SUITE_P(
    Forms, PytorchLayersTest,
    testing::Values(
        Case{"void at::native::batch_norm_collect_statistics_channels_last_kernel<"
             "at::native::InvStd, c10::Half, float, 4>(X)",
             {P, P, P, P, P, 50, 8, 0},
             {1, 1, 1},
             {"r 10000 800", "w 20000 32", "w 30000 32", "w 40000 32"}},
        Case{
            "void at::native::batch_norm_transform_input_channels_last_kernel<c10::Half, float, "
            "float, 4>(X)",
            {P, 0, P, P, P, P, P, 50, 8, 0},
            {1, 1, 1},
            {"r 10000 800", "r 30000 32", "r 40000 32", "r 50000 32", "r 60000 32", "w 70000 800"}},
        Case{"void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>(X)",
             {10, 0, P, P, P},
             {6, 1, 1},
             {"r 30000 240", "w 40000 24", "w 50000 24"}},
        Case{"void at::native::(anonymous namespace)::ComputeInternalGradientsCUDAKernel<"
             "c10::BFloat16>(X)",
             {10, P, P, P, P},
             {6, 1, 1},
             {"r 20000 120", "r 30000 120", "w 40000 24", "w 50000 24"}},
        Case{"void at::native::(anonymous namespace)::avg_pool2d_out_cuda_frame<float, float>(X)",
             {2 * 3 * 4 * 5, P, 3, 8, 10, 4, 5, 2, 2, 2, 2, 0, 0, P, 0, 0, 0},
             {1, 1, 1},
             {"r 20000 1920", "w e0000 480"}},
        Case{"void at::native::(anonymous namespace)::avg_pool2d_backward_out_cuda_frame_nhwc<"
             "float, float, int>(X)",
             {2 * 3 * 8 * 10, P, 3, 8, 10, 4, 5, 2, 2, 2, 2, 0, 0, P, 0, 0, 0},
             {1, 1, 1},
             {"r 20000 480", "w e0000 1920"}},
        Case{"void at::native::(anonymous namespace)::adaptive_average_pool<float>(X)",
             {P, P, 8, 10, 4, 5, 0, 0, 0},
             {6, 16, 1},
             {"r 10000 1920", "w 20000 480"}},
        Case{"void at::native::(anonymous namespace)::upsample_nearest2d_out_frame<float, F>(X)",
             {P, P, 6, 4, 5, 8, 10, 0, 0},
             {1, 1, 1},
             {"r 10000 480", "w 20000 1920"}},
        Case{"void at::native::(anonymous namespace)::upsample_nearest2d_backward_nhwc_out_frame<"
             "float, float, F>(X)",
             {P, P, 8, 10, 4, 5, 3, 0, 0, 2 * 3 * 4 * 5},
             {1, 1, 1},
             {"r 10000 1920", "w 20000 480"}},
        Case{"void at::native::(anonymous namespace)::reflection_pad2d_out_kernel<float>(X)",
             {P, P, 10, 8, 1, 2, 3, 4, 0, 0, 3},
             {1, 3, 2},
             {"r 10000 1920", "w 20000 4488"}},
        Case{"void at::native::im2col_kernel<float>(X)",
             {3 * 6 * 7, P, 8, 9, 3, 3, 0, 0, 1, 1, 1, 1, 6, 7, P},
             {1, 1, 1},
             {"r 20000 864", "w f0000 4536"}},
        Case{"void at::native::(anonymous namespace)::cunn_SpatialSoftMaxForward<float, float, "
             "c10::Half, int, E>(X)",
             {P, P, 2, 3, 4},
             {1, 1, 1},
             {"w 10000 48", "r 20000 96"}},
        Case{"void at::native::(anonymous namespace)::nll_loss2d_forward_kernel<float, float, "
             "int>(X)",
             {P, P, P, P, 0, 7, 30, 4, 0},
             {8, 1, 1},
             {"u 10000 4", "u 20000 4", "r 30000 1680", "r 40000 480"}},
        Case{"void at::native::tensor_kernel_scan_outer_dim<float, unsigned int, O>(X)",
             {P, P, 2, 3, 4, 0, 0},
             {1, 1, 1},
             {"w 10000 96", "r 20000 96"}},
        Case{"void at::native::(anonymous namespace)::compute_grad_weight<c10::Half, long>(X)",
             {P, P, 0, 100, 40, P, P, P, 64},
             {9, 1, 1},
             {"r 10000 800", "r 20000 8000", "r 60000 8", "r 70000 8", "w 80000 1440"}},
        Case{"void at_cuda_detail::cub::detail::reduce::DeviceReduceSingleTileKernel<"
             "at_cuda_detail::cub::detail::reduce::policy_hub<int, unsigned long long, "
             "cuda::std::__4::plus<int> >::P>(X)",
             {P, P, 100, 0, 0, 0},
             {1, 1, 1},
             {"f 20000 4"}},
        Case{"at::native::(anonymous namespace)::amp_update_scale_cuda_kernel(float*, int*, X)",
             {P, P, P, 0, 0, 0},
             {1, 1, 1},
             {"u 10000 4", "u 20000 4", "r 30000 4"}},
        Case{"void (anonymous namespace)::elementwise_kernel_with_index<int, "
             "at::native::arange_cuda_out(X)::{lambda()#1}::operator()() const::{lambda()#7}::"
             "operator()() const::{lambda(long)#1}>(X)",
             {100, 0, P},
             {1, 1, 1},
             {"w 30000 400"}},
        Case{"void (anonymous namespace)::elementwise_kernel_with_index<int, "
             "at::native::linspace_cuda_out(X)::{lambda()#2}::operator()() const::{lambda()#5}::"
             "operator()() const::{lambda(long)#1}>(X)",
             {100, 0, P},
             {1, 1, 1},
             {"w 30000 200"}},
        Case{"void at::native::_assert_async_cuda_kernel<bool>(bool const*, at::native::Msg)",
             {P, P},
             {1, 1, 1},
             {"r 10000 1"}}));

// A view of 32 bits: data, three sizes, three strides. (2, 8, 50), the channels apart
TEST_F(PytorchLayersTest, ViewsOfTensorsHaveTheirExtent) {
  FakeLaunch launch({32, 8, 8, 16, 16});
  launch.Set64(0, {0x10000}).Set32(0, {2, 8, 50, 800, 100, 2}, 2);
  launch.Set64(3, {0x20000}).Set32(3, {8, 1}, 2).Set64(4, {0x30000}).Set32(4, {8, 1}, 2);
  EXPECT_EQ(TextsOf(launch.Describe(*rules_->Find(
                "void at::native::batch_norm_collect_statistics_kernel<at::native::InvStd, float, "
                "float, float, int>(X)"))),
            (Texts{"r 10000 6396", "w 20000 32", "w 30000 32"}));
}

// The same of 64 bits, of four dimensions
TEST_F(PytorchLayersTest, WideViewsOfTensorsHaveTheirExtent) {
  FakeLaunch launch({8, 8, 8, 8, 72, 72});
  launch.Set64(4, {0x10000, 2, 3, 4, 5, 60, 20, 5, 1});
  launch.Set64(5, {0x20000, 2, 3, 8, 10, 240, 80, 10, 1});
  EXPECT_EQ(TextsOf(launch.Describe(*rules_->Find(
                "void at::native::(anonymous namespace)::upsample_bilinear2d_out_frame<float, "
                "float>(X)"))),
            (Texts{"r 10000 480", "w 20000 1920"}));
}

}  // namespace
}  // namespace spillway::simulator
