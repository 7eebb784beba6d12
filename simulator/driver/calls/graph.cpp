#include "simulator/driver/calls/graph.h"

#include <algorithm>
#include <unordered_map>

#include "simulator/driver/calls/conditional.h"
#include "simulator/driver/calls/node_work.h"

namespace spillway::simulator {
namespace {

OperationRef Nothing(GraphPass& pass, const std::vector<OperationRef>& after) {
  Operation nothing;
  nothing.name = "graph edge";
  return pass.Submit(std::move(nothing), after);
}

using Places = std::unordered_map<const GraphNode*, std::size_t>;

std::vector<std::size_t> LeavesFrom(const std::vector<ExecNode>& nodes, std::size_t first) {
  std::set<std::size_t> leaves;
  for (std::size_t i = first; i < nodes.size(); ++i) leaves.insert(i);
  for (std::size_t i = first; i < nodes.size(); ++i) {
    for (const std::size_t before : nodes[i].after) leaves.erase(before);
  }
  return {leaves.begin(), leaves.end()};
}

void FlattenInto(const Graph& graph, const std::vector<std::size_t>& before_all,
                 std::vector<ExecNode>& out) {
  Places places;
  for (const GraphNode* node : graph.InOrder()) {
    std::vector<std::size_t> after = node->after.empty() ? before_all : std::vector<std::size_t>{};
    for (const GraphEdge& edge : node->after) after.push_back(places.at(edge.from));
    WorkRef work = node->work;
    if (const auto* child = dynamic_cast<const ChildWork*>(work.get())) {
      const std::size_t first = out.size();
      FlattenInto(*child->graph(), after, out);
      if (out.size() > first) after = LeavesFrom(out, first);
      work = std::make_shared<EmptyWork>();
    }
    if (const auto* conditional = dynamic_cast<const ConditionalWork*>(work.get()))
      work = conditional->Instantiate();
    places[node] = out.size();
    out.push_back({node->id, node->work->type(), std::move(work), std::move(after)});
  }
}

template <class IsMeant>
bool AnyNode(const Graph& graph, IsMeant is_meant) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const auto& node) {
    const auto* child = dynamic_cast<const ChildWork*>(node->work.get());
    return child == nullptr ? is_meant(node->work->type()) : AnyNode(*child->graph(), is_meant);
  });
}

// Returns the allocations that the launch keeps.
std::vector<GraphAllocationRef> PrepareMemory(Call& call, const GraphExec& executable) {
  GraphMemory& memory = call.sim.graph_memory;
  const bool frees_itself =
      (executable.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  std::vector<GraphAllocationRef> used;
  for (const ExecNode& node : executable.nodes) {
    if (const auto* alloc = dynamic_cast<const AllocWork*>(node.work.get())) {
      Require(frees_itself || !memory.IsLive(alloc->allocation()->base));
      alloc->allocation()->AllocateMemory();
    }
  }
  for (const ExecNode& node : executable.nodes) {
    if (const auto* alloc = dynamic_cast<const AllocWork*>(node.work.get())) {
      const GraphAllocationRef& allocation = alloc->allocation();
      if (memory.RemoveLive(allocation->base) != nullptr)
        call.sim.allocations.Remove(allocation->base);
      memory.MakeLive(allocation);
      call.sim.allocations.Add({.base = allocation->base,
                                .size_bytes = allocation->size_bytes,
                                .kind = AllocationKind::kGraph,
                                .context = call.context,
                                .device = allocation->device.ordinal});
      used.push_back(allocation);
    } else if (const auto* free = dynamic_cast<const FreeWork*>(node.work.get())) {
      const GraphAllocationRef freed = memory.RemoveLive(free->address());
      Require(freed != nullptr);
      call.sim.allocations.Remove(free->address());
      used.push_back(freed);
    }
  }
  return used;
}

}  // namespace

OperationRef GraphPass::Submit(Operation operation, const std::vector<OperationRef>& after) {
  return Submit(std::make_shared<Operation>(std::move(operation)), after);
}

OperationRef GraphPass::Submit(OperationRef operation, const std::vector<OperationRef>& after) {
  operation->priority = like.priority;
  if (operation->device < 0) operation->device = like.device;
  operation->peers = like.peers;
  operation->errors = like.errors;
  if (lock != nullptr) {
    sim.engine.Submit(*lock, operation, after);
  } else {
    sim.engine.SubmitWithin(operation, after);
  }
  return operation;
}

bool GraphNode::ComesAfter(const GraphNode* other) const {
  return std::any_of(after.begin(), after.end(),
                     [&](const GraphEdge& edge) { return edge.from == other; });
}

Graph::~Graph() {
  for (const auto& node : nodes) tables.nodes.erase(node.get());
  tables.graphs.erase(this);
}

