// Which device memory each instantiated graph names: what its nodes were given, as facts.
//
// Called by the hooks of graphs (entry/hooks_graph.cpp) on any thread; synchronises itself. Owns
// the facts; what was found for a launch stays valid while the caller holds it, whatever is changed
// meanwhile.
//
// A graph that is launched needs all that its nodes name, together, from the launch to its end;
// between launches it needs nothing, and its memory moves as any other does. So an executable holds
// nothing: it is looked up at each launch.
//
// Note [What a graph names is asked of the driver]
// Facts are not gathered while a program captures or adds nodes; they are read from the finished
// graph when it is instantiated. So captured and added nodes, clones, children and changed
// parameters are all one case, and what a program removes or never instantiates costs nothing.
//
// Note [Freed while a graph names it]
// Memory that is freed while an executable names it is free: its addresses may serve another
// allocation. That is CUDA's own rule: after cuMemFree the driver may give the addresses to the
// next cuMemAlloc, and a launch that still touches them is the program's error. A launch that only
// carries them, as parameters that no kernel follows, is not: freed addresses among those of a
// launch are passed over.
//
// Invariants
//  1. An executable that is not known is one whose instantiation was not seen.
//  2. What nodes write is told in an order in which they may run: a copy comes behind what brought
//  the bytes it copies.
//  3. Facts only grow between an instantiation and the next update of all nodes: a changed node's
//  old facts go. What a
//     disabled node names stays named, but nothing is taken for read or written by it: the memory
//     may be gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

// What one node writes without reading anything.
struct SetFacts {
  CUdeviceptr base;
  std::size_t width_bytes;
  std::size_t rows;
  std::size_t pitch_bytes;
};

using WriteFacts = std::variant<CUDA_MEMCPY3D, SetFacts>;

struct NodeFacts {
  std::vector<CUfunction> kernels;
  std::vector<CUdeviceptr> words;   // of kernels and stream memory operations: may be addresses
  std::vector<WriteFacts> writes;   // in the order in which they happen
  std::size_t allocated_bytes = 0;  // by memory nodes
  bool complete = true;             // false: it may name more than was found
  bool enabled = true;              // false: launches leave the node out
  std::size_t place = 0;  // in an order in which each node comes after those that it waits for

  void Add(NodeFacts&& other);
};

// By the handle of the node in the graph that was instantiated.
using GraphFacts = std::map<CUgraphNode, NodeFacts>;

std::vector<const NodeFacts*> InOrder(const GraphFacts& nodes);

class GraphLedger {
 public:
  void Instantiated(CUgraphExec executable, GraphFacts facts);
  // All nodes have other parameters now, those of another graph with nodes of its own. The
  // executable's are still named by the graph that it was made from, and those that were switched
  // off remain so (programming guide, "Individual node enable"). Nothing happens to executables
  // that are not known.
  void Updated(CUgraphExec executable, GraphFacts facts);
  void NodeChanged(CUgraphExec executable, CUgraphNode node, NodeFacts facts);
  void NodeSwitched(CUgraphExec executable, CUgraphNode node, bool enabled);

  struct Launch {
    std::shared_ptr<const NodeFacts> facts;  // null: not known
    bool brings_new_kernels = false;         // that were not looked at in this executable
  };
  Launch AboutToLaunch(CUgraphExec executable);
  // What a launch with these facts has done was looked at.
  void MarkScanned(CUgraphExec executable, const NodeFacts& facts);

  struct Executable {
    GraphFacts nodes;
    std::set<CUgraphNode> off;  // of the graph that it was made from
    bool is_updated =
        false;  // `nodes` are of another graph: which is which is not known, but for one alone
    std::shared_ptr<const NodeFacts> sum;  // null when a node has changed since it was made
    std::vector<CUfunction> scanned;       // kernels, in order
  };
  using Executables = std::unordered_map<CUgraphExec, Executable>;
  // Of an executable that is about to be destroyed: the driver may give its handle to another
  // thread at once.
  using Taken = Executables::node_type;  // empty: not known
  Taken Take(CUgraphExec executable);
  // It was not destroyed.
  void PutBack(Taken taken);
  // By its memory nodes.
  static std::size_t AllocatedBytes(const Taken& taken);

  std::size_t size() const;

 private:
  static std::shared_ptr<const NodeFacts> SumOf(const Executable& executable);

  mutable base::Mutex mutex_{base::LockRank::kGraphs};
  Executables executables_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer
