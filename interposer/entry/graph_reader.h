// Reads what the nodes of a graph name, from the driver's own answers or from the parameters of a
// call.
//
// Called by the hooks of graphs on the program's thread (a graph is not to be used by two threads
// at once). Owns nothing. Only words that may be addresses of ours are kept. Nodes in which the
// program acts are noted as such (transfers.h).
#pragma once

#include "interposer/ledger/graphs.h"

namespace spillway::entry {

using interposer::GraphFacts;
using interposer::NodeFacts;

GraphFacts ReadGraph(CUgraph graph);
// All nodes of a graph as one.
NodeFacts ReadWhole(CUgraph graph);

template <class KernelNodeParams>
NodeFacts ReadKernelNode(const KernelNodeParams& params);
NodeFacts ReadCopyNode(const CUDA_MEMCPY3D& copy);
template <class SetNodeParams>
NodeFacts ReadSetNode(const SetNodeParams& set);
NodeFacts ReadBatchNode(const CUstreamBatchMemOpParams* operations, unsigned int count);
// The general form; of a child graph, all its nodes.
NodeFacts ReadNode(const CUgraphNodeParams& params);

}  // namespace spillway::entry
