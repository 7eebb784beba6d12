// Shared by the cases about capture and graphs. Called by cases, on their thread. Any failure that
// is not the subject of the case abandons the case.
#pragma once

#include "tests/contract/device.h"

namespace spillway::contract {

// Captures the calls of `body` in a fresh capture of `stream`.
template <typename Body>
CUgraph Captured(CUstream stream, Body body,
                 CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
  CUgraph graph = nullptr;
  ASSERT_OK(cuStreamBeginCapture(stream, mode));
  body();
  ASSERT_OK(cuStreamEndCapture(stream, &graph));
  ASSERT_TRUE(graph != nullptr);
  return graph;
}

// Sets all `count` words to `value` before it returns.
inline void SetWords(CUdeviceptr words, std::uint32_t value, std::size_t count) {
  ASSERT_OK(cuMemsetD32(words, value, count));
  ASSERT_OK(cuCtxSynchronize());
}

inline CUgraphExec Instantiated(CUgraph graph, unsigned long long flags = 0) {
  CUgraphExec executable = nullptr;
  ASSERT_OK(cuGraphInstantiate(&executable, graph, flags));
  return executable;
}

inline void Replay(CUgraphExec executable, CUstream stream) {
  ASSERT_OK(cuGraphLaunch(executable, stream));
  ASSERT_OK(cuStreamSynchronize(stream));
}

inline CUstreamCaptureStatus StatusOf(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  ASSERT_OK(cuStreamIsCapturing(stream, &status));
  return status;
}

inline std::size_t NodeCount(CUgraph graph) {
  std::size_t count = 0;
  ASSERT_OK(cuGraphGetNodes(graph, nullptr, &count));
  return count;
}

}  // namespace spillway::contract
