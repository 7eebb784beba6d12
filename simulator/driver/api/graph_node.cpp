#include "simulator/driver/calls/conditional.h"
#include "simulator/driver/calls/graph_handles.h"
#include "simulator/driver/calls/node_work.h"

namespace spillway::simulator {
namespace {

CUgraphNodeParams Typed(CUgraphNodeType type) {
  CUgraphNodeParams params = {};
  params.type = type;
  return params;
}

CUgraphNodeParams KernelParams(const CUDA_KERNEL_NODE_PARAMS_v1& old) {
  CUgraphNodeParams params = Typed(CU_GRAPH_NODE_TYPE_KERNEL);
  params.kernel = {old.func,         old.gridDimX,  old.gridDimY,  old.gridDimZ,
                   old.blockDimX,    old.blockDimY, old.blockDimZ, old.sharedMemBytes,
                   old.kernelParams, old.extra,     nullptr,       nullptr};
  return params;
}

CUgraphNodeParams KernelParams(const CUDA_KERNEL_NODE_PARAMS_v2& old) {
  CUgraphNodeParams params = Typed(CU_GRAPH_NODE_TYPE_KERNEL);
  params.kernel = {old.func,         old.gridDimX,  old.gridDimY,  old.gridDimZ,
                   old.blockDimX,    old.blockDimY, old.blockDimZ, old.sharedMemBytes,
                   old.kernelParams, old.extra,     old.kern,      old.ctx};
  return params;
}

CUgraphNodeParams CopyParams(const CUDA_MEMCPY3D& copy, CUcontext context) {
  CUgraphNodeParams params = Typed(CU_GRAPH_NODE_TYPE_MEMCPY);
  params.memcpy.copyCtx = context;
  params.memcpy.copyParams = copy;
  return params;
}

CUgraphNodeParams SetParams(const CUDA_MEMSET_NODE_PARAMS& set, CUcontext context) {
  CUgraphNodeParams params = Typed(CU_GRAPH_NODE_TYPE_MEMSET);
  params.memset = {set.dst, set.pitch, set.value, set.elementSize, set.width, set.height, context};
  return params;
}

CUgraphNodeParams HostParams(const CUDA_HOST_NODE_PARAMS& host) {
  CUgraphNodeParams params = Typed(CU_GRAPH_NODE_TYPE_HOST);
  params.host = {host.fn, host.userData};
  return params;
}

CUgraphNodeParams EventParams(CUgraphNodeType type, CUevent event) {
  CUgraphNodeParams params = Typed(type);
  if (type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
    params.eventRecord.event = event;
  else
    params.eventWait.event = event;
  return params;
}

CUgraphNodeParams BatchParams(const CUDA_BATCH_MEM_OP_NODE_PARAMS& batch) {
  CUgraphNodeParams params = Typed(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  params.memOp = {batch.ctx, batch.count, batch.paramArray, batch.flags};
  return params;
}

struct NodePlacement {
  CUgraphNode* out;
  CUgraph graph;
  const CUgraphNode* after;
  std::size_t count;
  const CUgraphEdgeData* edges = nullptr;
};

CUresult Add(const NodePlacement& spot, CUgraphNodeParams& params) {
  return WithContext([&](Call& call) {
    Require(spot.out != nullptr);
    Graph& graph = GraphOf(call, spot.graph);
    const std::vector<GraphNode*> after = NodesOf(call, graph, spot.after, spot.count);
    *spot.out = Handle(&graph.Add(MakeWork(call, params), after, spot.edges));
  });
}

CUresult Add(const NodePlacement& spot, CUgraphNodeParams&& params) { return Add(spot, params); }

template <class Take>
CUresult Get(CUgraphNode handle, CUgraphNodeType type, Take take) {
  return WithContext([&](Call& call) {
    const GraphNode& node = NodeOf(call, handle);
    Require(node.work->type() == type);
    CUgraphNodeParams params = Typed(type);
    node.work->Describe(params);
    take(params);
  });
}

bool MayChange(CUgraphNodeType type) {
  return type != CU_GRAPH_NODE_TYPE_MEM_ALLOC && type != CU_GRAPH_NODE_TYPE_MEM_FREE &&
         type != CU_GRAPH_NODE_TYPE_EMPTY && type != CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

CUresult Change(CUgraphNode handle, CUgraphNodeParams&& params) {
  return WithContext([&](Call& call) {
    GraphNode& node = NodeOf(call, handle);
    Require(node.work->type() == params.type && MayChange(params.type));
    node.work = MakeWork(call, params);
  });
}

void ChangeChild(Call& call, GraphExec& executable, const GraphNode& node, CUgraph child) {
  const auto& before = static_cast<const ChildWork&>(*node.work);
  const std::vector<ExecNode> old_nodes = Flatten(*before.graph());
  const std::vector<ExecNode> new_nodes = Flatten(GraphOf(call, child));
  Require(old_nodes.size() == new_nodes.size());
  for (std::size_t i = 0; i < old_nodes.size(); ++i) {
    Require(old_nodes[i].type == new_nodes[i].type && old_nodes[i].after == new_nodes[i].after);
  }
  for (std::size_t i = 0; i < old_nodes.size(); ++i) {
    executable.NodeOf(old_nodes[i].id).work = new_nodes[i].work;
  }
}

CUresult ChangeIn(CUgraphExec exec_handle, CUgraphNode handle, CUgraphNodeParams&& params) {
  return WithContext([&](Call& call) {
    GraphExec& executable = ExecOf(call, exec_handle);
    const GraphNode& node = NodeOf(call, handle);
    Require(node.work->type() == params.type && MayChange(params.type));
    ExecNode& changed = executable.NodeOf(node.id);
    if (params.type == CU_GRAPH_NODE_TYPE_GRAPH)
      return ChangeChild(call, executable, node, params.graph.graph);
    changed.work = MakeWork(call, params);
  });
}

CUgraphNodeParams ChildParams(CUgraph child) {
  CUgraphNodeParams params = Typed(CU_GRAPH_NODE_TYPE_GRAPH);
  params.graph.graph = child;
  return params;
}

CUgraphNodeParams FreeParams(CUdeviceptr address) {
  CUgraphNodeParams params = Typed(CU_GRAPH_NODE_TYPE_MEM_FREE);
  params.free.dptr = address;
  return params;
}

template <class Old>
void TakeKernel(const CUgraphNodeParams& params, Old& out) {
  const CUDA_KERNEL_NODE_PARAMS_v3& kernel = params.kernel;
  out.func = kernel.func;
  out.gridDimX = kernel.gridDimX;
  out.gridDimY = kernel.gridDimY;
  out.gridDimZ = kernel.gridDimZ;
  out.blockDimX = kernel.blockDimX;
  out.blockDimY = kernel.blockDimY;
  out.blockDimZ = kernel.blockDimZ;
  out.sharedMemBytes = kernel.sharedMemBytes;
  out.kernelParams = kernel.kernelParams;
  out.extra = kernel.extra;
}

constexpr CUgraphNodeType kRecord = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
constexpr CUgraphNodeType kWait = CU_GRAPH_NODE_TYPE_WAIT_EVENT;

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuGraphConditionalHandleCreate)
(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext, unsigned int at_launch,
 unsigned int flags) {
  return WithDriver([&](Call& call) {
    Require(handle != nullptr && (flags & ~unsigned{CU_GRAPH_COND_ASSIGN_DEFAULT}) == 0);
    GraphOf(call, graph);
    *handle = MakeCondition(call, at_launch, flags != 0);
  });
}

SIM_API(cuGraphAddNode)
(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
 CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add({node, graph, after, count}, *params);
}
SIM_API(cuGraphAddNode_v2)
(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* edges,
 size_t count, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add({node, graph, after, count, edges}, *params);
}
SIM_API(cuGraphNodeSetParams)(CUgraphNode node, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Change(node, CUgraphNodeParams(*params));
}
SIM_API(cuGraphExecNodeSetParams)
(CUgraphExec executable, CUgraphNode node, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return ChangeIn(executable, node, CUgraphNodeParams(*params));
}

SIM_API(cuGraphAddKernelNode)
(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
 const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add({node, graph, after, count}, KernelParams(*params));
}
SIM_API(cuGraphAddKernelNode_v2)
(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
 const CUDA_KERNEL_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add({node, graph, after, count}, KernelParams(*params));
}
SIM_API(cuGraphKernelNodeGetParams)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Get(node, CU_GRAPH_NODE_TYPE_KERNEL,
             [&](const auto& params) { TakeKernel(params, *out); });
}
SIM_API(cuGraphKernelNodeGetParams_v2)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Get(node, CU_GRAPH_NODE_TYPE_KERNEL, [&](const auto& params) {
    TakeKernel(params, *out);
    out->kern = params.kernel.kern;
    out->ctx = params.kernel.ctx;
  });
}
SIM_API(cuGraphKernelNodeSetParams)(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return params == nullptr ? CUDA_ERROR_INVALID_VALUE : Change(node, KernelParams(*params));
}
SIM_API(cuGraphKernelNodeSetParams_v2)(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return params == nullptr ? CUDA_ERROR_INVALID_VALUE : Change(node, KernelParams(*params));
}
SIM_API(cuGraphExecKernelNodeSetParams)
(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return params == nullptr ? CUDA_ERROR_INVALID_VALUE
                           : ChangeIn(executable, node, KernelParams(*params));
}
SIM_API(cuGraphExecKernelNodeSetParams_v2)
(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return params == nullptr ? CUDA_ERROR_INVALID_VALUE
                           : ChangeIn(executable, node, KernelParams(*params));
}

SIM_API(cuGraphAddMemcpyNode)
(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
 const CUDA_MEMCPY3D* copy, CUcontext context) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add({node, graph, after, count}, CopyParams(*copy, context));
}
SIM_API(cuGraphMemcpyNodeGetParams)(CUgraphNode node, CUDA_MEMCPY3D* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Get(node, CU_GRAPH_NODE_TYPE_MEMCPY,
             [&](const auto& params) { *out = params.memcpy.copyParams; });
}
SIM_API(cuGraphMemcpyNodeSetParams)(CUgraphNode node, const CUDA_MEMCPY3D* copy) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Change(node, CopyParams(*copy, nullptr));
}
SIM_API(cuGraphExecMemcpyNodeSetParams)
(CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D* copy, CUcontext context) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE
                         : ChangeIn(executable, node, CopyParams(*copy, context));
}

