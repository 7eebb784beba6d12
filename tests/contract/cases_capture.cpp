// Stream capture: which calls become nodes, how streams join, and what a capture forbids.
#include <cstring>
#include <thread>

#include "tests/contract/capture_device.h"

namespace spillway::contract {
namespace {

constexpr std::size_t kWords = 1 << 18;

// Returns the result of ending the capture.
template <typename Call>
CUresult EndAfter(CUstreamCaptureMode mode, Call call) {
  const CUstream stream = MakeStream();
  CUgraph graph = nullptr;
  ASSERT_OK(cuStreamBeginCapture(stream, mode));
  call(stream);
  const CUresult result = cuStreamEndCapture(stream, &graph);
  EXPECT_TRUE((result == CUDA_SUCCESS) == (graph != nullptr));
  return result;
}

}  // namespace

CONTRACT(Capture, RunsNothingUntilLaunched, "cuda.h:15381 cuStreamBeginCapture") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  SetWords(words, 1, kWords);
  const CUgraph graph = Captured(stream, [&] { Fill(words, 7, kWords, stream); });
  EXPECT_TRUE(AllWordsAre(words, kWords, 1));
  Replay(Instantiated(graph), stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 7));
}

CONTRACT(Capture, LaunchesAgainWithTheParametersOfTheCapture, "cuda.h:21075 cuGraphLaunch") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  SetWords(words, 0, kWords);
  std::uint32_t value = 3;
  const CUgraph graph = Captured(stream, [&] {
    CUdeviceptr target = words;
    std::uint64_t count = kWords;
    void* pointers[] = {&target, &value, &count};
    ASSERT_OK(LaunchRaw(Kernel("add"), 64, 256, stream, pointers));
  });
  value = 1000;
  const CUgraphExec executable = Instantiated(graph);
  for (int i = 0; i < 4; ++i) ASSERT_OK(cuGraphLaunch(executable, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_TRUE(AllWordsAre(words, kWords, 12));
}

CONTRACT(Capture, CopiesAndSetsReadAndWriteAtTheLaunch, "cuda.h:18846 cuGraphAddMemcpyNode") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr first = Allocate(4096);
  const CUdeviceptr second = Allocate(4096);
  void* pinned = nullptr;
  ASSERT_OK(cuMemHostAlloc(&pinned, 8192, 0));
  auto* const in = static_cast<std::uint32_t*>(pinned);
  std::uint32_t* const out = in + 1024;
  const CUgraph graph = Captured(stream, [&] {
    ASSERT_OK(cuMemcpyHtoDAsync(first, in, 4096, stream));
    ASSERT_OK(cuMemcpyDtoDAsync(second, first, 4096, stream));
    ASSERT_OK(cuMemsetD32Async(second, 9, 16, stream));
    ASSERT_OK(cuMemcpyDtoHAsync(out, second, 4096, stream));
  });
  EXPECT_EQ(NodeCount(graph), std::size_t{4});
  const CUgraphExec executable = Instantiated(graph);
  for (std::uint32_t round = 1; round <= 2; ++round) {
    for (int i = 0; i < 1024; ++i) in[i] = 100 * round + static_cast<std::uint32_t>(i);
    Replay(executable, stream);
    EXPECT_EQ(out[0], 9u);
    EXPECT_EQ(out[1023], 100 * round + 1023);
  }
}

