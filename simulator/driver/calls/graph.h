// Graphs as a program builds them, and their instantiated form.
//
// A NodeWork is constant and shared with clones and executables. New parameters make a new one.
//
// Invariants
//  1. Dependencies stay inside one graph. Cycles are legal until instantiation, which refuses them.
//  2. An executable is flat: a child graph's nodes stand among the others, before its own node.
//  3. Launches of one executable follow one another; each starts after the stream's earlier work.
//  4. GraphTables knows every live graph and node; any other handle is invalid.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "simulator/driver/calls/call.h"
#include "simulator/driver/device/graph_tables.h"

namespace spillway::simulator {

struct Graph;
using GraphRef = std::shared_ptr<Graph>;

struct GraphPass {
  Simulator& sim;
  Operation like;      // has what comes from the launch's stream
  Engine::Lock* lock;  // null inside an effect

  OperationRef Submit(Operation operation, const std::vector<OperationRef>& after);
  OperationRef Submit(OperationRef operation, const std::vector<OperationRef>& after);
};

class NodeWork {
 public:
  virtual ~NodeWork() = default;

  virtual CUgraphNodeType type() const = 0;
  // Pointers are valid as long as this object.
  virtual void Describe(CUgraphNodeParams& params) const = 0;
  virtual OperationRef Run(GraphPass& pass, const std::vector<OperationRef>& after) const = 0;
};
using WorkRef = std::shared_ptr<const NodeWork>;

struct GraphEdge {
  GraphNode* from;
  CUgraphEdgeData data;
};

struct GraphNode {
  std::uint64_t id;
  std::uint64_t original_id;  // of the node that it was cloned from, or its own
  Graph* graph;
  WorkRef work;
  std::vector<GraphEdge> after = {};
  std::map<int, CUkernelNodeAttrValue> attributes = {};

  bool ComesAfter(const GraphNode* other) const;
};

// Kept alive by a graph or an executable, with their reference counts.
using HeldObjects = std::map<UserObject*, unsigned>;

struct Graph : std::enable_shared_from_this<Graph> {
  explicit Graph(GraphTables& in) : tables(in) { tables.graphs.insert(this); }
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  GraphNode& Add(WorkRef work, const std::vector<GraphNode*>& after,
                 const CUgraphEdgeData* data = nullptr);
  void Remove(GraphNode* node);
  GraphRef Clone() const;
  // Throws CUDA_ERROR_INVALID_VALUE for a cycle. Ties go to the node that was added first.
  std::vector<GraphNode*> InOrder() const;
  bool HasMemoryNodes() const;
  bool HasConditionalNodes() const;
  // At most one executable, no clone and no child node of it.
  bool IsSingular() const { return HasMemoryNodes() || HasConditionalNodes(); }

  GraphTables& tables;
  std::vector<std::unique_ptr<GraphNode>> nodes;
  HeldObjects objects;
  int executables = 0;
};

std::set<const GraphNode*> AncestorsOf(const std::vector<GraphNode*>& nodes);

struct ExecNode {
  std::uint64_t id;  // of the graph's node
  CUgraphNodeType type;
  WorkRef work;
  std::vector<std::size_t> after;
  bool enabled = true;
};

struct GraphExec {
  std::vector<ExecNode> nodes;
  unsigned long long flags = 0;
  std::weak_ptr<Graph> source;
  HeldObjects objects = {};
  OperationRef last_launch = nullptr;

  ExecNode& NodeOf(std::uint64_t id);
};

std::vector<ExecNode> Flatten(const Graph& graph);
void LaunchGraph(Call& call, GraphExec& executable, Stream& stream);

}  // namespace spillway::simulator
