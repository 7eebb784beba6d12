// Reads the addresses that a graph's nodes name, from the driver or from a call's parameters. One
// thread at a time may use a graph.
//
// Keeps words that may be addresses; notes the bodies of conditional nodes, and nodes in which the
// program acts (transfers.h).
#pragma once

#include "interposer/ledger/graphs.h"

namespace spillway::entry {

using interposer::GraphFacts;
using interposer::NodeFacts;

// A node was added: what the driver says of it now alone.
void NoteAdded(CUgraphNode node, const CUgraphNodeParams& params);
void ForgetNode(CUgraphNode node);
void ForgetNodes(CUgraph graph);

GraphFacts ReadGraph(CUgraph graph);
NodeFacts ReadWhole(CUgraph graph);

template <class KernelNodeParams>
NodeFacts ReadKernelNode(const KernelNodeParams& params);
NodeFacts ReadCopyNode(const CUDA_MEMCPY3D& copy);
template <class SetNodeParams>
NodeFacts ReadSetNode(const SetNodeParams& set);
NodeFacts ReadBatchNode(const CUstreamBatchMemOpParams* operations, unsigned int count);
// For a child graph: all its nodes.
NodeFacts ReadNode(const CUgraphNodeParams& params);

}  // namespace spillway::entry
