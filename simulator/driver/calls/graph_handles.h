// Checked conversions of the program's graph handles: CUDA_ERROR_INVALID_VALUE for a dead one.
#pragma once

#include "simulator/driver/calls/graph.h"

namespace spillway::simulator {

inline CUgraph Handle(const Graph* graph) {
  return reinterpret_cast<CUgraph>(const_cast<Graph*>(graph));
}
inline CUgraphNode Handle(const GraphNode* node) {
  return reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(node));
}
inline CUgraphExec Handle(const GraphExec* executable) {
  return reinterpret_cast<CUgraphExec>(const_cast<GraphExec*>(executable));
}

inline Graph& GraphOf(const Call& call, CUgraph handle) {
  Graph* const graph = reinterpret_cast<Graph*>(handle);
  Require(call.sim.graphs.graphs.contains(graph));
  return *graph;
}

inline GraphNode& NodeOf(const Call& call, CUgraphNode handle) {
  GraphNode* const node = reinterpret_cast<GraphNode*>(handle);
  Require(call.sim.graphs.nodes.contains(node));
  return *node;
}

inline GraphExec& ExecOf(const Call& call, CUgraphExec handle) {
  const auto found = call.sim.graphs.executables.find(reinterpret_cast<GraphExec*>(handle));
  Require(found != call.sim.graphs.executables.end());
  return *found->second;
}

inline std::vector<GraphNode*> NodesOf(const Call& call, const Graph& graph,
                                       const CUgraphNode* handles, std::size_t count) {
  Require(handles != nullptr || count == 0);
  std::vector<GraphNode*> nodes;
  for (std::size_t i = 0; i < count; ++i) {
    nodes.push_back(&NodeOf(call, handles[i]));
    Require(nodes.back()->graph == &graph);
  }
  return nodes;
}

}  // namespace spillway::simulator
