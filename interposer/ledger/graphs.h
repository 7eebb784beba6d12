// The device memory that each instantiated graph names.
//
// Synchronises itself. A launch's facts stay valid while the caller holds them.
//
// A launch needs all memory of the graph's nodes until its end. Between launches it moves, so an
// executable is looked up at each launch.
//
// Note [What a graph names is asked of the driver]
// Facts are read from the finished graph when it is instantiated, not while a program captures or
// adds nodes. So captured and added nodes, clones, children and changed parameters are one case.
// Nodes that are removed or never instantiated cost nothing.
//
// Note [Freed while a graph names it]
// Memory that is freed while an executable names it is free: after cuMemFree the driver may give
// its addresses to the next cuMemAlloc. A launch that touches them is the program's error; one that
// only carries them in unused parameters is correct. So freed addresses among a launch's addresses
// are skipped.
//
// Note [Bodies of conditional nodes]
// The device decides whether a body runs, and how often. A launch uses all its bodies' memory, but
// their copies and sets promise nothing: they may be skipped, or come again after later writes. So
// the launch counts as incomplete. An unknown body may use any memory: the launch names all of it.
//
// Invariants
//  1. An unknown executable is one whose instantiation was not seen.
//  2. Writes are in a possible order of execution: a copy comes after the writes of its source.
//  3. A changed node loses its old facts; otherwise facts only grow until all nodes are updated. A
//     disabled node's addresses stay named, but not as read or written: the memory may be gone.
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

// Bytes that one node writes without reading any.
struct SetFacts {
  CUdeviceptr base;
  std::size_t width_bytes;
  std::size_t rows;
  std::size_t pitch_bytes;
};

using WriteFacts = std::variant<CUDA_MEMCPY3D, SetFacts>;

struct NodeFacts {
  std::vector<CUfunction> kernels;
  std::vector<CUdeviceptr> words;  // of kernels and stream memory operations: may be addresses
  std::vector<WriteFacts> writes;
  std::size_t allocated_bytes = 0;  // by memory nodes
  bool complete = true;             // false: it may put unknown bytes into memory
  bool names_all = false;           // it may use memory that was not found
  bool in_body = false;             // of a conditional node
  bool enabled = true;              // false: launches skip the node
  std::size_t place = 0;            // in a topological order

  void Add(NodeFacts&& other);
  NodeFacts AsLaunched() const;
};

using GraphFacts = std::map<CUgraphNode, NodeFacts>;

std::vector<const NodeFacts*> InOrder(const GraphFacts& nodes);

class GraphLedger {
 public:
  void Instantiated(CUgraphExec executable, GraphFacts facts);
  // All nodes now have the parameters of another graph's nodes. The executable's nodes are still
  // named by the graph it was made from, and disabled nodes stay disabled (programming guide,
  // "Individual node enable"). Ignores unknown executables.
  void Updated(CUgraphExec executable, GraphFacts facts);
  void NodeChanged(CUgraphExec executable, CUgraphNode node, NodeFacts facts);
  void NodeSwitched(CUgraphExec executable, CUgraphNode node, bool enabled);

  struct Launch {
    std::shared_ptr<const NodeFacts> facts;  // null: unknown executable
    bool brings_new_kernels = false;         // kernels that no scan of this executable has checked
  };
  Launch AboutToLaunch(CUgraphExec executable);
  void MarkScanned(CUgraphExec executable, const NodeFacts& facts);

  struct Executable {
    GraphFacts nodes;
    std::set<CUgraphNode> off;  // disabled; of the graph that it was made from
    bool is_updated = false;
    std::shared_ptr<const NodeFacts> sum;  // null if a node has changed since it was made
    std::vector<CUfunction> scanned;       // kernels, sorted
  };
  using Executables = std::unordered_map<CUgraphExec, Executable>;
  using Taken = Executables::node_type;  // empty: unknown
  Taken Take(CUgraphExec executable);
  void PutBack(Taken taken);

  std::size_t size() const;

 private:
  static std::shared_ptr<const NodeFacts> SumOf(const Executable& executable);

  mutable base::Mutex mutex_{base::LockRank::kGraphs};
  Executables executables_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer
