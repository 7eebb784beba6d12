// Graphs whose copies bring addresses from the host, and graphs with disabled copies.
#include <sys/mman.h>

#include <cstring>

#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {
using simulator::KernelParameter;
using simulator::LaunchShape;
// Adds one to the first words of the buffer behind the table's first pointer.
void FollowBody(const LaunchShape&, void* const* arguments) {
  auto* const* const table = *static_cast<std::uint32_t* const* const*>(arguments[0]);
  for (int i = 0; i < 1024; ++i) table[0][i] += 1;
}
constexpr KernelParameter kOne[] = {{0, 8}};
SPILLWAY_ONE_KERNEL(kFollowImage, "follow", FollowBody, nullptr, 1, kOne);

struct Fill {
  void* host = nullptr;
  CUdeviceptr next = 0;
};

class GraphPayloadsTest : public JobTest {
 protected:
  void Begin() {
    Start();
    follow_ = Kernel(&kFollowImage, "follow");
    ASSERT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }
  // 64 bytes from the host, or from elsewhere on the device.
  CUgraphNode AddCopy(CUgraph graph, CUdeviceptr to, CUdeviceptr from, const void* host) {
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = from ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    copy.srcDevice = from;
    copy.srcHost = host;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = to;
    copy.WidthInBytes = 64;
    copy.Height = copy.Depth = 1;
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, context_), CUDA_SUCCESS);
    return node;
  }
  void LaunchOnce(CUgraph graph) {
    CUgraphExec step = nullptr;
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphInstantiate(&step, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphLaunch(step, stream_), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  }
  CUgraphExec CopyThenFollow(CUdeviceptr table, const void* host, CUgraphNode* copy_node,
                             CUgraph* out = nullptr) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    if (out) *out = graph;
    *copy_node = AddCopy(graph, table, 0, host);
    CUDA_KERNEL_NODE_PARAMS params = {};
    void* pointers[] = {&table};
    params.func = follow_;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = pointers;
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddKernelNode(&node, graph, copy_node, 1, &params), CUDA_SUCCESS);
    CUgraphExec step = nullptr;
    EXPECT_EQ(cuGraphInstantiate(&step, graph, 0), CUDA_SUCCESS);
    return step;
  }
  CUfunction follow_ = nullptr;
  CUstream stream_ = nullptr;
};

// The copied bytes were scanned only after the launch.
TEST_F(GraphPayloadsTest, KernelOfAGraphFollowsAddressesThatTheGraphCopied) {
  setenv("SPILLWAY_PARK", "off", 1);
  Begin();
  const auto buffers = FilledBuffers(8, 8 * kMiB);
  const CUdeviceptr table = Filled(4 * kMiB, 0);
  void* host = nullptr;
  ASSERT_EQ(cuMemAllocHost(&host, 64), CUDA_SUCCESS);
  memset(host, 0, 64);
  CUgraphNode copy;
  const CUgraphExec step = CopyThenFollow(table, host, &copy);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  for (size_t i = 0; i < buffers.size(); ++i) {
    memcpy(host, &buffers[i], 8);
    ASSERT_EQ(cuGraphLaunch(step, stream_), CUDA_SUCCESS) << i;
    ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS) << i;
  }
  for (unsigned i = 0; i < buffers.size(); ++i) EXPECT_TRUE(IsAll(buffers[i], 4096, i + 1)) << i;
}

// The same in a job that many launches have proven harmless, so evicted memory is not parked any
// more.
TEST_F(GraphPayloadsTest, KernelOfAProvenJobsGraphFollowsCopiedAddresses) {
  Begin();
  const auto buffers = FilledBuffers(10, 8 * kMiB);
  const CUdeviceptr table = Filled(4 * kMiB, 0);
  void* host = nullptr;
  ASSERT_EQ(cuMemAllocHost(&host, 64), CUDA_SUCCESS);
  memset(host, 0, 64);
  CUgraphNode copy;
  const CUgraphExec step = CopyThenFollow(table, host, &copy);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  for (int round = 0; round < 30; ++round)
    for (size_t i = 0; i < buffers.size(); ++i) {
      memcpy(host, &buffers[i], 8);
      ASSERT_EQ(cuGraphLaunch(step, stream_), CUDA_SUCCESS) << round << " " << i;
      ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS) << round << " " << i;
    }
}

