// Conditional graph nodes: which bodies run, how often, and in which order with the other nodes.
#include <vector>

#include "tests/unit/simulator_driver/driver_test.h"

namespace spillway::simulator {
namespace {

// step(int* words, handle, unsigned limit): counts its runs, and asks for another below the limit.
void StepBody(const LaunchShape&, void* const* arguments) {
  int* const words = *static_cast<int* const*>(arguments[0]);
  const auto handle = *static_cast<const cuuint64_t*>(arguments[1]);
  const auto limit = *static_cast<const unsigned*>(arguments[2]);
  const int runs = ++words[0];
  *reinterpret_cast<unsigned*>(handle) = static_cast<unsigned>(runs) < limit;
}

// add(int* words, int value): also notes by how many runs of step it came later.
void AddBody(const LaunchShape&, void* const* arguments) {
  int* const words = *static_cast<int* const*>(arguments[0]);
  words[1] += *static_cast<const int*>(arguments[1]);
  words[2] = words[0];
}

constexpr KernelParameter kStepParameters[] = {{0, 8}, {8, 8}, {16, 4}};
constexpr KernelParameter kAddParameters[] = {{0, 8}, {8, 4}};
constexpr KernelEntry kKernels[] = {{"step", StepBody, OneMillisecond, 3, kStepParameters},
                                    {"add", AddBody, OneMillisecond, 2, kAddParameters}};
constexpr Image kImage = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 2, kKernels, 0, nullptr};

class ConditionalTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    CUmodule module = nullptr;
    ASSERT_OK(cuModuleLoadData(&module, &kImage));
    ASSERT_OK(cuModuleGetFunction(&step_, module, "step"));
    ASSERT_OK(cuModuleGetFunction(&add_, module, "add"));
    ASSERT_OK(cuMemAlloc(&words_, 3 * sizeof(int)));
    ASSERT_OK(cuMemsetD32(words_, 0, 3));
    ASSERT_OK(cuGraphCreate(&graph_, 0));
  }

  CUgraphConditionalHandle Condition(unsigned at_launch) {
    CUgraphConditionalHandle handle = 0;
    EXPECT_OK(cuGraphConditionalHandleCreate(&handle, graph_, nullptr, at_launch,
                                             CU_GRAPH_COND_ASSIGN_DEFAULT));
    return handle;
  }

  CUgraphNode AddKernel(CUgraph graph, CUgraphNode after, CUfunction function, void** parameters) {
    CUDA_KERNEL_NODE_PARAMS kernel = {};
    kernel.func = function;
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
    kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.kernelParams = parameters;
    CUgraphNode node = nullptr;
    EXPECT_OK(cuGraphAddKernelNode(&node, graph, after ? &after : nullptr, after ? 1 : 0, &kernel));
    return node;
  }
  CUgraphNode AddStep(CUgraph graph, CUgraphConditionalHandle handle, unsigned limit) {
    void* parameters[] = {&words_, &handle, &limit};
    return AddKernel(graph, nullptr, step_, parameters);
  }
  CUgraphNode AddAdd(CUgraph graph, CUgraphNode after, int value) {
    void* parameters[] = {&words_, &value};
    return AddKernel(graph, after, add_, parameters);
  }

  CUresult AddConditional(CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
                          unsigned size, CUgraphNode* node, std::vector<CUgraph>* bodies) {
    CUgraphNodeParams params = {};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional = {handle, type, size, nullptr, nullptr};
    const CUresult result = cuGraphAddNode_v2(node, graph_, nullptr, nullptr, 0, &params);
    if (result == CUDA_SUCCESS)
      bodies->assign(params.conditional.phGraph_out, params.conditional.phGraph_out + size);
    return result;
  }

  CUgraphExec Instantiated() {
    CUgraphExec executable = nullptr;
    EXPECT_OK(cuGraphInstantiateWithFlags(&executable, graph_, 0));
    return executable;
  }

  std::vector<int> Launch(int times = 1) { return Launch(Instantiated(), times); }
  std::vector<int> Launch(CUgraphExec executable, int times = 1) {
    for (int i = 0; i < times; ++i) EXPECT_OK(cuGraphLaunch(executable, nullptr));
    std::vector<int> words(3);
    EXPECT_OK(cuMemcpyDtoH(words.data(), words_, words.size() * sizeof(int)));
    return words;
  }

  CUfunction step_ = nullptr, add_ = nullptr;
  CUdeviceptr words_ = 0;
  CUgraph graph_ = nullptr;
  CUgraphNode node_ = nullptr;
  std::vector<CUgraph> bodies_;
};

