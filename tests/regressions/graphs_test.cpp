// A graph's memory moves between its launches and is resident for each, under a small budget.
#include <atomic>
#include <thread>

#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

using simulator::KernelCost;
using simulator::KernelParameter;
using simulator::LaunchShape;

void AddBody(const LaunchShape&, void* const* arguments) {
  auto* const words = *static_cast<std::uint32_t* const*>(arguments[0]);
  const auto value = *static_cast<const std::uint32_t*>(arguments[1]);
  const auto count = *static_cast<const std::uint64_t*>(arguments[2]);
  for (std::uint64_t i = 0; i < count; ++i) words[i] += value;
}
// About a millisecond of a GPU, so work is in flight while the program continues.
KernelCost AddCost(const LaunchShape&, void* const*) { return {20'000'000'000, 0}; }
constexpr KernelParameter kAddParameters[] = {{0, 8}, {8, 4}, {16, 8}};
SPILLWAY_ONE_KERNEL(kAddImage, "add", AddBody, AddCost, 3, kAddParameters);

constexpr size_t kBytes = 8 * kMiB;
constexpr std::uint64_t kWords = kBytes / 4;

// A launch whose memory is missing faults, instead of just being slow.
class GraphsTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    setenv("SPILLWAY_PARK", "off", 1);
  }
  void Begin() {
    Start();
    add_ = Kernel(&kAddImage, "add");
    ASSERT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }

  // FilledBuffers fills in the legacy stream, for which the other streams do not wait.
  static std::vector<CUdeviceptr> ReadyBuffers(int count) {
    const auto buffers = FilledBuffers(count, kBytes);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    return buffers;
  }

  void Add(CUdeviceptr words, std::uint32_t value, CUstream stream) {
    std::uint64_t count = kWords;
    void* parameters[] = {&words, &value, &count};
    EXPECT_EQ(Launch(add_, stream, parameters), CUDA_SUCCESS);
  }

  template <class Body>
  CUgraph Captured(Body body, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamBeginCapture(stream_, mode), CUDA_SUCCESS);
    body();
    EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
    return graph;
  }
  static CUgraphExec Instantiated(CUgraph graph) {
    CUgraphExec executable = nullptr;
    EXPECT_EQ(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
    return executable;
  }
  void Replay(CUgraphExec executable) {
    EXPECT_EQ(cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  }
  static void EvictEarlierMemory() {
    const auto others = FilledBuffers(8, kBytes);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    for (const CUdeviceptr other : others) EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);
  }
  CUgraphNode AddNode(CUgraph graph, CUdeviceptr words, std::uint32_t value,
                      std::vector<CUgraphNode> after = {}) {
    CUgraphNode node = nullptr;
    const auto params = KernelParams(words, value);
    EXPECT_EQ(cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &params),
              CUDA_SUCCESS);
    return node;
  }
  CUDA_KERNEL_NODE_PARAMS KernelParams(CUdeviceptr words, std::uint32_t value) {
    words_ = words;
    value_ = value;
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = add_;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = pointers_;
    return params;
  }
  static CUDA_MEMCPY3D CopyParams(CUdeviceptr to, CUdeviceptr from) {
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.dstDevice = to;
    copy.WidthInBytes = kBytes;
    copy.Height = copy.Depth = 1;
    return copy;
  }
  static CUgraph EmptyGraph() {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    return graph;
  }
  void TearDown() override {
    EXPECT_EQ(Statistics("unmapped_while_in_use"), 0u);
    EXPECT_EQ(Statistics("illegal_accesses"), 0u);
  }

  CUfunction add_ = nullptr;
  CUstream stream_ = nullptr;

 private:
  CUdeviceptr words_ = 0;
  std::uint32_t value_ = 0;
  std::uint64_t count_ = kWords;
  void* pointers_[3] = {&words_, &value_, &count_};
};

