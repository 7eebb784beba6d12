// Memory that only a body of a conditional node uses was missing while the body ran.
#include <string>

#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

using simulator::KernelParameter;
using simulator::LaunchShape;

constexpr size_t kBytes = 8 * kMiB;
constexpr std::uint64_t kWords = kBytes / 4;

void AddBody(const LaunchShape&, void* const* arguments) {
  auto* const to = *static_cast<std::uint32_t* const*>(arguments[0]);
  const auto value = *static_cast<const std::uint32_t*>(arguments[1]);
  for (std::uint64_t i = 0; i < kWords; ++i) to[i] += value;
}
constexpr KernelParameter kAddParameters[] = {{0, 8}, {8, 4}};
SPILLWAY_ONE_KERNEL(kAddImage, "add", AddBody, nullptr, 2, kAddParameters);

// Without parking: a launch whose memory is missing faults, instead of just being slow.
class GraphBodiesTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    setenv("SPILLWAY_PARK", "off", 0);
    Start();
    add_ = Kernel(&kAddImage, "add");
    ASSERT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphCreate(&graph_, 0), CUDA_SUCCESS);
    a_ = Filled(kBytes, 0);
    b_ = Filled(kBytes, 0);
  }
  void TearDown() override {
    EXPECT_EQ(Statistics("unmapped_while_in_use"), 0u);
    EXPECT_EQ(Statistics("illegal_accesses"), 0u);
    EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
  }

  static CUgraphNodeParams BranchParams(CUgraph graph, unsigned int taken) {
    CUgraphConditionalHandle condition = 0;
    EXPECT_EQ(cuGraphConditionalHandleCreate(&condition, graph, nullptr, taken,
                                             CU_GRAPH_COND_ASSIGN_DEFAULT),
              CUDA_SUCCESS);
    CUgraphNodeParams params = {};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional = {condition, CU_GRAPH_COND_TYPE_IF, 1, nullptr, nullptr};
    return params;
  }
  // Adds an `if` node; returns its body.
  CUgraph AddBranch(CUgraph graph, unsigned int taken) {
    CUgraphNodeParams params = BranchParams(graph, taken);
    EXPECT_EQ(cuGraphAddNode_v2(&branch_, graph, nullptr, nullptr, 0, &params), CUDA_SUCCESS);
    return params.conditional.phGraph_out[0];
  }
  // By the driver's own function, so that Spillway does not see it.
  CUgraph AddUnseenBranch(CUgraph graph) {
    CUgraphNodeParams params = BranchParams(graph, 1);
    void* const driver = dlopen(getenv("SPILLWAY_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
    const auto add =
        reinterpret_cast<decltype(&cuGraphAddNode_v2)>(dlsym(driver, "cuGraphAddNode_v2"));
    EXPECT_EQ(add(&branch_, graph, nullptr, nullptr, 0, &params), CUDA_SUCCESS);
    return params.conditional.phGraph_out[0];
  }
  void AddKernel(CUgraph graph, CUdeviceptr to, std::uint32_t value) {
    void* parameters[] = {&to, &value};
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = add_;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = parameters;
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params), CUDA_SUCCESS);
  }
  void AddSet(CUgraph graph, CUdeviceptr to, unsigned int word) {
    const CUDA_MEMSET_NODE_PARAMS set = {to, 0, word, 4, kWords, 1};
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &set, context_), CUDA_SUCCESS);
  }
  void AddCopy(CUgraph graph, CUdeviceptr to, CUdeviceptr from) {
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.dstDevice = to;
    copy.WidthInBytes = kBytes;
    copy.Height = copy.Depth = 1;
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, context_), CUDA_SUCCESS);
  }

  void Instantiate() { ASSERT_EQ(cuGraphInstantiate(&step_, graph_, 0), CUDA_SUCCESS); }
  void Replay() {
    ASSERT_EQ(cuGraphLaunch(step_, stream_), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  }
  static void EvictEarlierMemory() {
    const auto others = FilledBuffers(8, kBytes);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    for (const CUdeviceptr other : others) EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);
  }
  void ReplayAndEvict(int times) {
    for (int i = 0; i < times; ++i) {
      EvictEarlierMemory();
      Replay();
    }
    EvictEarlierMemory();
  }

  CUfunction add_ = nullptr;
  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
  CUgraphExec step_ = nullptr;
  CUgraphNode branch_ = nullptr;
  CUdeviceptr a_ = 0, b_ = 0;
};

TEST_F(GraphBodiesTest, MemoryOfABodysKernelIsResidentAndKeepsItsBytes) {
  AddKernel(AddBranch(graph_, 1), a_, 5);
  Instantiate();
  ReplayAndEvict(3);
  EXPECT_TRUE(IsAll(a_, kBytes, 15));
}

TEST_F(GraphBodiesTest, MemoryOfANestedBodyIsResident) {
  AddKernel(AddBranch(AddBranch(graph_, 1), 1), a_, 5);
  Instantiate();
  ReplayAndEvict(3);
  EXPECT_TRUE(IsAll(a_, kBytes, 15));
}

// A copy outside the body reads A.
TEST_F(GraphBodiesTest, WhatABodyWritesIsKeptBesideACopyThatReadsIt) {
  AddCopy(graph_, b_, a_);
  AddKernel(AddBranch(graph_, 1), a_, 5);
  Instantiate();
  ReplayAndEvict(3);
  EXPECT_TRUE(IsAll(a_, kBytes, 15));
}

