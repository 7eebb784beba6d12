#include "interposer/entry/graph_reader.h"

#include <map>
#include <unordered_map>

#include "interposer/driver/driver_api.h"
#include "interposer/entry/parameter_scan.h"
#include "interposer/entry/transfers.h"
#include "interposer/ledger/conditional_bodies.h"
#include "interposer/runtime/runtime.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::ConditionalBodies;
using interposer::JobMemory;

bool MightBeManaged(CUdeviceptr word) {
  return interposer::FindJob(
             [word](const JobMemory* job) { return job->Bounds().Contain(word); }) != nullptr;
}

NodeFacts Unread() {
  NodeFacts facts;
  facts.complete = false;
  facts.names_all = true;
  return facts;
}

NodeFacts ReadKernel(CUfunction function, Grid grid, void** parameters, void** extra) {
  NodeFacts facts;
  facts.kernels.push_back(function);
  auto add = [&](CUdeviceptr word) {
    if (MightBeManaged(word) || interposer::HostRegions::MightHold(word))
      facts.words.push_back(word);
  };
  ScratchParameters scratch;
  if (parameters) {
    ScanParameters(ParametersOf(function, &scratch), parameters, grid, add);
  } else if (extra) {
    ScanExtra(ParametersOf(function, &scratch), extra, add);
  }
  return facts;
}

NodeFacts AskKernelNode(CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS_v2 params = {};
  if (Driver().cuGraphKernelNodeGetParams_v2) {
    return Driver().cuGraphKernelNodeGetParams_v2(node, &params) == CUDA_SUCCESS
               ? ReadKernelNode(params)
               : Unread();
  }
  CUDA_KERNEL_NODE_PARAMS_v1 older = {};
  if (Driver().cuGraphKernelNodeGetParams(node, &older) != CUDA_SUCCESS) return Unread();
  return ReadKernel(older.func, {older.gridDimX, older.gridDimY}, older.kernelParams, older.extra);
}

NodeFacts AskCopyNode(CUgraphNode node) {
  CUDA_MEMCPY3D copy = {};
  return Driver().cuGraphMemcpyNodeGetParams(node, &copy) == CUDA_SUCCESS ? ReadCopyNode(copy)
                                                                          : Unread();
}

NodeFacts AskSetNode(CUgraphNode node) {
  CUDA_MEMSET_NODE_PARAMS set = {};
  return Driver().cuGraphMemsetNodeGetParams(node, &set) == CUDA_SUCCESS ? ReadSetNode(set)
                                                                         : Unread();
}

NodeFacts AskBatchNode(CUgraphNode node) {
  CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {};
  const bool told = Driver().cuGraphBatchMemOpNodeGetParams &&
                    Driver().cuGraphBatchMemOpNodeGetParams(node, &batch) == CUDA_SUCCESS;
  return told ? ReadBatchNode(batch.paramArray, batch.count) : Unread();
}

NodeFacts AskAllocNode(CUgraphNode node) {
  CUDA_MEM_ALLOC_NODE_PARAMS alloc = {};
  NodeFacts facts;
  if (Driver().cuGraphMemAllocNodeGetParams &&
      Driver().cuGraphMemAllocNodeGetParams(node, &alloc) == CUDA_SUCCESS) {
    facts.allocated_bytes = interposer::RoundUp(alloc.bytesize, interposer::kGranuleBytes);
  }
  return facts;
}

NodeFacts AskNode(CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  if (Driver().cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return Unread();
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return AskKernelNode(node);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return AskCopyNode(node);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return AskSetNode(node);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return AskBatchNode(node);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return AskAllocNode(node);
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
      VisibleWork::NoteProgramActsInStreams();
      return {};
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return ConditionalBodies::Instance().Of(node) ? NodeFacts() : Unread();
    default:
      return {};
  }
}

std::vector<CUgraphNode> NodesOf(CUgraph graph) {
  size_t count = 0;
  if (Driver().cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) return {};
  std::vector<CUgraphNode> nodes(count);
  if (Driver().cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return {};
  nodes.resize(count);
  return nodes;
}

// cuGraphGetEdges fails for edges that carry data, so the newer query is preferred.
CUresult AskEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                  size_t* count) {
  return Driver().cuGraphGetEdges_v2 ? Driver().cuGraphGetEdges_v2(graph, from, to, data, count)
                                     : Driver().cuGraphGetEdges(graph, from, to, count);
}

std::multimap<CUgraphNode, CUgraphNode> WaitersIn(CUgraph graph) {
  size_t count = 0;
  if (AskEdges(graph, nullptr, nullptr, nullptr, &count) != CUDA_SUCCESS || !count) return {};
  std::vector<CUgraphNode> from(count), to(count);
  std::vector<CUgraphEdgeData> data(count);
  if (AskEdges(graph, from.data(), to.data(), data.data(), &count) != CUDA_SUCCESS) return {};
  std::multimap<CUgraphNode, CUgraphNode> waiters;
  for (size_t i = 0; i < count; ++i) waiters.emplace(from[i], to[i]);
  return waiters;
}

