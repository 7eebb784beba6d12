// Graphs built node by node: every node type, parameters, updates of executables, memory nodes.
#include <algorithm>

#include "tests/contract/capture_device.h"

namespace spillway::contract {
namespace {

constexpr std::size_t kWords = 1 << 18;

CUcontext CurrentContext() {
  CUcontext context = nullptr;
  ASSERT_OK(cuCtxGetCurrent(&context));
  return context;
}

CUgraph EmptyGraph() {
  CUgraph graph = nullptr;
  ASSERT_OK(cuGraphCreate(&graph, 0));
  return graph;
}

// words[i] += value, as a kernel node's parameters.
struct AddKernel {
  AddKernel(CUdeviceptr target, std::uint32_t amount) : words(target), value(amount) {
    params.func = Kernel("add");
    params.gridDimX = 64;
    params.blockDimX = 256;
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = pointers;
  }
  AddKernel(const AddKernel&) = delete;

  CUdeviceptr words;
  std::uint32_t value;
  std::uint64_t count = kWords;
  void* pointers[3] = {&words, &value, &count};
  CUDA_KERNEL_NODE_PARAMS params = {};
};

CUgraphNode AddTo(CUgraph graph, const AddKernel& kernel, std::vector<CUgraphNode> after = {}) {
  CUgraphNode node = nullptr;
  ASSERT_OK(cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &kernel.params));
  return node;
}

CUDA_MEMSET_NODE_PARAMS SetOf(CUdeviceptr target, unsigned value, std::size_t count = kWords) {
  return {target, 0, value, 4, count, 1};
}

CUgraphNode SetIn(CUgraph graph, CUdeviceptr target, unsigned value,
                  std::vector<CUgraphNode> after = {}) {
  const CUDA_MEMSET_NODE_PARAMS set = SetOf(target, value);
  CUgraphNode node = nullptr;
  ASSERT_OK(cuGraphAddMemsetNode(&node, graph, after.data(), after.size(), &set, CurrentContext()));
  return node;
}

CUDA_MEMCPY3D CopyOf(CUdeviceptr target, CUdeviceptr source, std::size_t bytes) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = source;
  copy.dstDevice = target;
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

CUDA_MEM_ALLOC_NODE_PARAMS AllocationOf(std::size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS alloc = {};
  alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  alloc.poolProps.location.id = 0;
  alloc.bytesize = bytes;
  return alloc;
}

}  // namespace

CONTRACT(Graph, NodesRunInTheirOrder, "cuda.h:18741 cuGraphAddKernelNode") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  const CUdeviceptr copy_of_words = Allocate(4 * kWords);
  const CUgraph graph = EmptyGraph();
  const CUgraphNode set = SetIn(graph, words, 5);
  AddKernel add(words, 2);
  const CUgraphNode kernel = AddTo(graph, add, {set});
  add.value = 1000;  // the node has its own copy
  const CUDA_MEMCPY3D copy = CopyOf(copy_of_words, words, 4 * kWords);
  CUgraphNode last = nullptr;
  ASSERT_OK(cuGraphAddMemcpyNode(&last, graph, &kernel, 1, &copy, CurrentContext()));
  Replay(Instantiated(graph), stream);
  EXPECT_TRUE(AllWordsAre(copy_of_words, kWords, 7));
}

CONTRACT(Graph, KernelParametersByBuffer, "cuda.h:18741 cuGraphAddKernelNode: extra") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(400);
  struct {
    CUdeviceptr out;
    std::uint32_t value;
    std::uint64_t count;
  } packed = {words, 18, 100};
  std::size_t size_bytes = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &size_bytes, CU_LAUNCH_PARAM_END};
  CUDA_KERNEL_NODE_PARAMS params = {};
  params.func = Kernel("fill");
  params.gridDimX = params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
  params.blockDimX = 32;
  params.extra = extra;
  const CUgraph graph = EmptyGraph();
  CUgraphNode node = nullptr;
  ASSERT_OK(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  Replay(Instantiated(graph), stream);
  EXPECT_TRUE(AllWordsAre(words, 100, 18));
}

