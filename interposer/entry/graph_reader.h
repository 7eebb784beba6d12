// Reads the addresses that a graph's nodes name, from the driver or from a call's parameters.
//
// The graph hooks call it on the program's thread (one thread at a time may use a graph). Owns
// nothing. Keeps words that may be addresses; notes nodes in which the program acts (transfers.h).
#pragma once

#include "interposer/ledger/graphs.h"

namespace spillway::entry {

using interposer::GraphFacts;
using interposer::NodeFacts;

GraphFacts ReadGraph(CUgraph graph);
NodeFacts ReadWhole(CUgraph graph);

template <class KernelNodeParams>
NodeFacts ReadKernelNode(const KernelNodeParams& params);
NodeFacts ReadCopyNode(const CUDA_MEMCPY3D& copy);
template <class SetNodeParams>
NodeFacts ReadSetNode(const SetNodeParams& set);
NodeFacts ReadBatchNode(const CUstreamBatchMemOpParams* operations, unsigned int count);
// The general form. For a child graph: all its nodes.
NodeFacts ReadNode(const CUgraphNodeParams& params);

}  // namespace spillway::entry