TEST_F(ConditionalTest, AWhileNodeRunsItsBodyUntilTheDeviceEndsIt) {
  const CUgraphConditionalHandle handle = Condition(1);
  ASSERT_OK(AddConditional(handle, CU_GRAPH_COND_TYPE_WHILE, 1, &node_, &bodies_));
  AddStep(bodies_[0], handle, 5);
  AddAdd(graph_, node_, 100);
  EXPECT_EQ(Launch(), (std::vector<int>{5, 100, 5}));
}

TEST_F(ConditionalTest, EachLaunchBeginsWithTheDefault) {
  const CUgraphConditionalHandle handle = Condition(1);
  ASSERT_OK(AddConditional(handle, CU_GRAPH_COND_TYPE_WHILE, 1, &node_, &bodies_));
  AddStep(bodies_[0], handle, 3);
  EXPECT_EQ(Launch(2)[0], 4);  // the second launch runs the body once: the count is past the limit
}

TEST_F(ConditionalTest, AnIfNodeChoosesBetweenItsBodies) {
  for (const unsigned value : {0u, 1u}) {
    ASSERT_OK(cuMemsetD32(words_, 0, 3));
    ASSERT_OK(cuGraphCreate(&graph_, 0));
    ASSERT_OK(AddConditional(Condition(value), CU_GRAPH_COND_TYPE_IF, 2, &node_, &bodies_));
    AddAdd(bodies_[0], nullptr, 7);
    AddAdd(bodies_[1], nullptr, 9);
    EXPECT_EQ(Launch()[1], value != 0 ? 7 : 9);
  }
}

TEST_F(ConditionalTest, ASwitchNodeRunsTheNumberedBodyOrNone) {
  for (const unsigned value : {0u, 2u, 3u}) {
    ASSERT_OK(cuMemsetD32(words_, 0, 3));
    ASSERT_OK(cuGraphCreate(&graph_, 0));
    ASSERT_OK(AddConditional(Condition(value), CU_GRAPH_COND_TYPE_SWITCH, 3, &node_, &bodies_));
    for (int i = 0; i < 3; ++i) AddAdd(bodies_[i], nullptr, 10 + i);
    EXPECT_EQ(Launch()[1], value < 3 ? 10 + static_cast<int>(value) : 0);
  }
}

