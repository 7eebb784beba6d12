// A graph's effect on memory is the union over its nodes, but the claims of its copies and sets
// were applied to the whole launch. Memory that a kernel wrote was dropped as unchanged, because a
// copy node read it. Memory that a kernel read was restored without its bytes, because a later node
// overwrote it.
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
  const auto* const from = *static_cast<const std::uint32_t* const*>(arguments[1]);
  const auto value = *static_cast<const std::uint32_t*>(arguments[2]);
  for (std::uint64_t i = 0; i < kWords; ++i) to[i] += (from ? from[i] : 0) + value;
}
constexpr KernelParameter kAddParameters[] = {{0, 8}, {8, 8}, {16, 4}};
SPILLWAY_ONE_KERNEL(kAddImage, "add", AddBody, nullptr, 3, kAddParameters);

// Ways in which programs get an executable graph.
enum class Way { kAsItIs, kCloned, kNested, kUpdated };
std::string NameOf(const testing::TestParamInfo<Way>& info) {
  static const char* const names[] = {"AsItIs", "Cloned", "Nested", "Updated"};
  return names[static_cast<int>(info.param)];
}

// A launch whose memory is missing faults, instead of just being slow.
class GraphRolesTest : public JobTest, public testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    setenv("SPILLWAY_PARK", "off", 1);
    Start();
    add_ = Kernel(&kAddImage, "add");
    ASSERT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphCreate(&graph_, 0), CUDA_SUCCESS);
    a_ = Filled(kBytes, 0);
    b_ = Filled(kBytes, 0);
    c_ = Filled(kBytes, 3);
  }
  void TearDown() override {
    EXPECT_EQ(Statistics("unmapped_while_in_use"), 0u);
    EXPECT_EQ(Statistics("illegal_accesses"), 0u);
    EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
  }

  struct KernelNode {
    CUdeviceptr to, from;
    std::uint32_t value;
    void* pointers[3] = {&to, &from, &value};
    CUDA_KERNEL_NODE_PARAMS Params(CUfunction add) {
      CUDA_KERNEL_NODE_PARAMS params = {};
      params.func = add;
      params.gridDimX = params.gridDimY = params.gridDimZ = 1;
      params.blockDimX = params.blockDimY = params.blockDimZ = 1;
      params.kernelParams = pointers;
      return params;
    }
  };
  CUgraphNode AddKernel(CUdeviceptr to, CUdeviceptr from, std::uint32_t value) {
    KernelNode kernel{to, from, value};
    const auto params = kernel.Params(add_);
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddKernelNode(&node, graph_, After(), Count(), &params), CUDA_SUCCESS);
    return last_ = node;
  }
  static CUDA_MEMCPY3D CopyParams(CUdeviceptr to, CUdeviceptr from, const void* host_from = nullptr,
                                  void* host_to = nullptr, size_t bytes = kBytes) {
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = host_from ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.srcHost = host_from;
    copy.srcDevice = from;
    copy.dstMemoryType = host_to ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.dstHost = host_to;
    copy.dstDevice = to;
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
    return copy;
  }
  CUgraphNode AddCopy(const CUDA_MEMCPY3D& copy) {
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddMemcpyNode(&node, graph_, After(), Count(), &copy, context_), CUDA_SUCCESS);
    return last_ = node;
  }
  CUgraphNode AddSet(CUdeviceptr to, unsigned int word) {
    const CUDA_MEMSET_NODE_PARAMS set = {to, 0, word, 4, kWords, 1};
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddMemsetNode(&node, graph_, After(), Count(), &set, context_), CUDA_SUCCESS);
    return last_ = node;
  }
  CUgraphNode AddWordWrite(CUdeviceptr to, cuuint32_t word) {
    CUstreamBatchMemOpParams write = {};
    write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.writeValue.address = to;
    write.writeValue.value = word;
    const CUDA_BATCH_MEM_OP_NODE_PARAMS writes = {context_, 1, &write, 0};
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddBatchMemOpNode(&node, graph_, After(), Count(), &writes), CUDA_SUCCESS);
    return last_ = node;
  }

  void Instantiate() {
    CUgraph made = graph_;
    if (GetParam() == Way::kCloned) {
      ASSERT_EQ(cuGraphClone(&made, graph_), CUDA_SUCCESS);
    }
    if (GetParam() == Way::kNested) {
      ASSERT_EQ(cuGraphCreate(&made, 0), CUDA_SUCCESS);
      CUgraphNode node = nullptr;
      ASSERT_EQ(cuGraphAddChildGraphNode(&node, made, nullptr, 0, graph_), CUDA_SUCCESS);
    }
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphInstantiate(&step_, made, 0), CUDA_SUCCESS);
    if (GetParam() != Way::kUpdated) return;
    CUgraphExecUpdateResultInfo info = {};
    ASSERT_EQ(cuGraphExecUpdate(step_, made, &info), CUDA_SUCCESS);
  }
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
  CUgraphNode last_ = nullptr;
  CUdeviceptr a_ = 0, b_ = 0, c_ = 0;

 private:
  const CUgraphNode* After() const { return last_ ? &last_ : nullptr; }
  size_t Count() const { return last_ ? 1 : 0; }
};

