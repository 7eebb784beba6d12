// Dropped results of cuDNN's graph interface: plans with deterministic engines are proved, and
// recomputed for a reader. Others are kept.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/support/paths.h"
#include "tests/support/statistics.h"
#include "tests/unit/simulator_dnn/graph_run.h"

namespace spillway::simulator::dnn {
namespace {

using test::Statistics;

constexpr std::size_t kMiB = std::size_t{1} << 20;
// Spillway takes at most a sixteenth of the budget for scratch memory.
constexpr std::int64_t kMostScratchBytes = std::int64_t{16} << 20;
constexpr std::ptrdiff_t kResultCount = 512 * 1024;

class GraphRecomputeTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("SPILLWAY_DRIVER", test::SimulatedDriver().c_str(), 1);
    setenv("SPILLWAY_SIM_PROFILE", "a100", 1);
    setenv("SPILLWAY_BUDGET", std::to_string(256 * kMiB).c_str(), 1);
    setenv("SPILLWAY_PARK", "off", 1);
    setenv("SPILLWAY_RECOMPUTE", "eager", 1);
    setenv("SPILLWAY_WORKSPACE", "as-bare", 1);  // every engine makes a plan
    CUcontext context = nullptr;
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(Statistics("illegal_accesses"), 0u);
    cudnnDestroy(handle_);
  }

  // dw[i, j] = the sum over 4 pixels of dy[i] x[j]; dw has 2 MiB.
  static Backend FilterGradient() {
    const Backend x = Tensor({'x', {1, 1024, 2, 2}}), dy = Tensor({'y', {1, 512, 2, 2}});
    const Backend dw = Tensor({'w', {512, 1024, 1, 1}});
    const Backend convolution = MakeConvolution(kLinked, {{0, 0}, {1, 1}, {1, 1}});
    return Operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                     {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, &x},
                      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, &dy},
                      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, &dw},
                      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, &convolution}});
  }
  // Memory without a host copy, as proofs need it.
  static float* NewResult() {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, kResultCount * sizeof(float)), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD32(address, 0, kResultCount), CUDA_SUCCESS);
    return reinterpret_cast<float*>(address);
  }
  // An execution's own kernels, and its proof's.
  unsigned long long LaunchesOf(const Backend& plan, const Pointers& pointers) {
    const auto bytes = static_cast<std::size_t>(WorkspaceOf(plan));
    CUdeviceptr workspace = 0;
    if (bytes > 0) {
      EXPECT_EQ(cuMemAlloc(&workspace, bytes), CUDA_SUCCESS);
    }
    return LaunchesBy([&] {
      EXPECT_EQ(Execute(handle_, plan, pointers, reinterpret_cast<void*>(workspace)),
                CUDNN_STATUS_SUCCESS);
    });
  }
  template <class Work>
  static unsigned long long LaunchesBy(Work work) {
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    const unsigned long long before = Statistics("kernels");
    work();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    return Statistics("kernels") - before;
  }
  static unsigned long long LaunchesOfReading(const float* result, float expected) {
    return LaunchesBy([&] {
      Floats values(kResultCount);
      EXPECT_EQ(cuMemcpyDtoH(values.data(), reinterpret_cast<CUdeviceptr>(result),
                             kResultCount * sizeof(float)),
                CUDA_SUCCESS);
      EXPECT_EQ(std::count(values.begin(), values.end(), expected), kResultCount)
          << "it begins with " << values[0];
    });
  }
  cudnnHandle_t handle_ = nullptr;
};

TEST_F(GraphRecomputeTest, OnlyResultsOfDeterministicEnginesAreDropped) {
  const Backend operation = FilterGradient();
  const Backend graph = Graph({&operation});
  const DeviceFloats x(Floats(4096, 1)), dy(Floats(2048, 3));
  int deterministic = 0, others = 0;
  for (const Backend& configuration : Configurations(graph, CUDNN_HEUR_MODE_INSTANT)) {
    const bool is_deterministic = !HasNote(configuration, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
    const Backend plan = PlanOf(configuration);
    if (WorkspaceOf(plan) > kMostScratchBytes) continue;
    // Given one execution more, in which replays get scratch memory for the workspace
    LaunchesOf(plan, {{'x', x.get()}, {'y', dy.get()}, {'w', NewResult()}});
    float* const dw = NewResult();

    const auto launches = LaunchesOf(plan, {{'x', x.get()}, {'y', dy.get()}, {'w', dw}});
    const auto launches_of_reading = LaunchesOfReading(dw, 12);

    if (!is_deterministic) {
      EXPECT_EQ(launches, 1u) << IndexOf(configuration);
    }
    EXPECT_EQ(launches_of_reading, is_deterministic ? 1u : 0u) << IndexOf(configuration);
    ++(is_deterministic ? deterministic : others);
  }
  EXPECT_GT(deterministic, 0);
  EXPECT_GT(others, 0);
}

TEST_F(GraphRecomputeTest, LastConfigurationOfAPlanCounts) {
  const Backend operation = FilterGradient();
  const Backend graph = Graph({&operation});
  const std::vector<Backend> all = Configurations(graph, CUDNN_HEUR_MODE_INSTANT);
  const auto find = [&](bool is_deterministic) {
    return std::find_if(all.begin(), all.end(), [=](const Backend& each) {
      return HasNote(each, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) != is_deterministic;
    });
  };
  Backend plan(kLinked, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  ASSERT_EQ(plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *find(true)), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *find(false)), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(plan.Finalize(), CUDNN_STATUS_SUCCESS);
  const DeviceFloats x(Floats(4096, 1)), dy(Floats(2048, 3));
  float* const dw = NewResult();

  EXPECT_EQ(LaunchesOf(plan, {{'x', x.get()}, {'y', dy.get()}, {'w', dw}}), 1u);

  EXPECT_EQ(LaunchesOfReading(dw, 12), 0u);
}

TEST_F(GraphRecomputeTest, OverwritingTheInputRecomputesTheResultFirst) {
  const Backend x = Tensor({'x', {1, 512, 32, 32}}), y = Tensor({'y', {1, 512, 32, 32}});
  const Backend operation = PointwiseOperation({CUDNN_POINTWISE_RELU_FWD}, x, nullptr, y);
  const Backend graph = Graph({&operation});
  const Backend plan = PlanOf(Configurations(graph, CUDNN_HEUR_MODE_INSTANT).at(0));
  const DeviceFloats input(Floats(kResultCount, 5));
  float* const result = NewResult();
  EXPECT_EQ(LaunchesOf(plan, {{'x', input.get()}, {'y', result}}), 2u);

  ASSERT_EQ(cuMemsetD32(reinterpret_cast<CUdeviceptr>(input.get()), 0, kResultCount), CUDA_SUCCESS);

  EXPECT_EQ(LaunchesOfReading(result, 5), 0u) << "it was recomputed before";
}

}  // namespace
}  // namespace spillway::simulator::dnn