// Captured memory stayed for ever, so the second graph's buffers did not fit.
TEST_F(GraphsTest, GraphsThatTogetherExceedTheBudgetTakeTurns) {
  Begin();
  const auto buffers = ReadyBuffers(15);
  std::vector<CUgraphExec> steps;
  for (size_t first = 0; first < 15; first += 5) {
    steps.push_back(Instantiated(Captured([&] {
      for (size_t i = first; i < first + 5; ++i) Add(buffers[i], 100, stream_);
    })));
  }
  for (int iteration = 0; iteration < 4; ++iteration) {
    for (const CUgraphExec step : steps) ASSERT_EQ(cuGraphLaunch(step, stream_), CUDA_SUCCESS);
  }
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  for (size_t i = 0; i < 15; ++i)
    EXPECT_TRUE(IsAll(buffers[i], kBytes, 400 + static_cast<unsigned>(i))) << i;
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
}

// Allocations meanwhile take other memory.
TEST_F(GraphsTest, LaunchInFlightKeepsItsMemory) {
  Begin();
  const auto buffers = ReadyBuffers(4);
  const CUgraphExec step = Instantiated(Captured([&] {
    for (int round = 0; round < 8; ++round) {
      for (const CUdeviceptr buffer : buffers) Add(buffer, 10, stream_);
    }
  }));
  ASSERT_EQ(cuGraphLaunch(step, stream_), CUDA_SUCCESS);
  EvictEarlierMemory();
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(IsAll(buffers[i], kBytes, 80 + static_cast<unsigned>(i)));
}