CONTRACT(Graph, ReportsItsShape, "cuda.h:20104 cuGraphGetNodes; cuda.h:20175 cuGraphGetEdges") {
  UseDevice();
  const CUgraph graph = EmptyGraph();
  CUgraphNode top = nullptr, left = nullptr, right = nullptr, bottom = nullptr;
  ASSERT_OK(cuGraphAddEmptyNode(&top, graph, nullptr, 0));
  ASSERT_OK(cuGraphAddEmptyNode(&left, graph, &top, 1));
  ASSERT_OK(cuGraphAddEmptyNode(&right, graph, &top, 1));
  ASSERT_OK(cuGraphAddEmptyNode(&bottom, graph, &left, 1));
  ASSERT_OK(cuGraphAddDependencies_v2(graph, &right, &bottom, nullptr, 1));
  EXPECT_EQ(NodeCount(graph), std::size_t{4});
  std::size_t count = 0;
  ASSERT_OK(cuGraphGetRootNodes(graph, nullptr, &count));
  EXPECT_EQ(count, std::size_t{1});
  ASSERT_OK(cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count));
  EXPECT_EQ(count, std::size_t{4});
  CUgraphNode found[2] = {};
  count = 2;
  ASSERT_OK(cuGraphNodeGetDependencies_v2(bottom, found, nullptr, &count));
  EXPECT_EQ(count, std::size_t{2});
  EXPECT_TRUE(std::count(found, found + 2, left) == 1 && std::count(found, found + 2, right) == 1);
  ASSERT_OK(cuGraphNodeGetDependentNodes_v2(left, found, nullptr, &count));
  EXPECT_TRUE(count == 1 && found[0] == bottom);
  ASSERT_OK(cuGraphRemoveDependencies_v2(graph, &right, &bottom, nullptr, 1));
  ASSERT_OK(cuGraphDestroyNode(left));
  ASSERT_OK(cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count));
  EXPECT_EQ(count, std::size_t{1});
}

CONTRACT(Graph, ACycleCannotBeInstantiated, "cuda.h:20415 cuGraphInstantiate") {
  UseDevice();
  const CUgraph graph = EmptyGraph();
  CUgraphNode first = nullptr, second = nullptr;
  ASSERT_OK(cuGraphAddEmptyNode(&first, graph, nullptr, 0));
  ASSERT_OK(cuGraphAddEmptyNode(&second, graph, &first, 1));
  const CUresult closing = cuGraphAddDependencies_v2(graph, &second, &first, nullptr, 1);
  CUgraphExec executable = nullptr;
  EXPECT_TRUE(closing != CUDA_SUCCESS || cuGraphInstantiate(&executable, graph, 0) != CUDA_SUCCESS);
}

CONTRACT(Graph, ExecutableOutlivesItsGraph, "cuda.h:21120 cuGraphDestroy") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  const CUgraph graph = EmptyGraph();
  SetIn(graph, words, 5);
  const CUgraphExec executable = Instantiated(graph);
  ASSERT_OK(cuGraphDestroy(graph));
  Replay(executable, stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 5));
  ASSERT_OK(cuGraphExecDestroy(executable));
}

CONTRACT(Graph, CloneHasItsOwnNodes,
         "cuda.h:20016 cuGraphClone; cuda.h:20042 cuGraphNodeFindInClone") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  const CUgraph graph = EmptyGraph();
  const CUgraphNode node = SetIn(graph, words, 5);
  CUgraph clone = nullptr;
  ASSERT_OK(cuGraphClone(&clone, graph));
  CUgraphNode twin = nullptr;
  ASSERT_OK(cuGraphNodeFindInClone(&twin, node, clone));
  EXPECT_TRUE(twin != node);
  const CUDA_MEMSET_NODE_PARAMS other = SetOf(words, 6);
  ASSERT_OK(cuGraphMemsetNodeSetParams(node, &other));
  Replay(Instantiated(clone), stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 5));
  Replay(Instantiated(graph), stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 6));
}

CONTRACT(Graph, ChildGraphRunsInItsPlace, "cuda.h:19114 cuGraphAddChildGraphNode") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  const CUgraph child = EmptyGraph();
  AddTo(child, AddKernel(words, 3));
  const CUgraph graph = EmptyGraph();
  const CUgraphNode set = SetIn(graph, words, 10);
  CUgraphNode nested = nullptr;
  ASSERT_OK(cuGraphAddChildGraphNode(&nested, graph, &set, 1, child));
  ASSERT_OK(cuGraphDestroy(child));  // the node has a clone
  AddTo(graph, AddKernel(words, 100), {nested});
  Replay(Instantiated(graph), stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 113));
}

