// An operation graph's engines, and the heuristics' order of them.
//
// A graph with one convolution has an engine per algorithm of the older interface
// (cudnn/convolution_algorithms.h). Any other graph has two: one kernel for all of it, or one
// operation after the other with results in the workspace.
//
// Invariant: in the compute mode `full`, only graphs that are computed (chain.h) have engines.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "simulator/dnn/common/driver_link.h"
#include "simulator/dnn/graph/operation_graph.h"

namespace spillway::simulator::dnn::graph {

struct EngineModel {
  std::int32_t index;
  std::int32_t is_supported;
  std::uint32_t numerical_notes;  // a bit per cudnnBackendNumericalNote_t
  std::uint32_t behavior_notes;   // a bit per cudnnBackendBehaviorNote_t
  std::uint64_t workspace_bytes;
  double effective_flops;
  double workspace_passes;  // how often the workspace's bytes cross device memory
};

struct Engine {
  std::shared_ptr<const OperationGraph> graph;  // null behind a plan made of its text
  EngineModel model;
};

int EngineCount(const OperationGraph& graph);
EngineModel ModelEngine(const OperationGraph& graph, int index);

// Best first; of the mode FALLBACK those with the least workspace.
std::vector<EngineModel> RankEngines(const OperationGraph& graph, cudnnBackendHeurMode_t mode,
                                     const DeviceRates& rates);

// Prints the graph once when it has no engine.
bool CanExecute(const OperationGraph& graph);

}  // namespace spillway::simulator::dnn::graph