std::vector<CUgraphNode> OrderedNodesOf(CUgraph graph) {
  const std::vector<CUgraphNode> nodes = NodesOf(graph);
  const auto waiters = WaitersIn(graph);
  std::unordered_map<CUgraphNode, size_t> awaited;
  for (const auto& [node, waiter] : waiters) ++awaited[waiter];
  std::vector<CUgraphNode> ordered;
  for (CUgraphNode node : nodes) {
    if (!awaited.contains(node)) ordered.push_back(node);
  }
  for (size_t i = 0; i < ordered.size(); ++i) {
    const auto [first, last] = waiters.equal_range(ordered[i]);
    for (auto at = first; at != last; ++at) {
      if (--awaited[at->second] == 0) ordered.push_back(at->second);
    }
  }
  return ordered;
}

// A child graph's nodes have own handles: a program may change them, or exchange the child.
std::vector<CUgraph> GraphsIn(CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUgraph child = nullptr;
  Driver().cuGraphNodeGetType(node, &type);
  const bool nests = type == CU_GRAPH_NODE_TYPE_GRAPH &&
                     Driver().cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS;
  if (nests) return {child};
  if (type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return {};
  return ConditionalBodies::Instance().Of(node).value_or(std::vector<CUgraph>());
}

bool IsConditional(CUgraphNode node) { return ConditionalBodies::Instance().Of(node).has_value(); }

void ReadInto(CUgraph graph, bool in_body, GraphFacts* facts) {
  for (CUgraphNode node : OrderedNodesOf(graph)) {
    const size_t place = facts->size();
    NodeFacts& here = (*facts)[node];
    here = AskNode(node);
    here.place = place;
    here.in_body = in_body;
    for (CUgraph inner : GraphsIn(node)) ReadInto(inner, in_body || IsConditional(node), facts);
  }
}

}  // namespace

void NoteAdded(CUgraphNode node, const CUgraphNodeParams& params) {
  if (params.type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return;
  const CUDA_CONDITIONAL_NODE_PARAMS& made = params.conditional;
  ConditionalBodies::Instance().Add(node, {made.phGraph_out, made.phGraph_out + made.size});
}

void ForgetNode(CUgraphNode node) {
  if (ConditionalBodies::Instance().empty()) return;
  for (CUgraph inner : GraphsIn(node)) ForgetNodes(inner);
  ConditionalBodies::Instance().Forget(node);
}

void ForgetNodes(CUgraph graph) {
  if (ConditionalBodies::Instance().empty()) return;
  for (CUgraphNode node : NodesOf(graph)) ForgetNode(node);
}

GraphFacts ReadGraph(CUgraph graph) {
  GraphFacts facts;
  ReadInto(graph, false, &facts);
  return facts;
}

NodeFacts ReadWhole(CUgraph graph) {
  NodeFacts all;
  const GraphFacts nodes = ReadGraph(graph);
  for (const NodeFacts* facts : InOrder(nodes)) all.Add(facts->AsLaunched());
  return all;
}

template <class KernelNodeParams>
NodeFacts ReadKernelNode(const KernelNodeParams& params) {
  const CUfunction function = params.func ? params.func : reinterpret_cast<CUfunction>(params.kern);
  return ReadKernel(function, {params.gridDimX, params.gridDimY}, params.kernelParams,
                    params.extra);
}
template NodeFacts ReadKernelNode(const CUDA_KERNEL_NODE_PARAMS_v2& params);
template NodeFacts ReadKernelNode(const CUDA_KERNEL_NODE_PARAMS_v3& params);
template <>
NodeFacts ReadKernelNode(const CUDA_KERNEL_NODE_PARAMS_v1& params) {
  return ReadKernel(params.func, {params.gridDimX, params.gridDimY}, params.kernelParams,
                    params.extra);
}

NodeFacts ReadCopyNode(const CUDA_MEMCPY3D& copy) {
  NodeFacts facts;
  facts.writes.emplace_back(copy);
  return facts;
}

template <class SetNodeParams>
NodeFacts ReadSetNode(const SetNodeParams& set) {
  NodeFacts facts;
  facts.writes.emplace_back(
      interposer::SetFacts{set.dst, set.width * set.elementSize, set.height, set.pitch});
  return facts;
}
template NodeFacts ReadSetNode(const CUDA_MEMSET_NODE_PARAMS_v1& set);
template NodeFacts ReadSetNode(const CUDA_MEMSET_NODE_PARAMS_v2& set);

// Barriers and flushes name no address.
NodeFacts ReadBatchNode(const CUstreamBatchMemOpParams* operations, unsigned int count) {
  NodeFacts facts;
  for (unsigned int i = 0; operations && i < count; ++i) {
    const CUstreamBatchMemOpType type = operations[i].operation;
    if (type == CU_STREAM_MEM_OP_WAIT_VALUE_32 || type == CU_STREAM_MEM_OP_WAIT_VALUE_64) {
      VisibleWork::NoteProgramActsInStreams();
      facts.words.push_back(operations[i].waitValue.address);
    }
    if (type == CU_STREAM_MEM_OP_WRITE_VALUE_32 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64)
      facts.words.push_back(operations[i].writeValue.address);
  }
  return facts;
}

NodeFacts ReadNode(const CUgraphNodeParams& params) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return ReadKernelNode(params.kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return ReadCopyNode(params.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return ReadSetNode(params.memset);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return ReadBatchNode(params.memOp.paramArray, params.memOp.count);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return ReadWhole(params.graph.graph);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return Unread();
    default:
      return {};
  }
}

}  // namespace spillway::entry
