// The body graphs of conditional nodes. The driver names them only to the call that adds the node.
//
// Synchronises itself; its lock is a leaf. A graph with conditional nodes cannot be cloned or
// nested (cuda.h, CU_GRAPH_NODE_TYPE_CONDITIONAL), so a node that was never added here is rare.
//
// Invariants
//  1. A known node is alive: its handle may be another node's once it is destroyed.
// Never: calls the driver.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

class ConditionalBodies {
 public:
  static ConditionalBodies& Instance();

  void Add(CUgraphNode node, std::vector<CUgraph> bodies);
  std::optional<std::vector<CUgraph>> Of(CUgraphNode node) const;
  void Forget(CUgraphNode node);
  void ForgetAll();
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

 private:
  mutable base::Mutex mutex_{base::LockRank::kGraphs};
  std::unordered_map<CUgraphNode, std::vector<CUgraph>> bodies_ SPILLWAY_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};
};

}  // namespace spillway::interposer
