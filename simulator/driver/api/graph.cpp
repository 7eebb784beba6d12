#include <algorithm>

#include "simulator/driver/calls/graph_handles.h"
#include "simulator/driver/calls/node_work.h"
#include "simulator/driver/calls/user_object.h"

namespace spillway::simulator {
namespace {

// As documented: without an array only the count is answered; a longer array is filled with nulls.
void WriteNodes(const std::vector<GraphNode*>& nodes, CUgraphNode* out, std::size_t* count) {
  Require(count != nullptr);
  if (out != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) out[i] = i < nodes.size() ? Handle(nodes[i]) : nullptr;
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
}

bool IsPlain(const CUgraphEdgeData& data) {
  return data.from_port == 0 && data.to_port == 0 && data.type == 0;
}

struct NamedEdge {
  GraphNode* from;
  GraphNode* to;
  CUgraphEdgeData data;
};

void RequireTold(const std::vector<NamedEdge>& edges, const CUgraphEdgeData* data) {
  const bool plain =
      std::all_of(edges.begin(), edges.end(), [](const auto& edge) { return IsPlain(edge.data); });
  Require(plain || data != nullptr, CUDA_ERROR_LOSSY_QUERY);
}

void WriteEdges(const std::vector<NamedEdge>& edges, CUgraphNode* from, CUgraphNode* to,
                CUgraphEdgeData* data, std::size_t* count) {
  Require(count != nullptr);
  if (from == nullptr && to == nullptr) {
    Require(data == nullptr);
    *count = edges.size();
    return;
  }
  RequireTold(edges, data);
  for (std::size_t i = 0; i < *count; ++i) {
    const bool there = i < edges.size();
    if (from != nullptr) from[i] = there ? Handle(edges[i].from) : nullptr;
    if (to != nullptr) to[i] = there ? Handle(edges[i].to) : nullptr;
    if (data != nullptr) data[i] = there ? edges[i].data : CUgraphEdgeData{};
  }
  *count = std::min(*count, edges.size());
}

template <class Wanted>
std::vector<NamedEdge> Edges(const Graph& graph, Wanted wanted) {
  std::vector<NamedEdge> edges;
  for (const auto& node : graph.nodes) {
    for (const GraphEdge& edge : node->after) {
      const NamedEdge named{edge.from, node.get(), edge.data};
      if (wanted(named)) edges.push_back(named);
    }
  }
  return edges;
}

CUresult GetEdges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                  std::size_t* count) {
  return WithDriver([&](Call& call) {
    Require((from == nullptr) == (to == nullptr));
    WriteEdges(Edges(GraphOf(call, handle), [](const NamedEdge&) { return true; }), from, to, data,
               count);
  });
}

CUresult GetDependencies(CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data,
                         std::size_t* count) {
  return WithDriver([&](Call& call) {
    const GraphNode& node = NodeOf(call, handle);
    const auto edges = Edges(*node.graph, [&](const NamedEdge& edge) { return edge.to == &node; });
    WriteEdges(edges, nodes, nullptr, data, count);
  });
}

CUresult GetDependents(CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data,
                       std::size_t* count) {
  return WithDriver([&](Call& call) {
    const GraphNode& node = NodeOf(call, handle);
    const auto edges =
        Edges(*node.graph, [&](const NamedEdge& edge) { return edge.from == &node; });
    WriteEdges(edges, nullptr, nodes, data, count);
  });
}

CUresult AddDependencies(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                         const CUgraphEdgeData* data, std::size_t count) {
  return WithDriver([&](Call& call) {
    const Graph& graph = GraphOf(call, handle);
    const std::vector<GraphNode*> sources = NodesOf(call, graph, from, count);
    const std::vector<GraphNode*> targets = NodesOf(call, graph, to, count);
    for (std::size_t i = 0; i < count; ++i) {
      Require(sources[i] != targets[i] && !targets[i]->ComesAfter(sources[i]));
    }
    for (std::size_t i = 0; i < count; ++i) {
      targets[i]->after.push_back({sources[i], data == nullptr ? CUgraphEdgeData{} : data[i]});
    }
  });
}

CUresult RemoveDependencies(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                            std::size_t count) {
  return WithDriver([&](Call& call) {
    const Graph& graph = GraphOf(call, handle);
    Require(!graph.HasMemoryNodes(), CUDA_ERROR_NOT_SUPPORTED);
    const std::vector<GraphNode*> sources = NodesOf(call, graph, from, count);
    const std::vector<GraphNode*> targets = NodesOf(call, graph, to, count);
    for (std::size_t i = 0; i < count; ++i) Require(targets[i]->ComesAfter(sources[i]));
    for (std::size_t i = 0; i < count; ++i) {
      std::erase_if(targets[i]->after,
                    [&](const GraphEdge& edge) { return edge.from == sources[i]; });
    }
  });
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuGraphCreate)(CUgraph* out, unsigned int flags) {
  return WithDriver([&](Call& call) {
    Require(out != nullptr && flags == 0);
    const auto graph = std::make_shared<Graph>(call.sim.graphs);
    call.sim.graphs.owned.emplace(graph.get(), graph);
    *out = Handle(graph.get());
  });
}

SIM_API(cuGraphDestroy)(CUgraph handle) {
  return WithDriver([&](Call& call) {
    const auto found = call.sim.graphs.owned.find(&GraphOf(call, handle));
    Require(found != call.sim.graphs.owned.end());
    const GraphRef graph = found->second;
    call.sim.graphs.owned.erase(found);
    ReleaseUserObjects(call, graph->objects);
    graph->objects.clear();
  });
}

SIM_API(cuGraphClone)(CUgraph* out, CUgraph handle) {
  return WithDriver([&](Call& call) {
    Require(out != nullptr);
    const Graph& original = GraphOf(call, handle);
    Require(!original.IsSingular(), CUDA_ERROR_NOT_SUPPORTED);
    const GraphRef clone = original.Clone();
    call.sim.graphs.owned.emplace(clone.get(), clone);
    *out = Handle(clone.get());
  });
}

SIM_API(cuGraphNodeFindInClone)(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  return WithDriver([&](Call& call) {
    Require(out != nullptr);
    const std::uint64_t id = NodeOf(call, original).id;
    for (const auto& node : GraphOf(call, clone).nodes) {
      if (node->original_id != id || node->id == id) continue;
      *out = Handle(node.get());
      return;
    }
    throw Failure{CUDA_ERROR_INVALID_VALUE};
  });
}

SIM_API(cuGraphNodeGetType)(CUgraphNode node, CUgraphNodeType* type) {
  return WithDriver([&](Call& call) {
    Require(type != nullptr);
    *type = NodeOf(call, node).work->type();
  });
}

SIM_API(cuGraphGetNodes)(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return WithDriver([&](Call& call) {
    std::vector<GraphNode*> all;
    for (const auto& node : GraphOf(call, graph).nodes) all.push_back(node.get());
    WriteNodes(all, nodes, count);
  });
}

SIM_API(cuGraphGetRootNodes)(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return WithDriver([&](Call& call) {
    std::vector<GraphNode*> roots;
    for (const auto& node : GraphOf(call, graph).nodes) {
      if (node->after.empty()) roots.push_back(node.get());
    }
    WriteNodes(roots, nodes, count);
  });
}

SIM_API(cuGraphDestroyNode)(CUgraphNode handle) {
  return WithDriver([&](Call& call) {
    GraphNode& node = NodeOf(call, handle);
    const CUgraphNodeType type = node.work->type();
    Require(type != CU_GRAPH_NODE_TYPE_MEM_ALLOC && type != CU_GRAPH_NODE_TYPE_MEM_FREE,
            CUDA_ERROR_NOT_SUPPORTED);
    node.graph->Remove(&node);
  });
}

SIM_API(cuGraphGetEdges)(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return GetEdges(graph, from, to, nullptr, count);
}
SIM_API(cuGraphGetEdges_v2)
(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count) {
  return GetEdges(graph, from, to, data, count);
}
SIM_API(cuGraphNodeGetDependencies)(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return GetDependencies(node, nodes, nullptr, count);
}
SIM_API(cuGraphNodeGetDependencies_v2)
(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
  return GetDependencies(node, nodes, data, count);
}
SIM_API(cuGraphNodeGetDependentNodes)(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return GetDependents(node, nodes, nullptr, count);
}
SIM_API(cuGraphNodeGetDependentNodes_v2)
(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
  return GetDependents(node, nodes, data, count);
}
SIM_API(cuGraphAddDependencies)
(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return AddDependencies(graph, from, to, nullptr, count);
}
SIM_API(cuGraphAddDependencies_v2)
(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data,
 size_t count) {
  return AddDependencies(graph, from, to, data, count);
}
SIM_API(cuGraphRemoveDependencies)
(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return RemoveDependencies(graph, from, to, count);
}
SIM_API(cuGraphRemoveDependencies_v2)
(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data,
 size_t count) {
  (void)data;
  return RemoveDependencies(graph, from, to, count);
}