CONTRACT(Capture, StatusAndInfo,
         "cuda.h:15551 cuStreamIsCapturing; cuda.h:15610 cuStreamGetCaptureInfo") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4096);
  EXPECT_TRUE(StatusOf(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  ASSERT_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  Fill(words, 1, 1024, stream);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  std::size_t count = 0;
  ASSERT_OK(cuStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, nullptr, &count));
  EXPECT_TRUE(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_TRUE(id != 0 && graph != nullptr);
  ASSERT_EQ(count, std::size_t{1});
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  ASSERT_OK(cuGraphNodeGetType(nodes[0], &type));
  EXPECT_TRUE(type == CU_GRAPH_NODE_TYPE_KERNEL);
  CUgraph ended = nullptr;
  ASSERT_OK(cuStreamEndCapture(stream, &ended));
  EXPECT_TRUE(ended == graph);
  EXPECT_TRUE(StatusOf(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
}

CONTRACT(Capture, EventsForkAndJoinStreams,
         "CUDA Programming Guide, Cross-stream Dependencies and Events") {
  UseDevice();
  const CUstream origin = MakeStream();
  const CUstream side = MakeStream();
  const CUevent fork = MakeEvent(CU_EVENT_DISABLE_TIMING);
  const CUevent join = MakeEvent(CU_EVENT_DISABLE_TIMING);
  const CUdeviceptr words = Allocate(4 * 3 * kWords);
  const CUgraph graph = Captured(origin, [&] {
    Fill(words, 1, kWords, origin);
    ASSERT_OK(cuEventRecord(fork, origin));
    ASSERT_OK(cuStreamWaitEvent(side, fork, 0));
    EXPECT_TRUE(StatusOf(side) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    Launch("copy", 64, 256, side, words + 4 * kWords, words, std::uint64_t{kWords});
    Launch("copy", 64, 256, origin, words + 8 * kWords, words, std::uint64_t{kWords});
    ASSERT_OK(cuEventRecord(join, side));
    ASSERT_OK(cuStreamWaitEvent(origin, join, 0));
    Launch("add", 64, 256, origin, words, std::uint32_t{4}, std::uint64_t{3 * kWords});
  });
  EXPECT_TRUE(StatusOf(side) == CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(NodeCount(graph), std::size_t{4});
  Replay(Instantiated(graph), origin);
  EXPECT_TRUE(AllWordsAre(words, 3 * kWords, 5));
}

CONTRACT(Capture, UnjoinedForkInvalidatesTheCapture, "cuda.h: CUDA_ERROR_STREAM_CAPTURE_UNJOINED") {
  UseDevice();
  const CUdeviceptr words = Allocate(4096);
  const CUstream side = MakeStream();
  const CUevent fork = MakeEvent();
  const CUresult end = EndAfter(CU_STREAM_CAPTURE_MODE_GLOBAL, [&](CUstream stream) {
    ASSERT_OK(cuEventRecord(fork, stream));
    ASSERT_OK(cuStreamWaitEvent(side, fork, 0));
    Fill(words, 1, 1024, side);
  });
  EXPECT_EQ(end, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_TRUE(StatusOf(side) == CU_STREAM_CAPTURE_STATUS_NONE);
}

CONTRACT(Capture, WaitingForUncapturedWorkInvalidatesTheCapture,
         "cuda.h: CUDA_ERROR_STREAM_CAPTURE_ISOLATION") {
  UseDevice();
  const CUstream other = MakeStream();
  const CUevent outside = MakeEvent();
  ASSERT_OK(cuEventRecord(outside, other));
  const CUresult end = EndAfter(CU_STREAM_CAPTURE_MODE_GLOBAL, [&](CUstream stream) {
    EXPECT_EQ(cuStreamWaitEvent(stream, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  });
  EXPECT_EQ(end, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

CONTRACT(Capture, SynchronisingACapturingStreamInvalidatesTheCapture,
         "cuda.h: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED") {
  UseDevice();
  const CUresult end = EndAfter(CU_STREAM_CAPTURE_MODE_RELAXED, [&](CUstream stream) {
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_TRUE(StatusOf(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(cuMemsetD8Async(Allocate(64), 0, 64, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  });
  EXPECT_EQ(end, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

CONTRACT(Capture, QueryingACapturedEventIsRefused, "cuda.h: CUDA_ERROR_CAPTURED_EVENT") {
  UseDevice();
  const CUevent event = MakeEvent();
  EndAfter(CU_STREAM_CAPTURE_MODE_RELAXED, [&](CUstream stream) {
    ASSERT_OK(cuEventRecord(event, stream));
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
  });
  const CUstream stream = MakeStream();
  ASSERT_OK(cuEventRecord(event, stream));
  EXPECT_OK(cuEventSynchronize(event));
}

CONTRACT(Capture, AllocatingInGlobalModeBreaksIt,
         "cuda.h:15480 cuThreadExchangeStreamCaptureMode") {
  UseDevice();
  CUdeviceptr address = 0;
  const CUresult end = EndAfter(CU_STREAM_CAPTURE_MODE_GLOBAL, [&](CUstream) {
    EXPECT_EQ(cuMemAlloc(&address, 4096), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  });
  EXPECT_EQ(end, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

CONTRACT(Capture, AllocatingIsAllowedInRelaxedMode,
         "cuda.h:15480 cuThreadExchangeStreamCaptureMode") {
  UseDevice();
  CUdeviceptr address = 0;
  const CUdeviceptr words = Allocate(4096);
  const CUresult end = EndAfter(CU_STREAM_CAPTURE_MODE_RELAXED, [&](CUstream stream) {
    EXPECT_OK(cuMemAlloc(&address, 4096));
    Fill(words, 1, 1024, stream);
  });
  EXPECT_OK(end);
}

CONTRACT(Capture, ThreadMayRelaxItsOwnMode, "cuda.h:15480 cuThreadExchangeStreamCaptureMode") {
  UseDevice();
  CUdeviceptr address = 0;
  const CUresult end = EndAfter(CU_STREAM_CAPTURE_MODE_GLOBAL, [&](CUstream) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    ASSERT_OK(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_TRUE(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_OK(cuMemAlloc(&address, 4096));
    ASSERT_OK(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_TRUE(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  });
  EXPECT_OK(end);
}

CONTRACT(Capture, GlobalModeBindsOtherThreads, "cuda.h:15480 cuThreadExchangeStreamCaptureMode") {
  UseDevice();
  const CUresult end = EndAfter(CU_STREAM_CAPTURE_MODE_GLOBAL, [&](CUstream) {
    std::thread other([] {
      UseDevice();
      CUdeviceptr address = 0;
      EXPECT_EQ(cuMemAlloc(&address, 4096), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    });
    other.join();
  });
  EXPECT_EQ(end, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

CONTRACT(Capture, ThreadLocalModeDoesNotBindOtherThreads,
         "cuda.h:15480 cuThreadExchangeStreamCaptureMode") {
  UseDevice();
  const CUresult end = EndAfter(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, [&](CUstream) {
    std::thread other([] {
      UseDevice();
      CUdeviceptr address = 0;
      EXPECT_OK(cuMemAlloc(&address, 1 << 20));
      EXPECT_OK(cuMemFree(address));
    });
    other.join();
  });
  EXPECT_OK(end);
}

CONTRACT(Capture, OnlyTheCapturingThreadEndsTheCapture,
         "cuda.h: CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD") {
  UseDevice();
  const CUresult end = EndAfter(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, [&](CUstream stream) {
    std::thread other([&] {
      UseDevice();
      CUgraph graph = nullptr;
      EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    });
    other.join();
  });
  OBSERVE("end after a wrong thread's attempt", end);
}

CONTRACT(Capture, LegacyStreamCannotCapture, "cuda.h:15381 cuStreamBeginCapture") {
  UseDevice();
  EXPECT_EQ(cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CONTRACT(Capture, LegacyStreamIsUnusableWhileABlockingStreamCaptures,
         "cuda.h: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT") {
  UseDevice();
  const CUdeviceptr words = Allocate(4096);
  const CUstream blocking = MakeStream(CU_STREAM_DEFAULT);
  ASSERT_OK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  EXPECT_EQ(cuStreamIsCapturing(CU_STREAM_LEGACY, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_TRUE(StatusOf(blocking) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(cuMemsetD8Async(words, 1, 16, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

CONTRACT(Capture, LegacyStreamWorksWhileANonBlockingStreamCaptures,
         "CUDA Programming Guide, Prohibited Operations") {
  UseDevice();
  const CUdeviceptr words = Allocate(4096);
  const CUresult end = EndAfter(CU_STREAM_CAPTURE_MODE_RELAXED, [&](CUstream stream) {
    Fill(words, 2, 1024, stream);
    EXPECT_OK(cuMemsetD8Async(words, 1, 4096, nullptr));
    EXPECT_TRUE(AllWordsAre(words, 1024, 0x01010101));
  });
  EXPECT_OK(end);
}

CONTRACT(Capture, StreamOrderedMemoryBecomesNodes, "cuda.h:19810 cuGraphAddMemAllocNode") {
  const CUdevice device = UseDevice();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED), "no memory pools");
  const CUstream stream = MakeStream();
  const CUdeviceptr out = Allocate(4 * kWords);
  CUdeviceptr scratch = 0;
  const CUgraph graph = Captured(stream, [&] {
    ASSERT_OK(cuMemAllocAsync(&scratch, 4 * kWords, stream));
    Fill(scratch, 21, kWords, stream);
    Launch("copy", 64, 256, stream, out, scratch, std::uint64_t{kWords});
    ASSERT_OK(cuMemFreeAsync(scratch, stream));
  });
  EXPECT_EQ(NodeCount(graph), std::size_t{4});
  const CUgraphExec executable = Instantiated(graph);
  for (int i = 0; i < 2; ++i) {
    SetWords(out, 0, kWords);
    Replay(executable, stream);
    EXPECT_TRUE(AllWordsAre(out, kWords, 21));
  }
}

CONTRACT(Capture, CapturesIntoAnExistingGraph, "cuda.h:15427 cuStreamBeginCaptureToGraph") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  CUgraph graph = nullptr;
  ASSERT_OK(cuGraphCreate(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS set = {words, 0, 5, 4, kWords, 1};
  CUgraphNode first = nullptr;
  CUcontext context = nullptr;
  ASSERT_OK(cuCtxGetCurrent(&context));
  ASSERT_OK(cuGraphAddMemsetNode(&first, graph, nullptr, 0, &set, context));
  ASSERT_OK(cuStreamBeginCaptureToGraph(stream, graph, &first, nullptr, 1,
                                        CU_STREAM_CAPTURE_MODE_GLOBAL));
  Launch("add", 64, 256, stream, words, std::uint32_t{2}, std::uint64_t{kWords});
  CUgraph ended = nullptr;
  ASSERT_OK(cuStreamEndCapture(stream, &ended));
  EXPECT_TRUE(ended == graph);
  Replay(Instantiated(graph), stream);
  EXPECT_TRUE(AllWordsAre(words, kWords, 7));
}

// Seen on an H100 with driver 580; the documents do not say it.
CONTRACT(Capture, LaunchingAGraphIsUnsupported, "cuda.h:21075 cuGraphLaunch") {
  UseDevice();
  const CUstream stream = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  const CUgraphExec inner = Instantiated(
      Captured(stream, [&] { Launch("add", 64, 256, stream, words, 10u, std::uint64_t{kWords}); }));
  ASSERT_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(cuGraphLaunch(inner, stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  OBSERVE("end_of_the_capture", cuStreamEndCapture(stream, &graph));
}

CONTRACT(Capture, HostFunctionsRunAtTheLaunch, "cuda.h:18127 cuLaunchHostFunc") {
  UseDevice();
  const CUstream stream = MakeStream();
  int calls = 0;
  const CUgraph graph = Captured(stream, [&] {
    ASSERT_OK(cuLaunchHostFunc(
        stream, [](void* counter) { ++*static_cast<int*>(counter); }, &calls));
  });
  EXPECT_EQ(calls, 0);
  const CUgraphExec executable = Instantiated(graph);
  Replay(executable, stream);
  Replay(executable, stream);
  EXPECT_EQ(calls, 2);
}

CONTRACT(Capture, AStreamThatHasJoinedAgainMayBeDestroyed,
         "CUDA programming guide, cross-stream dependencies and events") {
  UseDevice();
  const CUstream origin = MakeStream(), forked = MakeStream();
  const CUdeviceptr words = Allocate(4 * kWords);
  SetWords(words, 0, kWords);
  const CUevent fork = MakeEvent(), join = MakeEvent();
  const CUgraph graph = Captured(origin, [&] {
    ASSERT_OK(cuEventRecord(fork, origin));
    ASSERT_OK(cuStreamWaitEvent(forked, fork, 0));
    Launch("add", 64, 256, forked, words, std::uint32_t{3}, std::uint64_t{kWords});
    ASSERT_OK(cuEventRecord(join, forked));
    ASSERT_OK(cuStreamWaitEvent(origin, join, 0));
    ASSERT_OK(cuStreamDestroy(forked));
  });
  Replay(Instantiated(graph), origin);
  EXPECT_TRUE(AllWordsAre(words, kWords, 3));
}

}  // namespace spillway::contract
