// The plans that a program gets within a budget: those whose workspace fits, and of each kind at
// least as many as it takes to run.
#include <cstdlib>
#include <set>
#include <string>

#include "tests/support/paths.h"
#include "tests/unit/simulator_dnn/graph_run.h"

namespace spillway::simulator::dnn {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kBudget = 256 * kMiB;
constexpr std::int64_t kResultBytes = 2 * kMiB;

class GraphPlansTest : public testing::Test {
 protected:
  void Begin(const char* choice) {
    setenv("SPILLWAY_DRIVER", test::SimulatedDriver().c_str(), 1);
    setenv("SPILLWAY_SIM_PROFILE", "a100", 1);
    setenv("SPILLWAY_BUDGET", std::to_string(kBudget).c_str(), 1);
    setenv("SPILLWAY_WORKSPACE", choice, 1);
    CUcontext context = nullptr;
    CUdeviceptr memory = 0;
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&memory, 256), CUDA_SUCCESS);
    ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
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
  // The largest workspace among the plans, and their kinds.
  struct Found {
    std::int64_t most_bytes = 0;
    int refused = 0;
    std::set<bool> kinds;  // deterministic or not
  };
  static Found Plans() {
    const Backend operation = FilterGradient();
    const Backend graph = Graph({&operation});
    Found found;
    for (const Backend& configuration : Configurations(graph, CUDNN_HEUR_MODE_INSTANT)) {
      Backend plan(kLinked, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      const cudnnStatus_t status = plan.Finalize();
      if (status == CUDNN_STATUS_NOT_SUPPORTED) {
        ++found.refused;
        continue;
      }
      EXPECT_EQ(status, CUDNN_STATUS_SUCCESS);
      found.most_bytes = std::max(found.most_bytes, WorkspaceOf(plan));
      found.kinds.insert(HasNote(configuration, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
    }
    return found;
  }
  cudnnHandle_t handle_ = nullptr;
};

TEST_F(GraphPlansTest, PlansThatCannotFitAreRefused) {
  Begin("fit");
  const Found found = Plans();
  EXPECT_GT(found.refused, 0);
  EXPECT_LE(found.most_bytes + kResultBytes, kBudget);
  EXPECT_EQ(found.kinds.size(), 2u);
}

TEST_F(GraphPlansTest, PlansBeyondAGrantOfWorkspaceAreRefused) {
  constexpr std::int64_t kGrant = 64 * kMiB;
  Begin(std::to_string(kGrant).c_str());
  const Found found = Plans();
  EXPECT_GT(found.refused, 0);
  EXPECT_LE(found.most_bytes, kGrant);
  EXPECT_EQ(found.kinds.size(), 2u) << "one of each kind remains";
}

TEST_F(GraphPlansTest, AsBareRefusesNone) {
  Begin("as-bare");
  const Found found = Plans();
  EXPECT_EQ(found.refused, 0);
  EXPECT_GT(found.most_bytes, kBudget);
}

}  // namespace
}  // namespace spillway::simulator::dnn