// The host memory of a disabled copy may be freed. It was read at each launch, and the program
// crashed.
TEST_F(GraphPayloadsTest, DisabledCopyIsNotScanned) {
  setenv("SPILLWAY_PARK", "off", 1);
  Begin();
  const CUdeviceptr buffer = Filled(4 * kMiB, 5);
  const CUdeviceptr table = Filled(4 * kMiB, 0);
  ASSERT_EQ(cuMemcpyHtoD(table, &buffer, 8), CUDA_SUCCESS);
  void* host = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CUgraphNode copy;
  const CUgraphExec step = CopyThenFollow(table, host, &copy);
  ASSERT_EQ(cuGraphNodeSetEnabled(step, copy, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  ASSERT_EQ(munmap(host, 4096), 0);
  ASSERT_EQ(cuGraphLaunch(step, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(buffer, 4096, 6));
}

// The nodes are created in reverse, so only the edges give the order.
TEST_F(GraphPayloadsTest, AddressesFollowChainedCopies) {
  setenv("SPILLWAY_PARK", "off", 1);
  Begin();
  const CUdeviceptr target = Filled(8 * kMiB, 5);
  const auto tables = FilledBuffers(4, 4 * kMiB);
  void* host = nullptr;
  ASSERT_EQ(cuMemAllocHost(&host, 64), CUDA_SUCCESS);
  memcpy(host, &target, 8);
  CUgraph graph = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  CUgraphNode nodes[4] = {};
  for (int i = 3; i >= 0; --i) nodes[i] = AddCopy(graph, tables[i], i ? tables[i - 1] : 0, host);
  for (int i = 1; i < 4; ++i)
    ASSERT_EQ(cuGraphAddDependencies(graph, &nodes[i - 1], &nodes[i], nullptr, 1), CUDA_SUCCESS);
  LaunchOnce(graph);

  const auto others = FilledBuffers(7, 8 * kMiB);
  for (CUdeviceptr other : others) ASSERT_EQ(cuMemFree(other), CUDA_SUCCESS);
  void* parameters[] = {const_cast<CUdeviceptr*>(&tables[3])};
  ASSERT_EQ(Launch(follow_, stream_, parameters), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);

  EXPECT_TRUE(IsAll(target, 4096, 6));
}

// The set was taken as the table's final content, though the copy came after it.
TEST_F(GraphPayloadsTest, AddressesOfACopyAfterASetAreFollowed) {
  setenv("SPILLWAY_PARK", "off", 1);
  Begin();
  const CUdeviceptr target = Filled(8 * kMiB, 5);
  const CUdeviceptr table = Filled(4 * kMiB, 0);
  void* host = nullptr;
  ASSERT_EQ(cuMemAllocHost(&host, 64), CUDA_SUCCESS);
  memcpy(host, &target, 8);
  CUgraph graph = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  CUgraphNode set = nullptr, copy = AddCopy(graph, table, 0, host);
  const CUDA_MEMSET_NODE_PARAMS clear = {table, 0, 0, 4, 1024, 1};
  ASSERT_EQ(cuGraphAddMemsetNode(&set, graph, nullptr, 0, &clear, context_), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddDependencies(graph, &set, &copy, nullptr, 1), CUDA_SUCCESS);
  LaunchOnce(graph);

  const auto others = FilledBuffers(8, 8 * kMiB);
  for (CUdeviceptr other : others) ASSERT_EQ(cuMemFree(other), CUDA_SUCCESS);
  void* parameters[] = {const_cast<CUdeviceptr*>(&table)};
  ASSERT_EQ(Launch(follow_, stream_, parameters), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);

  EXPECT_TRUE(IsAll(target, 4096, 6));
}

// A host node fills the buffer after the scan.
TEST_F(GraphPayloadsTest, PayloadThatAHostNodeFillsIsNotTrusted) {
  Begin();
  const auto buffers = FilledBuffers(10, 8 * kMiB);
  const CUdeviceptr table = Filled(4 * kMiB, 0);
  Fill fill;
  ASSERT_EQ(cuMemAllocHost(&fill.host, 64), CUDA_SUCCESS);
  memcpy(fill.host, &buffers[0], 8);
  CUgraphNode copy = nullptr, host_node = nullptr;
  CUgraph graph = nullptr;
  CopyThenFollow(table, fill.host, &copy, &graph);
  CUDA_HOST_NODE_PARAMS params = {};
  params.fn = [](void* data) {
    const auto* const fill = static_cast<Fill*>(data);
    memcpy(fill->host, &fill->next, 8);
  };
  params.userData = &fill;
  ASSERT_EQ(cuGraphAddHostNode(&host_node, graph, nullptr, 0, &params), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddDependencies(graph, &host_node, &copy, nullptr, 1), CUDA_SUCCESS);
  CUgraphExec step = nullptr;
  ASSERT_EQ(cuGraphInstantiate(&step, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);

  for (int round = 0; round < 30; ++round) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      fill.next = buffers[i];
      ASSERT_EQ(cuGraphLaunch(step, stream_), CUDA_SUCCESS) << round << " " << i;
      ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS) << round << " " << i;
    }
  }

  for (unsigned i = 0; i < buffers.size(); ++i) EXPECT_TRUE(IsAll(buffers[i], 4096, i + 30)) << i;
}

// After a module was unloaded, the memory behind its variable was still restored for every launch.
TEST_F(GraphPayloadsTest, VariableOfAnUnloadedModuleLeadsNowhere) {
  setenv("SPILLWAY_PARK", "off", 1);
  Begin();
  static std::uint64_t place = 0;
  static const simulator::GlobalEntry kGlobal[] = {{"held", &place, sizeof place}};
  static const simulator::Image kImage = {
      {'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 0, nullptr, 1, kGlobal};
  const auto buffers = FilledBuffers(10, 8 * kMiB);
  CUmodule module = nullptr;
  CUdeviceptr global = 0;
  ASSERT_EQ(cuModuleLoadData(&module, &kImage), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetGlobal(&global, nullptr, module, "held"), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyHtoD(global, &buffers[0], 8), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyHtoD(buffers[8], &buffers[9], 8), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  const auto before = Statistics("h2d_bytes");

  void* parameters[] = {const_cast<CUdeviceptr*>(&buffers[8])};
  ASSERT_EQ(Launch(follow_, stream_, parameters), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);

  EXPECT_EQ(Statistics("h2d_bytes"), before);
}
}  // namespace
}  // namespace spillway::regressions