TEST_F(ConditionalTest, AFaultInABodyEndsTheLoop) {
  const CUgraphConditionalHandle handle = Condition(1);
  ASSERT_OK(AddConditional(handle, CU_GRAPH_COND_TYPE_WHILE, 1, &node_, &bodies_));
  AddStep(bodies_[0], handle, 1000000);
  CUgraphExec executable = nullptr;
  ASSERT_OK(cuGraphInstantiateWithFlags(&executable, graph_, 0));
  ASSERT_OK(cuMemFree(words_));
  ASSERT_OK(cuGraphLaunch(executable, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(ConditionalTest, ABodyMayBeCaptured) {
  ASSERT_OK(AddConditional(Condition(1), CU_GRAPH_COND_TYPE_IF, 1, &node_, &bodies_));
  CUstream stream = nullptr;
  ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_OK(cuStreamBeginCaptureToGraph(stream, bodies_[0], nullptr, nullptr, 0,
                                        CU_STREAM_CAPTURE_MODE_GLOBAL));
  int value = 7;
  void* parameters[] = {&words_, &value};
  ASSERT_OK(cuLaunchKernel(add_, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  ASSERT_OK(cuStreamEndCapture(stream, nullptr));
  EXPECT_EQ(Launch()[1], 7);
  EXPECT_EQ(cuGraphDestroy(bodies_[0]), CUDA_ERROR_INVALID_VALUE);  // the node owns it
}

TEST_F(ConditionalTest, ACaptureIntoAGraphOfItsOwnMustBeReceived) {
  CUstream stream = nullptr;
  ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(cuStreamEndCapture(stream, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUgraph captured = nullptr;
  EXPECT_OK(cuStreamEndCapture(stream, &captured));
}

TEST_F(ConditionalTest, AnUpdateBringsTheBodiesParametersAndRefusesOtherBodies) {
  ASSERT_OK(AddConditional(Condition(1), CU_GRAPH_COND_TYPE_IF, 1, &node_, &bodies_));
  AddAdd(bodies_[0], nullptr, 7);
  CUgraphExec executable = Instantiated();
  EXPECT_EQ(Launch(executable)[1], 7);

  ASSERT_OK(cuGraphCreate(&graph_, 0));
  ASSERT_OK(AddConditional(Condition(1), CU_GRAPH_COND_TYPE_IF, 1, &node_, &bodies_));
  AddAdd(bodies_[0], nullptr, 30);
  CUgraphExecUpdateResultInfo info = {};
  ASSERT_OK(cuGraphExecUpdate(executable, graph_, &info));
  EXPECT_EQ(Launch(executable)[1], 37);

  AddAdd(bodies_[0], nullptr, 1);
  EXPECT_EQ(cuGraphExecUpdate(executable, graph_, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  EXPECT_EQ(info.errorNode, node_);
  EXPECT_EQ(Launch(executable)[1], 67);
}

// cuda.h, CU_GRAPH_NODE_TYPE_CONDITIONAL
TEST_F(ConditionalTest, AGraphWithAConditionIsNotClonedNestedOrInstantiatedTwice) {
  ASSERT_OK(AddConditional(Condition(1), CU_GRAPH_COND_TYPE_IF, 1, &node_, &bodies_));
  CUgraph other = nullptr;
  EXPECT_EQ(cuGraphClone(&other, graph_), CUDA_ERROR_NOT_SUPPORTED);
  ASSERT_OK(cuGraphCreate(&other, 0));
  CUgraphNode child = nullptr;
  EXPECT_EQ(cuGraphAddChildGraphNode(&child, other, nullptr, 0, graph_), CUDA_ERROR_NOT_SUPPORTED);
  CUgraphExec executable = Instantiated(), second = nullptr;
  EXPECT_EQ(cuGraphInstantiateWithFlags(&second, graph_, 0), CUDA_ERROR_NOT_SUPPORTED);
  ASSERT_OK(cuGraphExecDestroy(executable));
  EXPECT_OK(cuGraphInstantiateWithFlags(&second, graph_, 0));
}

TEST_F(ConditionalTest, RefusesUnknownHandlesSizesAndNodesInBodies) {
  EXPECT_EQ(AddConditional(12345, CU_GRAPH_COND_TYPE_IF, 1, &node_, &bodies_),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(AddConditional(Condition(0), CU_GRAPH_COND_TYPE_WHILE, 2, &node_, &bodies_),
            CUDA_ERROR_INVALID_VALUE);
  ASSERT_OK(AddConditional(Condition(0), CU_GRAPH_COND_TYPE_IF, 1, &node_, &bodies_));
  const CUDA_HOST_NODE_PARAMS host = {[](void*) {}, nullptr};
  CUgraphNode inner = nullptr;
  ASSERT_OK(cuGraphAddHostNode(&inner, bodies_[0], nullptr, 0, &host));
  CUgraphExec executable = nullptr;
  EXPECT_EQ(cuGraphInstantiateWithFlags(&executable, graph_, 0), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace spillway::simulator
