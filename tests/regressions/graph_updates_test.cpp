// Disabled nodes of an executable graph stay disabled after an update, and are still identified by
// the first graph's nodes. The other graph's set node counted as enabled: memory that "it
// overwrites whole" was restored without its bytes.
#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

constexpr size_t kBytes = 8 * kMiB;
constexpr int kOthers = 12;  // 96 MiB beside the buffer, of a budget of 64

// A launch whose memory is missing faults at once.
class GraphUpdatesTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    setenv("SPILLWAY_PARK", "off", 1);
    Start();
    buffer_ = Filled(kBytes, 8);
    others_ = FilledBuffers(kOthers, kBytes);
  }
  CUgraph GraphThatSets(std::uint32_t value, CUgraphNode* node) const {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    CUDA_MEMSET_NODE_PARAMS set = {};
    set.dst = buffer_;
    set.value = value;
    set.elementSize = 4;
    set.width = kBytes / 4;
    set.height = 1;
    EXPECT_EQ(cuGraphAddMemsetNode(node, graph, nullptr, 0, &set, context_), CUDA_SUCCESS);
    return graph;
  }
  void Instantiate() {
    EXPECT_EQ(cuGraphInstantiateWithFlags(&executable_, GraphThatSets(1, &node_), 0), CUDA_SUCCESS);
  }
  void Switch(bool on) { EXPECT_EQ(cuGraphNodeSetEnabled(executable_, node_, on), CUDA_SUCCESS); }
  void Update() {
    CUgraphNode other = nullptr;
    CUgraphExecUpdateResultInfo info = {};
    EXPECT_EQ(cuGraphExecUpdate(executable_, GraphThatSets(2, &other), &info), CUDA_SUCCESS);
  }
  void LaunchWithEvictedBuffer() {
    for (CUdeviceptr other : others_) EXPECT_EQ(cuMemsetD32(other, 5, kBytes / 4), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(executable_, nullptr), CUDA_SUCCESS);
  }

  CUgraphExec executable_ = nullptr;
  CUgraphNode node_ = nullptr;
  CUdeviceptr buffer_ = 0;
  std::vector<CUdeviceptr> others_;
};

TEST_F(GraphUpdatesTest, DisabledNodeStaysDisabledAcrossAnUpdate) {
  Instantiate();
  Switch(false);
  Update();
  LaunchWithEvictedBuffer();
  EXPECT_TRUE(IsAll(buffer_, kBytes, 8));
}

TEST_F(GraphUpdatesTest, NodeIsDisabledAfterAnUpdate) {
  Instantiate();
  Update();
  Switch(false);
  LaunchWithEvictedBuffer();
  EXPECT_TRUE(IsAll(buffer_, kBytes, 8));
}

TEST_F(GraphUpdatesTest, ReenabledNodeUsesTheUpdatedParameters) {
  Instantiate();
  Switch(false);
  Update();
  Switch(true);
  LaunchWithEvictedBuffer();
  EXPECT_TRUE(IsAll(buffer_, kBytes, 2));
}

}  // namespace
}  // namespace spillway::regressions