CONTRACT(Graph, NodeParametersAreReadBack, "cuda.h:18773 cuGraphKernelNodeGetParams") {
  UseDevice();
  const CUdeviceptr words = Allocate(4 * kWords);
  const CUgraph graph = EmptyGraph();
  const CUgraphNode kernel = AddTo(graph, AddKernel(words, 42));
  CUDA_KERNEL_NODE_PARAMS told = {};
  ASSERT_OK(cuGraphKernelNodeGetParams(kernel, &told));
  EXPECT_TRUE(told.func == Kernel("add") && told.gridDimX == 64 && told.blockDimX == 256);
  ASSERT_TRUE(told.kernelParams != nullptr);
  EXPECT_EQ(*static_cast<CUdeviceptr*>(told.kernelParams[0]), words);
  EXPECT_EQ(*static_cast<std::uint32_t*>(told.kernelParams[1]), 42u);
  const CUgraphNode set = SetIn(graph, words, 8);
  CUDA_MEMSET_NODE_PARAMS told_set = {};
  ASSERT_OK(cuGraphMemsetNodeGetParams(set, &told_set));
  EXPECT_TRUE(told_set.dst == words && told_set.value == 8 && told_set.width == kWords);
}

CONTRACT(Graph, SetParamsChangesLaterInstantiations, "cuda.h:18797 cuGraphKernelNodeSetParams") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  const CUgraph graph = EmptyGraph();
  const CUgraphNode set = SetIn(graph, words, 1);
  const CUgraphNode add = AddTo(graph, AddKernel(words, 1), {set});
  const CUgraphExec before = Instantiated(graph);
  const AddKernel changed(words, 50);
  ASSERT_OK(cuGraphKernelNodeSetParams(add, &changed.params));
  Replay(before, stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 2));
  Replay(Instantiated(graph), stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 51));
}

CONTRACT(Graph, ExecSetParamsChangesLaterLaunches, "cuda.h:20597 cuGraphExecKernelNodeSetParams") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  const CUdeviceptr others = Allocate(4 * kWords);
  SetWords(others, 0, kWords);
  const CUgraph graph = EmptyGraph();
  const CUgraphNode set = SetIn(graph, words, 1);
  const CUgraphNode add = AddTo(graph, AddKernel(words, 1), {set});
  const CUgraphExec executable = Instantiated(graph);
  Replay(executable, stream);
  const AddKernel changed(others, 30);
  ASSERT_OK(cuGraphExecKernelNodeSetParams(executable, add, &changed.params));
  const CUDA_MEMSET_NODE_PARAMS other_set = SetOf(words, 77);
  ASSERT_OK(cuGraphExecMemsetNodeSetParams(executable, set, &other_set, CurrentContext()));
  Replay(executable, stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 77));
  EXPECT_TRUE(AllWordsAre(others, kWords, 30));
}

CONTRACT(Graph, ExecUpdateAcceptsAnotherGraphOfTheSameShape, "cuda.h:21212 cuGraphExecUpdate") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  const auto captured = [&](std::uint32_t start, std::uint32_t amount) {
    return Captured(stream, [&] {
      ASSERT_OK(cuMemsetD32Async(words, start, kWords, stream));
      Launch("add", 64, 256, stream, words, amount, std::uint64_t{kWords});
    });
  };
  const CUgraphExec executable = Instantiated(captured(1, 2));
  CUgraphExecUpdateResultInfo info = {};
  ASSERT_OK(cuGraphExecUpdate(executable, captured(20, 3), &info));
  EXPECT_TRUE(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  Replay(executable, stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 23));
}

CONTRACT(Graph, ExecUpdateRefusesAnotherShape, "cuda.h:21212 cuGraphExecUpdate") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  const CUgraph small = EmptyGraph();
  SetIn(small, words, 1);
  const CUgraph large = EmptyGraph();
  AddTo(large, AddKernel(words, 1), {SetIn(large, words, 2)});
  const CUgraphExec executable = Instantiated(small);
  CUgraphExecUpdateResultInfo info = {};
  EXPECT_EQ(cuGraphExecUpdate(executable, large, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_TRUE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  Replay(executable, stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 1));
}

CONTRACT(Graph, DisabledNodesDoNothing, "cuda.h:20988 cuGraphNodeSetEnabled") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  const CUgraph graph = EmptyGraph();
  const CUgraphNode set = SetIn(graph, words, 1);
  const CUgraphNode add = AddTo(graph, AddKernel(words, 1), {set});
  const CUgraphExec executable = Instantiated(graph);
  ASSERT_OK(cuGraphNodeSetEnabled(executable, add, 0));
  unsigned enabled = 1;
  ASSERT_OK(cuGraphNodeGetEnabled(executable, add, &enabled));
  EXPECT_EQ(enabled, 0u);
  Replay(executable, stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 1));
  ASSERT_OK(cuGraphNodeSetEnabled(executable, add, 1));
  Replay(executable, stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 2));
}