// A ended as 5 instead of 60.
TEST_P(GraphRolesTest, BufferWrittenByAKernelAndReadByACopyKeepsItsBytes) {
  AddKernel(a_, 0, 5);
  AddCopy(CopyParams(b_, a_));
  Instantiate();
  ReplayAndEvict(12);
  EXPECT_TRUE(IsAll(a_, kBytes, 60));
  EXPECT_TRUE(IsAll(b_, kBytes, 60));
}

TEST_P(GraphRolesTest, BufferWrittenByAKernelAfterACopyReadsItKeepsItsBytes) {
  AddCopy(CopyParams(b_, a_));
  AddKernel(a_, 0, 5);
  Instantiate();
  ReplayAndEvict(12);
  EXPECT_TRUE(IsAll(a_, kBytes, 60));
  EXPECT_TRUE(IsAll(b_, kBytes, 55));
}

TEST_P(GraphRolesTest, WordsWrittenByABatchStayWrittenBesideACopyThatReadsThem) {
  AddCopy(CopyParams(b_, a_));
  AddWordWrite(a_ + 64, 7);
  Instantiate();
  ReplayAndEvict(2);
  EXPECT_TRUE(IsAll(a_ + 64, 4, 7));
  EXPECT_TRUE(IsAll(b_ + 64, 4, 7));
}

// The kernel before the set read arbitrary bytes.
TEST_P(GraphRolesTest, BufferReadByAKernelBeforeASetIsRestored) {
  AddKernel(a_, c_, 0);
  AddSet(c_, 10);
  Instantiate();
  ReplayAndEvict(3);
  EXPECT_TRUE(IsAll(a_, kBytes, 23));
  EXPECT_TRUE(IsAll(c_, kBytes, 10));
}

TEST_P(GraphRolesTest, BufferReadByAKernelBeforeACopyFromTheHostIsRestored) {
  const std::vector<std::uint32_t> words(kWords, 10);
  AddKernel(a_, c_, 0);
  AddCopy(CopyParams(c_, 0, words.data()));
  Instantiate();
  ReplayAndEvict(3);
  EXPECT_TRUE(IsAll(a_, kBytes, 23));
  EXPECT_TRUE(IsAll(c_, kBytes, 10));
}

TEST_P(GraphRolesTest, BufferReadByACopyToTheHostBeforeASetIsRestored) {
  std::vector<std::uint32_t> words(kWords, 1);
  AddCopy(CopyParams(0, c_, nullptr, words.data()));
  AddSet(c_, 10);
  Instantiate();
  ReplayAndEvict(1);
  EXPECT_EQ(words, std::vector<std::uint32_t>(kWords, 3));
  EXPECT_TRUE(IsAll(c_, kBytes, 10));
}

TEST_P(GraphRolesTest, BatchWritesAndASetOfTheWholeBufferBothTakeEffect) {
  AddSet(c_, 10);
  AddWordWrite(c_ + 64, 7);
  Instantiate();
  ReplayAndEvict(2);
  EXPECT_TRUE(IsAll(c_, 64, 10));
  EXPECT_TRUE(IsAll(c_ + 64, 4, 7));
  EXPECT_TRUE(IsAll(c_ + 68, kBytes - 68, 10));
}