SIM_API(cuGraphAddMemsetNode)
(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
 const CUDA_MEMSET_NODE_PARAMS* set, CUcontext context) {
  if (set == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add({node, graph, after, count}, SetParams(*set, context));
}
SIM_API(cuGraphMemsetNodeGetParams)(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Get(node, CU_GRAPH_NODE_TYPE_MEMSET, [&](const CUgraphNodeParams& params) {
    const CUDA_MEMSET_NODE_PARAMS_v2& set = params.memset;
    *out = {set.dst, set.pitch, set.value, set.elementSize, set.width, set.height};
  });
}
SIM_API(cuGraphMemsetNodeSetParams)(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* set) {
  return set == nullptr ? CUDA_ERROR_INVALID_VALUE : Change(node, SetParams(*set, nullptr));
}
SIM_API(cuGraphExecMemsetNodeSetParams)
(CUgraphExec executable, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* set, CUcontext context) {
  return set == nullptr ? CUDA_ERROR_INVALID_VALUE
                        : ChangeIn(executable, node, SetParams(*set, context));
}

SIM_API(cuGraphAddHostNode)
(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
 const CUDA_HOST_NODE_PARAMS* host) {
  if (host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add({node, graph, after, count}, HostParams(*host));
}
SIM_API(cuGraphHostNodeGetParams)(CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Get(node, CU_GRAPH_NODE_TYPE_HOST, [&](const CUgraphNodeParams& params) {
    *out = {params.host.fn, params.host.userData};
  });
}
SIM_API(cuGraphHostNodeSetParams)(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* host) {
  return host == nullptr ? CUDA_ERROR_INVALID_VALUE : Change(node, HostParams(*host));
}
SIM_API(cuGraphExecHostNodeSetParams)
(CUgraphExec executable, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* host) {
  return host == nullptr ? CUDA_ERROR_INVALID_VALUE : ChangeIn(executable, node, HostParams(*host));
}

SIM_API(cuGraphAddChildGraphNode)
(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUgraph child) {
  return Add({node, graph, after, count}, ChildParams(child));
}
SIM_API(cuGraphChildGraphNodeGetGraph)(CUgraphNode node, CUgraph* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Get(node, CU_GRAPH_NODE_TYPE_GRAPH,
             [&](const auto& params) { *out = params.graph.graph; });
}
SIM_API(cuGraphExecChildGraphNodeSetParams)
(CUgraphExec executable, CUgraphNode node, CUgraph child) {
  return ChangeIn(executable, node, ChildParams(child));
}

SIM_API(cuGraphAddEmptyNode)
(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count) {
  return Add({node, graph, after, count}, Typed(CU_GRAPH_NODE_TYPE_EMPTY));
}

SIM_API(cuGraphAddEventRecordNode)
(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUevent event) {
  return Add({node, graph, after, count}, EventParams(kRecord, event));
}
SIM_API(cuGraphEventRecordNodeGetEvent)(CUgraphNode node, CUevent* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Get(node, kRecord, [&](const auto& params) { *out = params.eventRecord.event; });
}
SIM_API(cuGraphEventRecordNodeSetEvent)(CUgraphNode node, CUevent event) {
  return Change(node, EventParams(kRecord, event));
}
SIM_API(cuGraphExecEventRecordNodeSetEvent)
(CUgraphExec executable, CUgraphNode node, CUevent event) {
  return ChangeIn(executable, node, EventParams(kRecord, event));
}

SIM_API(cuGraphAddEventWaitNode)
(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUevent event) {
  return Add({node, graph, after, count}, EventParams(kWait, event));
}
SIM_API(cuGraphEventWaitNodeGetEvent)(CUgraphNode node, CUevent* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Get(node, kWait, [&](const auto& params) { *out = params.eventWait.event; });
}
SIM_API(cuGraphEventWaitNodeSetEvent)(CUgraphNode node, CUevent event) {
  return Change(node, EventParams(kWait, event));
}
SIM_API(cuGraphExecEventWaitNodeSetEvent)(CUgraphExec executable, CUgraphNode node, CUevent event) {
  return ChangeIn(executable, node, EventParams(kWait, event));
}

SIM_API(cuGraphAddBatchMemOpNode)
(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
 const CUDA_BATCH_MEM_OP_NODE_PARAMS* batch) {
  if (batch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add({node, graph, after, count}, BatchParams(*batch));
}
SIM_API(cuGraphBatchMemOpNodeGetParams)(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Get(node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, [&](const CUgraphNodeParams& params) {
    *out = {params.memOp.ctx, params.memOp.count, params.memOp.paramArray, params.memOp.flags};
  });
}
SIM_API(cuGraphBatchMemOpNodeSetParams)
(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* batch) {
  return batch == nullptr ? CUDA_ERROR_INVALID_VALUE : Change(node, BatchParams(*batch));
}
SIM_API(cuGraphExecBatchMemOpNodeSetParams)
(CUgraphExec executable, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* batch) {
  return batch == nullptr ? CUDA_ERROR_INVALID_VALUE
                          : ChangeIn(executable, node, BatchParams(*batch));
}

SIM_API(cuGraphAddMemAllocNode)
(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
 CUDA_MEM_ALLOC_NODE_PARAMS* alloc) {
  if (alloc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = Typed(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  params.alloc.poolProps = alloc->poolProps;
  params.alloc.accessDescs = alloc->accessDescs;
  params.alloc.accessDescCount = alloc->accessDescCount;
  params.alloc.bytesize = alloc->bytesize;
  const CUresult result = Add({node, graph, after, count}, params);
  if (result == CUDA_SUCCESS) alloc->dptr = params.alloc.dptr;
  return result;
}
SIM_API(cuGraphMemAllocNodeGetParams)(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Get(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, [&](const CUgraphNodeParams& params) {
    *out = {params.alloc.poolProps, nullptr, 0, params.alloc.bytesize, params.alloc.dptr};
  });
}
SIM_API(cuGraphAddMemFreeNode)
(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count, CUdeviceptr address) {
  return Add({node, graph, after, count}, FreeParams(address));
}
SIM_API(cuGraphMemFreeNodeGetParams)(CUgraphNode node, CUdeviceptr* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Get(node, CU_GRAPH_NODE_TYPE_MEM_FREE,
             [&](const auto& params) { *out = params.free.dptr; });
}

// They refine scheduling, which the device does not model; kept for queries.
SIM_API(cuGraphKernelNodeSetAttribute)
(CUgraphNode handle, CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue* value) {
  return WithDriver([&](Call& call) {
    GraphNode& node = NodeOf(call, handle);
    Require(value != nullptr && node.work->type() == CU_GRAPH_NODE_TYPE_KERNEL);
    node.attributes[attribute] = *value;
  });
}
SIM_API(cuGraphKernelNodeGetAttribute)
(CUgraphNode handle, CUkernelNodeAttrID attribute, CUkernelNodeAttrValue* value) {
  return WithDriver([&](Call& call) {
    const GraphNode& node = NodeOf(call, handle);
    Require(value != nullptr && node.work->type() == CU_GRAPH_NODE_TYPE_KERNEL);
    const auto found = node.attributes.find(attribute);
    *value = found == node.attributes.end() ? CUkernelNodeAttrValue{} : found->second;
  });
}
SIM_API(cuGraphKernelNodeCopyAttributes)(CUgraphNode target, CUgraphNode source) {
  return WithDriver(
      [&](Call& call) { NodeOf(call, target).attributes = NodeOf(call, source).attributes; });
}