CONTRACT(Graph, LaunchesOfOneExecutableRunInOrder, "cuda.h:21075 cuGraphLaunch") {
  UseDevice();
  const CUstream first = MakeStream();
  const CUstream second = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  SetWords(words, 0, kWords);
  const CUgraph graph = EmptyGraph();
  AddTo(graph, AddKernel(words, 1));
  const CUgraphExec executable = Instantiated(graph);
  for (int i = 0; i < 8; ++i) ASSERT_OK(cuGraphLaunch(executable, i % 2 == 0 ? first : second));
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_TRUE(AllWordsAre(words, kWords, 8));
}

CONTRACT(Graph, GeneralNodeForm,
         "cuda.h:21479 cuGraphAddNode; cuda.h:21552 cuGraphExecNodeSetParams") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  const CUgraph graph = EmptyGraph();
  CUgraphNodeParams set = {};
  set.type = CU_GRAPH_NODE_TYPE_MEMSET;
  set.memset = {words, 0, 4, 4, kWords, 1, CurrentContext()};
  CUgraphNode first = nullptr;
  ASSERT_OK(cuGraphAddNode_v2(&first, graph, nullptr, nullptr, 0, &set));
  AddKernel add(words, 5);
  CUgraphNodeParams kernel = {};
  kernel.type = CU_GRAPH_NODE_TYPE_KERNEL;
  kernel.kernel.func = add.params.func;
  kernel.kernel.gridDimX = 64;
  kernel.kernel.blockDimX = 256;
  kernel.kernel.gridDimY = kernel.kernel.gridDimZ = kernel.kernel.blockDimY =
      kernel.kernel.blockDimZ = 1;
  kernel.kernel.kernelParams = add.pointers;
  CUgraphNode second = nullptr;
  ASSERT_OK(cuGraphAddNode_v2(&second, graph, &first, nullptr, 1, &kernel));
  const CUgraphExec executable = Instantiated(graph);
  Replay(executable, stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 9));
  set.memset.value = 40;
  ASSERT_OK(cuGraphExecNodeSetParams(executable, first, &set));
  Replay(executable, stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 45));
}

CONTRACT(Graph, EventNodesSynchronizeWithOtherStreams, "cuda.h:19222 cuGraphAddEventRecordNode") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUevent event = MakeEvent(CU_EVENT_DISABLE_TIMING);
  const CUdeviceptr words = Allocate(4 * kWords);
  const CUgraph graph = EmptyGraph();
  const CUgraphNode set = SetIn(graph, words, 3);
  CUgraphNode record = nullptr;
  ASSERT_OK(cuGraphAddEventRecordNode(&record, graph, &set, 1, event));
  ASSERT_OK(cuGraphLaunch(Instantiated(graph), stream));
  ASSERT_OK(cuEventSynchronize(event));
  EXPECT_TRUE(AllWordsAre(words, kWords, 3));
}

CONTRACT(Graph, MemoryOperationNodes, "cuda.h:19633 cuGraphAddBatchMemOpNode") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4096);
  SetWords(words, 0, 1024);
  CUstreamBatchMemOpParams write = {};
  write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  write.writeValue.address = words + 8;
  write.writeValue.value = 61;
  CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {CurrentContext(), 1, &write, 0};
  const CUgraph graph = EmptyGraph();
  CUgraphNode node = nullptr;
  ASSERT_OK(cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &batch));
  const CUgraphExec executable = Instantiated(graph);
  Replay(executable, stream);
  EXPECT_EQ(ReadWord(words + 8), 61u);
  write.writeValue.value = 62;
  ASSERT_OK(cuGraphExecBatchMemOpNodeSetParams(executable, node, &batch));
  Replay(executable, stream);
  EXPECT_EQ(ReadWord(words + 8), 62u);
}