INSTANTIATE_TEST_SUITE_P(Ways, GraphRolesTest,
                         testing::Values(Way::kAsItIs, Way::kCloned, Way::kNested, Way::kUpdated),
                         NameOf);

class ChangedGraphRolesTest : public GraphRolesTest {};

// The kernel used other memory when the graph was instantiated.
TEST_P(ChangedGraphRolesTest, ChangedKernelWritesABufferThatACopyReads) {
  const CUgraphNode kernel = AddKernel(c_, 0, 1);
  AddCopy(CopyParams(b_, a_));
  Instantiate();
  ReplayAndEvict(1);
  KernelNode other{a_, 0, 5};
  const auto params = other.Params(add_);
  ASSERT_EQ(cuGraphExecKernelNodeSetParams(step_, kernel, &params), CUDA_SUCCESS);
  ReplayAndEvict(3);
  EXPECT_TRUE(IsAll(a_, kBytes, 15));
  EXPECT_TRUE(IsAll(b_, kBytes, 15));
  EXPECT_TRUE(IsAll(c_, kBytes, 4));
}

TEST_P(ChangedGraphRolesTest, ChangedSetOverwritesABufferThatAKernelReads) {
  AddKernel(a_, c_, 0);
  const CUgraphNode set = AddSet(b_, 10);
  Instantiate();
  ReplayAndEvict(1);
  const CUDA_MEMSET_NODE_PARAMS other = {c_, 0, 10, 4, kWords, 1};
  ASSERT_EQ(cuGraphExecMemsetNodeSetParams(step_, set, &other, context_), CUDA_SUCCESS);
  ReplayAndEvict(2);
  EXPECT_TRUE(IsAll(a_, kBytes, 3 + 3 + 10));
}

// A disabled node claims nothing.
TEST_P(ChangedGraphRolesTest, EnabledKernelWritesABufferThatACopyReads) {
  const CUgraphNode kernel = AddKernel(a_, 0, 5);
  const CUgraphNode copy = AddCopy(CopyParams(b_, a_));
  Instantiate();
  ReplayAndEvict(2);
  ASSERT_EQ(cuGraphNodeSetEnabled(step_, kernel, 0), CUDA_SUCCESS);
  ReplayAndEvict(2);
  EXPECT_TRUE(IsAll(a_, kBytes, 10));
  ASSERT_EQ(cuGraphNodeSetEnabled(step_, kernel, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphNodeSetEnabled(step_, copy, 0), CUDA_SUCCESS);
  ReplayAndEvict(2);
  EXPECT_TRUE(IsAll(a_, kBytes, 20));
  EXPECT_TRUE(IsAll(b_, kBytes, 10));
}

INSTANTIATE_TEST_SUITE_P(Changes, ChangedGraphRolesTest, testing::Values(Way::kAsItIs), NameOf);

// Memory that no node writes keeps its host copy; what only a set overwrites is not restored.
class SavedCopiesGraphRolesTest : public GraphRolesTest {};

TEST_P(SavedCopiesGraphRolesTest, MemoryThatTheGraphOnlyReadsIsEvictedWithoutACopy) {
  AddCopy(CopyParams(c_, a_));
  Instantiate();
  ReplayAndEvict(1);
  const unsigned long long before = Statistics("d2h_bytes");
  Replay();
  EvictEarlierMemory();
  EXPECT_EQ(Statistics("d2h_bytes") - before, kBytes) << "of C alone";
}

TEST_P(SavedCopiesGraphRolesTest, MemoryThatOnlyASetOverwritesIsNotRestored) {
  AddSet(a_, 4);
  Instantiate();
  EvictEarlierMemory();
  const unsigned long long before = Statistics("h2d_bytes");
  Replay();
  EXPECT_EQ(Statistics("h2d_bytes"), before);
  EXPECT_TRUE(IsAll(a_, kBytes, 4));
}

INSTANTIATE_TEST_SUITE_P(Spared, SavedCopiesGraphRolesTest, testing::Values(Way::kAsItIs), NameOf);

}  // namespace
}  // namespace spillway::regressions