TEST_F(GraphsTest, BuffersOfACaptureAreEvictedAndRestoredForTheLaunch) {
  Begin();
  const auto buffers = ReadyBuffers(2);
  const CUgraph graph = Captured([&] {
    Add(buffers[0], 5, stream_);
    EXPECT_EQ(cuMemcpyDtoDAsync(buffers[1], buffers[0], kBytes, stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD32Async(buffers[0], 77, kWords, stream_), CUDA_SUCCESS);
  });
  EvictEarlierMemory();
  const CUgraphExec step = Instantiated(graph);
  ASSERT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  EvictEarlierMemory();
  Replay(step);
  EXPECT_TRUE(IsAll(buffers[0], kBytes, 77));
  EXPECT_TRUE(IsAll(buffers[1], kBytes, 5));
  EvictEarlierMemory();
  Replay(step);
  EXPECT_TRUE(IsAll(buffers[1], kBytes, 82));
  ASSERT_EQ(cuGraphExecDestroy(step), CUDA_SUCCESS);
}

// Peers' case T18 (torch_memory_saver#88, sglang#40648 and U37 of reference/peers.md). Allocating,
// freeing and querying during a capture synchronise nothing, and a graph's buffers keep their bytes
// until it is destroyed.
TEST_F(GraphsTest, PeersT18CaptureWithAllocationsFreesAndQueries) {
  Begin();
  const auto buffers = ReadyBuffers(6);
  const CUdeviceptr scratch = Allocated(kBytes);
  CUdeviceptr fresh = 0;
  const CUgraph graph = Captured([&] {
    size_t free_bytes = 0, total_bytes = 0;
    EXPECT_EQ(cuMemGetInfo(&free_bytes, &total_bytes), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc(&fresh, kBytes), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(scratch), CUDA_SUCCESS);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_EQ(cuStreamIsCapturing(stream_, &status), CUDA_SUCCESS);
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_EQ(cuMemsetD32Async(fresh, 9, kWords, stream_), CUDA_SUCCESS);
    for (const CUdeviceptr buffer : buffers) Add(buffer, 1, stream_);
  });
  const CUgraphExec step = Instantiated(graph);
  EvictEarlierMemory();
  Replay(step);
  EvictEarlierMemory();
  for (size_t i = 0; i < 6; ++i)
    EXPECT_TRUE(IsAll(buffers[i], kBytes, 1 + static_cast<unsigned>(i)));
  EXPECT_TRUE(IsAll(fresh, kBytes, 9));
  ASSERT_EQ(cuGraphExecDestroy(step), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

// Memory freed during a capture served no other allocation, and the job finally ran out of memory.
TEST_F(GraphsTest, MemoryFreedDuringACaptureIsUsedAgain) {
  SetSize("SPILLWAY_HOST_LIMIT", 64 * kMiB);
  Begin();
  const auto buffers = ReadyBuffers(2);
  for (int i = 0; i < 20; ++i) {
    CUdeviceptr other = 0;
    const CUgraph graph = Captured(
        [&] {
          Add(buffers[0], 1, stream_);
          EXPECT_EQ(cuMemAlloc(&other, 32 * kMiB), CUDA_SUCCESS) << i;
          EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);
        },
        CU_STREAM_CAPTURE_MODE_RELAXED);
    ASSERT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  }
  EXPECT_TRUE(IsAll(buffers[1], kBytes, 1));
}

// While one thread captures, another one uses more memory than the budget: its evictions continue.
TEST_F(GraphsTest, OtherThreadsEvictWhileOneCaptures) {
  Begin();
  const auto buffers = ReadyBuffers(4);
  std::atomic<bool> capturing{false}, done{false};
  std::thread other([&] {
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    CUstream own = nullptr;
    ASSERT_EQ(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    std::vector<CUdeviceptr> mine;
    for (int i = 0; i < 10; ++i) mine.push_back(Allocated(kBytes));
    while (!capturing) std::this_thread::yield();
    for (int round = 0; round < 3; ++round) {
      for (const CUdeviceptr buffer : mine) {
        ASSERT_EQ(cuMemsetD32Async(buffer, 3, kWords, own), CUDA_SUCCESS);
        Add(buffer, 4, own);
      }
    }
    ASSERT_EQ(cuStreamSynchronize(own), CUDA_SUCCESS);
    for (const CUdeviceptr buffer : mine) ASSERT_EQ(cuMemFreeAsync(buffer, own), CUDA_SUCCESS);
    done = true;
  });
  const CUgraph graph = Captured(
      [&] {
        capturing = true;
        while (!done) {
          for (const CUdeviceptr buffer : buffers) Add(buffer, 1, stream_);
          std::this_thread::yield();
          if (done) break;
        }
        Add(buffers[0], 1000, stream_);
      },
      CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  other.join();
  size_t nodes = 0;
  ASSERT_EQ(cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
  ASSERT_EQ(nodes % 4, 1u);  // nothing of Spillway's or the other thread's is in the graph
}

// A stream with work in flight joins a capture, and then its memory is needed. No event may be
// recorded on it any more.
TEST_F(GraphsTest, WorkOfAStreamThatJoinedACaptureIsAwaited) {
  Begin();
  const auto buffers = ReadyBuffers(3);
  CUstream side = nullptr;
  ASSERT_EQ(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  CUevent fork = nullptr, join = nullptr;
  ASSERT_EQ(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  const CUgraph graph = Captured(
      [&] {
        Add(buffers[2], 10, side);  // after the capture began, before the stream joins it
        EXPECT_EQ(cuEventRecord(fork, stream_), CUDA_SUCCESS);
        EXPECT_EQ(cuStreamWaitEvent(side, fork, 0), CUDA_SUCCESS);
        Add(buffers[0], 1, side);
        const auto others = FilledBuffers(8, kBytes);
        for (const CUdeviceptr other : others) EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);
        EXPECT_EQ(cuEventRecord(join, side), CUDA_SUCCESS);
        EXPECT_EQ(cuStreamWaitEvent(stream_, join, 0), CUDA_SUCCESS);
      },
      CU_STREAM_CAPTURE_MODE_RELAXED);
  Replay(Instantiated(graph));
  EXPECT_TRUE(IsAll(buffers[0], kBytes, 1));
  EXPECT_TRUE(IsAll(buffers[2], kBytes, 12));
}

TEST_F(GraphsTest, UpdatedGraphNamesOtherMemory) {
  Begin();
  const auto buffers = ReadyBuffers(12);
  const auto captured = [&](size_t first) {
    return Captured([&] {
      for (size_t i = first; i < first + 4; ++i) Add(buffers[i], 50, stream_);
    });
  };
  const CUgraphExec step = Instantiated(captured(0));
  Replay(step);
  for (size_t first : {4, 8, 0}) {
    CUgraphExecUpdateResultInfo info = {};
    const CUgraph graph = captured(first);
    EvictEarlierMemory();
    ASSERT_EQ(cuGraphExecUpdate(step, graph, &info), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    EvictEarlierMemory();
    Replay(step);
  }
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_TRUE(IsAll(buffers[i], kBytes, (i < 4 ? 100u : 50u) + static_cast<unsigned>(i))) << i;
  }
}

TEST_F(GraphsTest, NodesAreCreatedAndChangedForEvictedMemory) {
  Begin();
  const auto buffers = ReadyBuffers(6);
  EvictEarlierMemory();
  const CUgraph graph = EmptyGraph();
  CUgraphNode copy = nullptr, set = nullptr, batch = nullptr;
  const CUDA_MEMCPY3D first_copy = CopyParams(buffers[1], buffers[0]);
  ASSERT_EQ(cuGraphAddMemcpyNode(&copy, graph, nullptr, 0, &first_copy, context_), CUDA_SUCCESS);
  const CUDA_MEMSET_NODE_PARAMS first_set = {buffers[2], 0, 21, 4, kWords, 1};
  ASSERT_EQ(cuGraphAddMemsetNode(&set, graph, nullptr, 0, &first_set, context_), CUDA_SUCCESS);
  CUstreamBatchMemOpParams write = {};
  write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  write.writeValue.address = buffers[2];
  write.writeValue.value = 22;
  CUDA_BATCH_MEM_OP_NODE_PARAMS writes = {context_, 1, &write, 0};
  ASSERT_EQ(cuGraphAddBatchMemOpNode(&batch, graph, &set, 1, &writes), CUDA_SUCCESS);
  const CUgraphNode kernel = AddNode(graph, buffers[1], 1000, {copy});
  const CUgraphExec step = Instantiated(graph);
  EvictEarlierMemory();
  Replay(step);
  EXPECT_TRUE(IsAll(buffers[1], kBytes, 1000));
  EXPECT_TRUE(IsAll(buffers[2], 4, 22));
  EXPECT_TRUE(IsAll(buffers[2] + 4, kBytes - 4, 21));
  EvictEarlierMemory();
  const CUDA_MEMCPY3D other_copy = CopyParams(buffers[3], buffers[2]);
  ASSERT_EQ(cuGraphExecMemcpyNodeSetParams(step, copy, &other_copy, context_), CUDA_SUCCESS);
  const CUDA_MEMSET_NODE_PARAMS other_set = {buffers[4], 0, 23, 4, kWords, 1};
  ASSERT_EQ(cuGraphExecMemsetNodeSetParams(step, set, &other_set, context_), CUDA_SUCCESS);
  write.writeValue.address = buffers[4] + 8;
  ASSERT_EQ(cuGraphExecBatchMemOpNodeSetParams(step, batch, &writes), CUDA_SUCCESS);
  const auto other_kernel = KernelParams(buffers[5], 7);
  ASSERT_EQ(cuGraphExecKernelNodeSetParams(step, kernel, &other_kernel), CUDA_SUCCESS);
  EvictEarlierMemory();
  Replay(step);
  EXPECT_TRUE(IsAll(buffers[3] + 4, kBytes - 4, 21));
  EXPECT_TRUE(IsAll(buffers[4], 8, 23));
  EXPECT_TRUE(IsAll(buffers[4] + 8, 4, 22));
  EXPECT_TRUE(IsAll(buffers[5], kBytes, 12));
}

TEST_F(GraphsTest, ChildrenAndClonesNameTheirMemory) {
  Begin();
  const auto buffers = ReadyBuffers(3);
  const CUgraph child = EmptyGraph();
  AddNode(child, buffers[0], 5);
  const CUgraph parent = EmptyGraph();
  CUgraphNode nested = nullptr;
  ASSERT_EQ(cuGraphAddChildGraphNode(&nested, parent, nullptr, 0, child), CUDA_SUCCESS);
  AddNode(parent, buffers[1], 6, {nested});
  CUgraph clone = nullptr;
  ASSERT_EQ(cuGraphClone(&clone, parent), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphDestroy(parent), CUDA_SUCCESS);
  const CUgraphExec step = Instantiated(clone);
  EvictEarlierMemory();
  Replay(step);
  EXPECT_TRUE(IsAll(buffers[0], kBytes, 5));
  EXPECT_TRUE(IsAll(buffers[1], kBytes, 7));
  const CUgraph other = EmptyGraph();
  AddNode(other, buffers[2], 8);
  CUgraphNode twin = nullptr;
  size_t count = 1;
  ASSERT_EQ(cuGraphGetRootNodes(clone, &twin, &count), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphExecChildGraphNodeSetParams(step, twin, other), CUDA_SUCCESS);
  EvictEarlierMemory();
  Replay(step);
  EXPECT_TRUE(IsAll(buffers[2], kBytes, 10));
}

TEST_F(GraphsTest, MemoryNodesCountAgainstTheBudget) {
  Begin();
  const auto buffers = ReadyBuffers(6);
  CUdeviceptr scratch = 0;
  const CUgraph graph = Captured([&] {
    EXPECT_EQ(cuMemAllocAsync(&scratch, 32 * kMiB, stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD32Async(scratch, 40, 8 * kMiB, stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoDAsync(buffers[0], scratch, kBytes, stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(scratch, stream_), CUDA_SUCCESS);
  });
  const CUgraphExec step = Instantiated(graph);
  for (int i = 0; i < 3; ++i) {
    Replay(step);
    for (size_t b = 1; b < 6; ++b) Add(buffers[b], 1, stream_);
  }
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(buffers[0], kBytes, 40));
  for (size_t b = 1; b < 6; ++b)
    EXPECT_TRUE(IsAll(buffers[b], kBytes, 3 + static_cast<unsigned>(b)));
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
  // A call can use the whole budget again.
  ASSERT_EQ(cuGraphExecDestroy(step), CUDA_SUCCESS);
  const CUdeviceptr large = Allocated(60 * kMiB);
  EXPECT_EQ(cuMemsetD8(large, 1, 60 * kMiB), CUDA_SUCCESS);
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
}

TEST_F(GraphsTest, MemoryNodesBeyondTheBudgetAreRefused) {
  Begin();
  const auto buffers = ReadyBuffers(2);
  CUdeviceptr scratch = 0;
  const CUgraph graph = Captured([&] {
    EXPECT_EQ(cuMemAllocAsync(&scratch, 80 * kMiB, stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFreeAsync(scratch, stream_), CUDA_SUCCESS);
  });
  CUgraphExec step = nullptr;
  EXPECT_EQ(cuGraphInstantiate(&step, graph, 0), CUDA_ERROR_OUT_OF_MEMORY);
  Add(buffers[0], 1, stream_);
  EXPECT_TRUE(IsAll(buffers[1], kBytes, 1));
}

// One launch needs all its memory at once.
TEST_F(GraphsTest, GraphBeyondTheBudgetIsRefusedAndTheJobContinues) {
  Begin();
  const auto buffers = ReadyBuffers(10);
  const CUgraphExec step = Instantiated(Captured([&] {
    for (const CUdeviceptr buffer : buffers) Add(buffer, 1, stream_);
  }));
  EXPECT_EQ(cuGraphLaunch(step, stream_), CUDA_ERROR_OUT_OF_MEMORY);
  for (size_t i = 0; i < 10; ++i) EXPECT_TRUE(IsAll(buffers[i], kBytes, static_cast<unsigned>(i)));
}

// A freed address among a graph's parameters is harmless while no kernel follows it.
TEST_F(GraphsTest, GraphThatCarriesAFreedAddressLaunches) {
  Begin();
  const auto buffers = ReadyBuffers(2);
  const CUgraph graph = EmptyGraph();
  const CUgraphNode used = AddNode(graph, buffers[0], 4);
  const CUgraphNode carried = AddNode(graph, buffers[1], 4, {used});
  const CUgraphExec step = Instantiated(graph);
  ASSERT_EQ(cuGraphNodeSetEnabled(step, carried, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(buffers[1]), CUDA_SUCCESS);
  Replay(step);
  EXPECT_TRUE(IsAll(buffers[0], kBytes, 4));
}

// The capture of a destroyed stream counted for ever, and during a capture a free does not wait for
// earlier work.
TEST_F(GraphsTest, CaptureOfADestroyedStreamIsOver) {
  setenv("SPILLWAY_PARK", "host", 1);
  Start();
  CUstream capturing, working;
  ASSERT_EQ(cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&working, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const auto buffers = FilledBuffers(10, 8 * kMiB);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(capturing, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy(capturing), CUDA_SUCCESS);

  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(cuMemsetD32Async(buffers[9], 3, 2 * kMiB, working), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(buffers[0]), CUDA_SUCCESS);

  EXPECT_EQ(cuStreamQuery(working), CUDA_SUCCESS);
}

}  // namespace
}  // namespace spillway::regressions