// The body may not run.
TEST_F(GraphBodiesTest, MemoryThatASkippedBodyWouldOverwriteKeepsItsBytes) {
  const CUdeviceptr c = Filled(kBytes, 3);
  AddSet(AddBranch(graph_, 0), c, 10);
  Instantiate();
  ReplayAndEvict(2);
  EXPECT_TRUE(IsAll(c, kBytes, 3));
}

TEST_F(GraphBodiesTest, ASetAndACopyInABodyTakeEffect) {
  const CUdeviceptr c = Filled(kBytes, 3);
  const CUgraph body = AddBranch(graph_, 1);
  AddSet(body, a_, 10);
  AddCopy(body, b_, c);
  Instantiate();
  ReplayAndEvict(2);
  EXPECT_TRUE(IsAll(a_, kBytes, 10));
  EXPECT_TRUE(IsAll(b_, kBytes, 3));
}

TEST_F(GraphBodiesTest, AnUpdateBringsTheBodysMemory) {
  AddKernel(AddBranch(graph_, 1), b_, 1);
  Instantiate();
  ReplayAndEvict(1);
  CUgraph other = nullptr;
  ASSERT_EQ(cuGraphCreate(&other, 0), CUDA_SUCCESS);
  AddKernel(AddBranch(other, 1), a_, 5);
  CUgraphExecUpdateResultInfo info = {};
  ASSERT_EQ(cuGraphExecUpdate(step_, other, &info), CUDA_SUCCESS);
  ReplayAndEvict(2);
  EXPECT_TRUE(IsAll(a_, kBytes, 10));
  EXPECT_TRUE(IsAll(b_, kBytes, 1));
}

TEST_F(GraphBodiesTest, AllMemoryIsResidentForABodyThatIsUnknown) {
  AddKernel(AddUnseenBranch(graph_), a_, 5);
  Instantiate();
  ReplayAndEvict(3);
  EXPECT_TRUE(IsAll(a_, kBytes, 15));
}

TEST_F(GraphBodiesTest, AnUnknownBodyWritesMemoryThatACopyReads) {
  AddCopy(graph_, b_, a_);
  AddKernel(AddUnseenBranch(graph_), a_, 5);
  Instantiate();
  ReplayAndEvict(3);
  EXPECT_TRUE(IsAll(a_, kBytes, 15));
}

// The handles of its nodes may come back.
TEST_F(GraphBodiesTest, BodiesOfADestroyedGraphAreForgotten) {
  for (int i = 0; i < 8; ++i) {
    CUgraph gone = nullptr;
    ASSERT_EQ(cuGraphCreate(&gone, 0), CUDA_SUCCESS);
    AddKernel(AddBranch(gone, 1), b_, 1);
    if (i % 2 == 1) {
      ASSERT_EQ(cuGraphDestroyNode(branch_), CUDA_SUCCESS);
    }
    ASSERT_EQ(cuGraphDestroy(gone), CUDA_SUCCESS);
  }
  AddKernel(AddUnseenBranch(graph_), a_, 5);
  Instantiate();
  ReplayAndEvict(3);
  EXPECT_TRUE(IsAll(a_, kBytes, 15));
}

class ParkedGraphBodiesTest : public GraphBodiesTest {
 protected:
  void SetUp() override {
    setenv("SPILLWAY_PARK", "auto", 1);
    GraphBodiesTest::SetUp();
  }
};

// A kept a clean host copy, because only the body wrote it.
TEST_F(ParkedGraphBodiesTest, WhatABodyWritesIsKeptWhereTheProgramOnlyReads) {
  AddKernel(AddBranch(graph_, 1), a_, 5);
  Instantiate();
  for (std::uint32_t i = 0; i < 3; ++i) {
    EvictEarlierMemory();
    EXPECT_TRUE(IsAll(a_, kBytes, 5 * i));
    Replay();
  }
  EvictEarlierMemory();
  EXPECT_TRUE(IsAll(a_, kBytes, 15));
}

TEST_F(ParkedGraphBodiesTest, WhatAnUnknownBodyWritesIsKeptWhereTheProgramOnlyReads) {
  AddKernel(AddUnseenBranch(graph_), a_, 5);
  Instantiate();
  for (std::uint32_t i = 0; i < 3; ++i) {
    EvictEarlierMemory();
    EXPECT_TRUE(IsAll(a_, kBytes, 5 * i));
    Replay();
  }
  EvictEarlierMemory();
  EXPECT_TRUE(IsAll(a_, kBytes, 15));
}

TEST_F(ParkedGraphBodiesTest, AnUnknownBodyUsesMoreMemoryThanTheBudget) {
  const auto more = FilledBuffers(8, kBytes);
  const CUgraph body = AddUnseenBranch(graph_);
  AddKernel(body, a_, 5);
  for (const CUdeviceptr one : more) AddKernel(body, one, 1);
  Instantiate();
  ReplayAndEvict(2);
  EXPECT_TRUE(IsAll(a_, kBytes, 10));
  for (size_t i = 0; i < more.size(); ++i)
    EXPECT_TRUE(IsAll(more[i], kBytes, static_cast<std::uint32_t>(i + 2)));
}

}  // namespace
}  // namespace spillway::regressions
