#include "simulator/driver/calls/capture.h"
#include "simulator/driver/calls/graph_handles.h"

namespace spillway::simulator {
namespace {

CUresult Begin(CUstream handle, CUstreamCaptureMode mode) {
  return WithContext([&](Call& call) {
    Require(mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    BeginCapture(call, call.StreamOf(handle), mode, std::make_shared<Graph>(call.sim.graphs), false,
                 {});
  });
}

const CUgraphEdgeData* PlainEdges(std::size_t count) {
  static thread_local std::vector<CUgraphEdgeData> edges;
  edges.assign(count, CUgraphEdgeData{});
  return edges.data();
}

struct Asked {
  CUstreamCaptureStatus* status;
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** nodes = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  std::size_t* count = nullptr;
};

void Report(Stream& stream, const Asked& asked) {
  stream.capture_reported.clear();
  for (const GraphNode* node : stream.capture_after)
    stream.capture_reported.push_back(Handle(node));
  if (asked.id != nullptr) *asked.id = stream.capture->id;
  if (asked.graph != nullptr) *asked.graph = Handle(stream.capture->graph.get());
  if (asked.nodes != nullptr) *asked.nodes = stream.capture_reported.data();
  if (asked.count != nullptr) *asked.count = stream.capture_reported.size();
  if (asked.edges != nullptr) *asked.edges = PlainEdges(stream.capture_reported.size());
}

// A query of the legacy stream fails while a blocking stream captures; the capture goes on.
void RequireQueryable(Call& call, const Stream& stream) {
  if (!stream.legacy) return;
  for (const auto& capture : call.sim.graphs.captures) {
    for (const Stream* member : capture->members) {
      Require(!member->blocking || member->context != stream.context,
              CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
  }
}

CUresult Ask(CUstream handle, const Asked& asked) {
  return WithContext([&](Call& call) {
    Require(asked.status != nullptr && (asked.edges == nullptr || asked.nodes != nullptr));
    Stream& stream = call.StreamOf(handle);
    RequireQueryable(call, stream);
    if (stream.capture == nullptr) {
      *asked.status = CU_STREAM_CAPTURE_STATUS_NONE;
    } else if (!stream.capture->valid) {
      *asked.status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    } else {
      *asked.status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
      Report(stream, asked);
    }
  });
}

CUresult UpdateDependencies(CUstream handle, const CUgraphNode* nodes, std::size_t count,
                            unsigned flags) {
  return WithContext([&](Call& call) {
    Stream& stream = call.StreamOf(handle);
    Require(stream.capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    Require(flags <= CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    const std::vector<GraphNode*> given = NodesOf(call, *stream.capture->graph, nodes, count);
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream.capture_after.clear();
    stream.capture_after.insert(stream.capture_after.end(), given.begin(), given.end());
  });
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuStreamBeginCapture)(CUstream stream) {
  return Begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}
SIM_API(cuStreamBeginCapture_v2)(CUstream stream, CUstreamCaptureMode mode) {
  return Begin(stream, mode);
}

SIM_API(cuStreamBeginCaptureToGraph)
(CUstream handle, CUgraph graph_handle, const CUgraphNode* dependencies,
 const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
  (void)edges;
  return WithContext([&](Call& call) {
    Require(mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    Graph& graph = GraphOf(call, graph_handle);
    BeginCapture(call, call.StreamOf(handle), mode, graph.shared_from_this(), true,
                 NodesOf(call, graph, dependencies, count));
  });
}

SIM_API(cuStreamEndCapture)(CUstream handle, CUgraph* out) {
  return WithContext([&](Call& call) {
    Stream& stream = call.StreamOf(handle);
    const bool brought = stream.capture != nullptr && stream.capture->brought;
    Require(out != nullptr || brought);
    if (out != nullptr) *out = nullptr;
    const GraphRef graph = EndCapture(call, stream);
    if (!brought) call.sim.graphs.owned.emplace(graph.get(), graph);
    if (out != nullptr) *out = Handle(graph.get());
  });
}

SIM_API(cuStreamIsCapturing)(CUstream stream, CUstreamCaptureStatus* status) {
  return Ask(stream, {.status = status});
}
SIM_API(cuStreamGetCaptureInfo)(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return Ask(stream, {.status = status, .id = id});
}
SIM_API(cuStreamGetCaptureInfo_v2)
(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
 const CUgraphNode** nodes, size_t* count) {
  return Ask(stream, {.status = status, .id = id, .graph = graph, .nodes = nodes, .count = count});
}
SIM_API(cuStreamGetCaptureInfo_v3)
(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
 const CUgraphNode** nodes, const CUgraphEdgeData** edges, size_t* count) {
  return Ask(
      stream,
      {.status = status, .id = id, .graph = graph, .nodes = nodes, .edges = edges, .count = count});
}

SIM_API(cuStreamUpdateCaptureDependencies)
(CUstream stream, CUgraphNode* nodes, size_t count, unsigned int flags) {
  return UpdateDependencies(stream, nodes, count, flags);
}
SIM_API(cuStreamUpdateCaptureDependencies_v2)
(CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* edges, size_t count,
 unsigned int flags) {
  (void)edges;
  return UpdateDependencies(stream, nodes, count, flags);
}

SIM_API(cuThreadExchangeStreamCaptureMode)(CUstreamCaptureMode* mode) {
  return WithDriver([&](Call&) {
    Require(mode != nullptr && *mode >= CU_STREAM_CAPTURE_MODE_GLOBAL &&
            *mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
    std::swap(*mode, ThreadCaptureMode());
  });
}