CONTRACT(Graph, MemoryNodesKeepTheirAddress, "cuda.h:19810 cuGraphAddMemAllocNode") {
  const CUdevice device = UseDevice();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED), "no memory pools");
  const CUstream stream = MakeStream();
  const CUdeviceptr out = Allocate(4 * kWords);
  const CUgraph graph = EmptyGraph();
  CUDA_MEM_ALLOC_NODE_PARAMS alloc = AllocationOf(4 * kWords);
  CUgraphNode first = nullptr, copied = nullptr, last = nullptr;
  ASSERT_OK(cuGraphAddMemAllocNode(&first, graph, nullptr, 0, &alloc));
  ASSERT_TRUE(alloc.dptr != 0);
  const CUgraphNode set = SetIn(graph, alloc.dptr, 12, {first});
  const CUDA_MEMCPY3D copy = CopyOf(out, alloc.dptr, 4 * kWords);
  ASSERT_OK(cuGraphAddMemcpyNode(&copied, graph, &set, 1, &copy, CurrentContext()));
  ASSERT_OK(cuGraphAddMemFreeNode(&last, graph, &copied, 1, alloc.dptr));
  const CUgraphExec executable = Instantiated(graph);
  for (int i = 0; i < 2; ++i) {
    SetWords(out, 0, kWords);
    Replay(executable, stream);
    EXPECT_TRUE(AllWordsAre(out, kWords, 12));
  }
  CUgraph clone = nullptr;
  EXPECT_TRUE(cuGraphClone(&clone, graph) != CUDA_SUCCESS);
  CUgraphExec another = nullptr;
  EXPECT_TRUE(cuGraphInstantiate(&another, graph, 0) != CUDA_SUCCESS);
}

CONTRACT(Graph, AllocatedMemoryOutlivesTheLaunch, "cuda.h:19810 cuGraphAddMemAllocNode") {
  const CUdevice device = UseDevice();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED), "no memory pools");
  const CUstream stream = MakeStream();
  const CUgraph graph = EmptyGraph();
  CUDA_MEM_ALLOC_NODE_PARAMS alloc = AllocationOf(4 * kWords);
  CUgraphNode first = nullptr;
  ASSERT_OK(cuGraphAddMemAllocNode(&first, graph, nullptr, 0, &alloc));
  SetIn(graph, alloc.dptr, 13, {first});
  const CUgraphExec executable = Instantiated(graph);
  Replay(executable, stream);
  EXPECT_EQ(cuGraphLaunch(executable, stream),
            CUDA_ERROR_INVALID_VALUE);  // the allocation is still live
  EXPECT_TRUE(AllWordsAre(alloc.dptr, kWords, 13));
  ASSERT_OK(cuMemFreeAsync(alloc.dptr, stream));
  Replay(executable, stream);
  EXPECT_TRUE(AllWordsAre(alloc.dptr, kWords, 13));
  cuuint64_t used = 0;
  ASSERT_OK(cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_TRUE(used >= 4 * kWords);
  ASSERT_OK(cuMemFree(alloc.dptr));
  ASSERT_OK(cuGraphExecDestroy(executable));
  ASSERT_OK(cuDeviceGraphMemTrim(device));
  ASSERT_OK(cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &used));
  EXPECT_EQ(used, cuuint64_t{0});
}

CONTRACT(Graph, AutoFreeAllowsRelaunches, "cuda.h:20415 cuGraphInstantiate: AUTO_FREE_ON_LAUNCH") {
  const CUdevice device = UseDevice();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED), "no memory pools");
  const CUstream stream = MakeStream();
  const CUgraph graph = EmptyGraph();
  CUDA_MEM_ALLOC_NODE_PARAMS alloc = AllocationOf(4 * kWords);
  CUgraphNode first = nullptr;
  ASSERT_OK(cuGraphAddMemAllocNode(&first, graph, nullptr, 0, &alloc));
  SetIn(graph, alloc.dptr, 14, {first});
  const CUgraphExec executable =
      Instantiated(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  for (int i = 0; i < 3; ++i) Replay(executable, stream);
  EXPECT_TRUE(AllWordsAre(alloc.dptr, kWords, 14));
}

CONTRACT(Graph, UserObjectsEndWithTheLastReference, "cuda.h:21412 cuGraphRetainUserObject") {
  UseDevice();
  const CUstream stream = MakeStream();
  static int destroyed = 0;
  CUuserObject object = nullptr;
  ASSERT_OK(cuUserObjectCreate(
      &object, &destroyed, [](void* counter) { ++*static_cast<int*>(counter); }, 1,
      CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  const CUgraph graph = EmptyGraph();
  SetIn(graph, Allocate(4 * kWords), 1);
  ASSERT_OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  const CUgraphExec executable = Instantiated(graph);
  ASSERT_OK(cuGraphDestroy(graph));
  Replay(executable, stream);
  EXPECT_EQ(destroyed, 0);
  ASSERT_OK(cuGraphExecDestroy(executable));
}

}  // namespace spillway::contract