GraphNode& Graph::Add(WorkRef work, const std::vector<GraphNode*>& after,
                      const CUgraphEdgeData* data) {
  const std::uint64_t id = tables.next_id++;
  auto node = std::make_unique<GraphNode>(GraphNode{id, id, this, std::move(work)});
  for (std::size_t i = 0; i < after.size(); ++i) {
    node->after.push_back({after[i], data == nullptr ? CUgraphEdgeData{} : data[i]});
  }
  tables.nodes.insert(node.get());
  nodes.push_back(std::move(node));
  return *nodes.back();
}

void Graph::Remove(GraphNode* node) {
  for (const auto& other : nodes) {
    std::erase_if(other->after, [&](const GraphEdge& edge) { return edge.from == node; });
  }
  tables.nodes.erase(node);
  std::erase_if(nodes, [&](const auto& other) { return other.get() == node; });
}

GraphRef Graph::Clone() const {
  auto clone = std::make_shared<Graph>(tables);
  std::unordered_map<const GraphNode*, GraphNode*> twins;
  for (const auto& node : nodes) {
    WorkRef work = node->work;
    if (const auto* child = dynamic_cast<const ChildWork*>(work.get())) {
      work = std::make_shared<ChildWork>(child->graph()->Clone());
    }
    GraphNode& twin = clone->Add(std::move(work), {});
    twin.original_id = node->id;
    twin.attributes = node->attributes;
    twins[node.get()] = &twin;
  }
  for (const auto& node : nodes) {
    for (const GraphEdge& edge : node->after) {
      twins.at(node.get())->after.push_back({twins.at(edge.from), edge.data});
    }
  }
  clone->objects = objects;
  for (const auto& [object, count] : objects) object->references += count;
  return clone;
}

std::vector<GraphNode*> Graph::InOrder() const {
  std::vector<GraphNode*> order;
  std::set<const GraphNode*> placed;
  while (order.size() < nodes.size()) {
    const std::size_t before = order.size();
    for (const auto& node : nodes) {
      if (placed.contains(node.get())) continue;
      const bool ready =
          std::all_of(node->after.begin(), node->after.end(),
                      [&](const GraphEdge& edge) { return placed.contains(edge.from); });
      if (!ready) continue;
      placed.insert(node.get());
      order.push_back(node.get());
    }
    Require(order.size() > before);
  }
  return order;
}

bool Graph::HasMemoryNodes() const {
  return AnyNode(*this, [](CUgraphNodeType type) {
    return type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE;
  });
}

bool Graph::HasConditionalNodes() const {
  return AnyNode(*this,
                 [](CUgraphNodeType type) { return type == CU_GRAPH_NODE_TYPE_CONDITIONAL; });
}

std::set<const GraphNode*> AncestorsOf(const std::vector<GraphNode*>& nodes) {
  std::set<const GraphNode*> found;
  std::vector<const GraphNode*> open(nodes.begin(), nodes.end());
  while (!open.empty()) {
    const GraphNode* const node = open.back();
    open.pop_back();
    if (!found.insert(node).second) continue;
    for (const GraphEdge& edge : node->after) open.push_back(edge.from);
  }
  return found;
}

ExecNode& GraphExec::NodeOf(std::uint64_t id) {
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [&](const ExecNode& node) { return node.id == id; });
  Require(found != nodes.end());
  return *found;
}

std::vector<ExecNode> Flatten(const Graph& graph) {
  std::vector<ExecNode> nodes;
  FlattenInto(graph, {}, nodes);
  return nodes;
}

void LaunchGraph(Call& call, GraphExec& executable, Stream& stream) {
  std::vector<GraphAllocationRef> memory = PrepareMemory(call, executable);
  Operation begin;
  begin.name = "graph begin";
  begin.effect = [conditions = ConditionsOf(executable.nodes)] {
    for (const ConditionRef& condition : conditions) {
      if (condition->has_default) condition->value = condition->at_launch;
    }
  };
  const OperationRef first = call.Submit(stream, std::move(begin), {executable.last_launch});
  GraphPass pass{call.sim, {}, &call.lock};
  BelongTo(stream, pass.like);
  std::vector<OperationRef> done;
  for (const ExecNode& node : executable.nodes) {
    std::vector<OperationRef> after = {first};
    for (const std::size_t before : node.after) after.push_back(done[before]);
    done.push_back(node.enabled ? node.work->Run(pass, after) : Nothing(pass, after));
  }
  Operation end;
  end.name = "graph end";
  end.effect = [memory] {};  // keeps the addresses while the launch runs
  executable.last_launch = call.Submit(stream, std::move(end), done);
  for (const GraphAllocationRef& allocation : memory) allocation->last_use = executable.last_launch;
}

}  // namespace spillway::simulator
