#include <cstring>

#include "simulator/runtime/channels.h"
#include "simulator/runtime/copy_shapes.h"
#include "simulator/runtime/registry.h"

namespace spillway::simulator::runtime {
namespace {

static_assert(sizeof(CUgraphEdgeData) == sizeof(cudaGraphEdgeData));
static_assert(sizeof(CUgraphExecUpdateResultInfo) == sizeof(cudaGraphExecUpdateResultInfo));
static_assert(sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == sizeof(cudaGraphInstantiateParams));
static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == sizeof(cudaMemAllocNodeParams));
static_assert(sizeof(CUlaunchAttributeValue) == sizeof(cudaKernelNodeAttrValue));

const CUgraphEdgeData* Edges(const cudaGraphEdgeData* edges) {
  return reinterpret_cast<const CUgraphEdgeData*>(edges);
}
CUgraphEdgeData* Edges(cudaGraphEdgeData* edges) {
  return reinterpret_cast<CUgraphEdgeData*>(edges);
}

CUcontext CurrentContext(const DriverTable& driver) {
  CUcontext context = nullptr;
  driver.cuCtxGetCurrent(&context);
  return context;
}

template <typename Params, typename Call>
cudaError_t WithKernelNode(const Params* params, Call call) {
  if (!params) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  const cudaError_t resolved = ResolveKernel(params->func, &kernel);
  if (resolved != cudaSuccess) return resolved;
  const CUDA_KERNEL_NODE_PARAMS_v2 node{nullptr,
                                        params->gridDim.x,
                                        params->gridDim.y,
                                        params->gridDim.z,
                                        params->blockDim.x,
                                        params->blockDim.y,
                                        params->blockDim.z,
                                        params->sharedMemBytes,
                                        params->kernelParams,
                                        params->extra,
                                        kernel,
                                        nullptr};
  return ToRuntime(call(&node));
}

cudaError_t KernelNodeParams(const DriverTable& driver, cudaGraphNode_t node,
                             cudaKernelNodeParams* out) {
  if (!out) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS_v2 told{};
  const CUresult result = driver.cuGraphKernelNodeGetParams(node, &told);
  if (result != CUDA_SUCCESS) return ToRuntime(result);
  out->func = told.func ? static_cast<void*>(told.func) : told.kern;
  out->gridDim = {told.gridDimX, told.gridDimY, told.gridDimZ};
  out->blockDim = {told.blockDimX, told.blockDimY, told.blockDimZ};
  out->sharedMemBytes = told.sharedMemBytes;
  out->kernelParams = told.kernelParams;
  out->extra = told.extra;
  return cudaSuccess;
}

template <typename Call>
cudaError_t WithCopyNode(const DriverTable& driver, const cudaMemcpy3DParms* wanted, Call call) {
  if (!wanted) return cudaErrorInvalidValue;
  std::size_t texel_bytes = 1;
  if (const cudaArray_t array = wanted->srcArray ? wanted->srcArray : wanted->dstArray) {
    const cudaError_t known = TexelBytes(driver, array, &texel_bytes);
    if (known != cudaSuccess) return known;
  }
  const CUDA_MEMCPY3D copy = DriverCopy3D(*wanted, texel_bytes);
  return ToRuntime(call(&copy, CurrentContext(driver)));
}

template <typename Call>
cudaError_t WithLinearCopyNode(const DriverTable& driver, const void* target, const void* source,
                               std::size_t count, cudaMemcpyKind kind, Call call) {
  cudaMemcpy3DParms wanted{};
  wanted.srcPtr = {const_cast<void*>(source), count, count, 1};
  wanted.dstPtr = {const_cast<void*>(target), count, count, 1};
  wanted.extent = {count, 1, 1};
  wanted.kind = kind;
  return WithCopyNode(driver, &wanted, call);
}

template <typename Call>
cudaError_t WithVariable(const void* symbol, std::size_t offset, Call call) {
  CUdeviceptr address = 0;
  std::size_t size_bytes = 0;
  const cudaError_t resolved = ResolveVariable(symbol, &address, &size_bytes);
  if (resolved != cudaSuccess) return resolved;
  return call(reinterpret_cast<void*>(address + offset));
}

template <typename Params, typename Call>
cudaError_t WithSetNode(const DriverTable& driver, const Params* set, Call call) {
  if (!set) return cudaErrorInvalidValue;
  const CUDA_MEMSET_NODE_PARAMS node{Address(set->dst), set->pitch, set->value,
                                     set->elementSize,  set->width, set->height};
  return ToRuntime(call(&node, CurrentContext(driver)));
}

cudaError_t SetNodeParams(const DriverTable& driver, cudaGraphNode_t node, cudaMemsetParams* out) {
  if (!out) return cudaErrorInvalidValue;
  CUDA_MEMSET_NODE_PARAMS told{};
  const CUresult result = driver.cuGraphMemsetNodeGetParams(node, &told);
  if (result != CUDA_SUCCESS) return ToRuntime(result);
  *out = {reinterpret_cast<void*>(told.dst),
          told.pitch,
          told.value,
          told.elementSize,
          told.width,
          told.height};
  return cudaSuccess;
}

const CUDA_HOST_NODE_PARAMS* HostNode(const cudaHostNodeParams* params) {
  static_assert(sizeof(CUDA_HOST_NODE_PARAMS) == sizeof(cudaHostNodeParams));
  return reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(params);
}

// Types that need no translation have the same layout.
cudaError_t GeneralNode(const DriverTable& driver, cudaGraphNodeParams& params,
                        CUgraphNodeParams& out) {
  static_assert(sizeof(CUgraphNodeParams) == sizeof(cudaGraphNodeParams));
  std::memcpy(&out, &params, sizeof out);
  switch (params.type) {
    case cudaGraphNodeTypeKernel:
      return WithKernelNode(&params.kernel, [&](const CUDA_KERNEL_NODE_PARAMS_v2* node) {
        std::memcpy(&out.kernel, node, sizeof out.kernel);
        return CUDA_SUCCESS;
      });
    case cudaGraphNodeTypeMemcpy:
      return WithCopyNode(driver, &params.memcpy.copyParams,
                          [&](const CUDA_MEMCPY3D* copy, CUcontext context) {
                            out.memcpy = {0, 0, context, *copy};
                            return CUDA_SUCCESS;
                          });
    case cudaGraphNodeTypeMemset:
      out.memset.ctx = CurrentContext(driver);
      return cudaSuccess;
    case cudaGraphNodeTypeConditional:
      out.conditional.ctx = CurrentContext(driver);
      return cudaSuccess;
    default:
      return cudaSuccess;
  }
}

template <typename Call>
cudaError_t WithGeneralNode(const DriverTable& driver, cudaGraphNodeParams* params, Call call) {
  if (!params) return cudaErrorInvalidValue;
  CUgraphNodeParams node;
  const cudaError_t known = GeneralNode(driver, *params, node);
  if (known != cudaSuccess) return known;
  const CUresult result = call(&node);
  if (params->type == cudaGraphNodeTypeMemAlloc)
    params->alloc.dptr = reinterpret_cast<void*>(node.alloc.dptr);
  if (params->type == cudaGraphNodeTypeConditional)
    params->conditional.phGraph_out = node.conditional.phGraph_out;
  return ToRuntime(result);
}

}  // namespace
}  // namespace spillway::simulator::runtime

using Node = cudaGraphNode_t;

SPILLWAY_API(cudaGraphCreate, (cudaGraph_t * graph, unsigned flags),
             driver.cuGraphCreate(graph, flags))
SPILLWAY_API(cudaGraphDestroy, (cudaGraph_t graph), driver.cuGraphDestroy(graph))
SPILLWAY_API(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t original),
             driver.cuGraphClone(clone, original))
SPILLWAY_API(cudaGraphNodeFindInClone, (Node * node, Node original, cudaGraph_t clone),
             driver.cuGraphNodeFindInClone(node, original, clone))
SPILLWAY_API(cudaGraphNodeGetType, (Node node, cudaGraphNodeType* type),
             driver.cuGraphNodeGetType(node, reinterpret_cast<CUgraphNodeType*>(type)))
SPILLWAY_API(cudaGraphGetNodes, (cudaGraph_t graph, Node* nodes, std::size_t* count),
             driver.cuGraphGetNodes(graph, nodes, count))
SPILLWAY_API(cudaGraphGetRootNodes, (cudaGraph_t graph, Node* nodes, std::size_t* count),
             driver.cuGraphGetRootNodes(graph, nodes, count))
SPILLWAY_API(cudaGraphGetEdges,
             (cudaGraph_t graph, Node* from, Node* to, cudaGraphEdgeData* edges,
              std::size_t* count),
             driver.cuGraphGetEdges(graph, from, to, Edges(edges), count))
SPILLWAY_API(cudaGraphNodeGetDependencies,
             (Node node, Node* nodes, cudaGraphEdgeData* edges, std::size_t* count),
             driver.cuGraphNodeGetDependencies(node, nodes, Edges(edges), count))
SPILLWAY_API(cudaGraphNodeGetDependentNodes,
             (Node node, Node* nodes, cudaGraphEdgeData* edges, std::size_t* count),
             driver.cuGraphNodeGetDependentNodes(node, nodes, Edges(edges), count))
SPILLWAY_API(cudaGraphAddDependencies,
             (cudaGraph_t graph, const Node* from, const Node* to, const cudaGraphEdgeData* edges,
              std::size_t count),
             driver.cuGraphAddDependencies(graph, from, to, Edges(edges), count))
SPILLWAY_API(cudaGraphRemoveDependencies,
             (cudaGraph_t graph, const Node* from, const Node* to, const cudaGraphEdgeData* edges,
              std::size_t count),
             driver.cuGraphRemoveDependencies(graph, from, to, Edges(edges), count))
SPILLWAY_API(cudaGraphDestroyNode, (Node node), driver.cuGraphDestroyNode(node))

SPILLWAY_API(cudaGraphAddKernelNode,
             (Node * node, cudaGraph_t graph, const Node* after, std::size_t count,
              const cudaKernelNodeParams* params),
             WithKernelNode(params, [&](const auto* kernel) {
               return driver.cuGraphAddKernelNode(node, graph, after, count, kernel);
             }))
SPILLWAY_API(cudaGraphKernelNodeGetParams, (Node node, cudaKernelNodeParams* params),
             KernelNodeParams(driver, node, params))
SPILLWAY_API(cudaGraphKernelNodeSetParams, (Node node, const cudaKernelNodeParams* params),
             WithKernelNode(params, [&](const auto* kernel) {
               return driver.cuGraphKernelNodeSetParams(node, kernel);
             }))
SPILLWAY_API(cudaGraphExecKernelNodeSetParams,
             (cudaGraphExec_t executable, Node node, const cudaKernelNodeParams* params),
             WithKernelNode(params, [&](const auto* kernel) {
               return driver.cuGraphExecKernelNodeSetParams(executable, node, kernel);
             }))
SPILLWAY_API(cudaGraphKernelNodeCopyAttributes, (Node target, Node source),
             driver.cuGraphKernelNodeCopyAttributes(target, source))
SPILLWAY_API(cudaGraphKernelNodeGetAttribute,
             (Node node, cudaLaunchAttributeID attribute, cudaLaunchAttributeValue* value),
             driver.cuGraphKernelNodeGetAttribute(node, static_cast<CUlaunchAttributeID>(attribute),
                                                  reinterpret_cast<CUlaunchAttributeValue*>(value)))
SPILLWAY_API(
    cudaGraphKernelNodeSetAttribute,
    (Node node, cudaLaunchAttributeID attribute, const cudaLaunchAttributeValue* value),
    driver.cuGraphKernelNodeSetAttribute(node, static_cast<CUlaunchAttributeID>(attribute),
                                         reinterpret_cast<const CUlaunchAttributeValue*>(value)))

SPILLWAY_API(cudaGraphAddMemcpyNode,
             (Node * node, cudaGraph_t graph, const Node* after, std::size_t count,
              const cudaMemcpy3DParms* params),
             WithCopyNode(driver, params, [&](const auto* copy, CUcontext context) {
               return driver.cuGraphAddMemcpyNode(node, graph, after, count, copy, context);
             }))
SPILLWAY_API(cudaGraphAddMemcpyNode1D,
             (Node * node, cudaGraph_t graph, const Node* after, std::size_t dependency_count,
              void* target, const void* source, std::size_t count, cudaMemcpyKind kind),
             WithLinearCopyNode(driver, target, source, count, kind,
                                [&](const auto* copy, CUcontext context) {
                                  return driver.cuGraphAddMemcpyNode(
                                      node, graph, after, dependency_count, copy, context);
                                }))
SPILLWAY_API(cudaGraphAddMemcpyNodeToSymbol,
             (Node * node, cudaGraph_t graph, const Node* after, std::size_t dependency_count,
              const void* symbol, const void* source, std::size_t count, std::size_t offset,
              cudaMemcpyKind kind),
             WithVariable(symbol, offset, [&](void* target) {
               return WithLinearCopyNode(driver, target, source, count, kind,
                                         [&](const auto* copy, CUcontext context) {
                                           return driver.cuGraphAddMemcpyNode(
                                               node, graph, after, dependency_count, copy, context);
                                         });
             }))
SPILLWAY_API(cudaGraphAddMemcpyNodeFromSymbol,
             (Node * node, cudaGraph_t graph, const Node* after, std::size_t dependency_count,
              void* target, const void* symbol, std::size_t count, std::size_t offset,
              cudaMemcpyKind kind),
             WithVariable(symbol, offset, [&](void* source) {
               return WithLinearCopyNode(driver, target, source, count, kind,
                                         [&](const auto* copy, CUcontext context) {
                                           return driver.cuGraphAddMemcpyNode(
                                               node, graph, after, dependency_count, copy, context);
                                         });
             }))
SPILLWAY_API(cudaGraphMemcpyNodeSetParams, (Node node, const cudaMemcpy3DParms* params),
             WithCopyNode(driver, params, [&](const auto* copy, CUcontext) {
               return driver.cuGraphMemcpyNodeSetParams(node, copy);
             }))
SPILLWAY_API(cudaGraphMemcpyNodeSetParams1D,
             (Node node, void* target, const void* source, std::size_t count, cudaMemcpyKind kind),
             WithLinearCopyNode(driver, target, source, count, kind,
                                [&](const auto* copy, CUcontext) {
                                  return driver.cuGraphMemcpyNodeSetParams(node, copy);
                                }))
SPILLWAY_API(cudaGraphExecMemcpyNodeSetParams,
             (cudaGraphExec_t executable, Node node, const cudaMemcpy3DParms* params),
             WithCopyNode(driver, params, [&](const auto* copy, CUcontext context) {
               return driver.cuGraphExecMemcpyNodeSetParams(executable, node, copy, context);
             }))
SPILLWAY_API(cudaGraphExecMemcpyNodeSetParams1D,
             (cudaGraphExec_t executable, Node node, void* target, const void* source,
              std::size_t count, cudaMemcpyKind kind),
             WithLinearCopyNode(driver, target, source, count, kind,
                                [&](const auto* copy, CUcontext context) {
                                  return driver.cuGraphExecMemcpyNodeSetParams(executable, node,
                                                                               copy, context);
                                }))

SPILLWAY_API(cudaGraphAddMemsetNode,
             (Node * node, cudaGraph_t graph, const Node* after, std::size_t count,
              const cudaMemsetParams* params),
             WithSetNode(driver, params, [&](const auto* set, CUcontext context) {
               return driver.cuGraphAddMemsetNode(node, graph, after, count, set, context);
             }))
SPILLWAY_API(cudaGraphMemsetNodeGetParams, (Node node, cudaMemsetParams* params),
             SetNodeParams(driver, node, params))
SPILLWAY_API(cudaGraphMemsetNodeSetParams, (Node node, const cudaMemsetParams* params),
             WithSetNode(driver, params, [&](const auto* set, CUcontext) {
               return driver.cuGraphMemsetNodeSetParams(node, set);
             }))
SPILLWAY_API(cudaGraphExecMemsetNodeSetParams,
             (cudaGraphExec_t executable, Node node, const cudaMemsetParams* params),
             WithSetNode(driver, params, [&](const auto* set, CUcontext context) {
               return driver.cuGraphExecMemsetNodeSetParams(executable, node, set, context);
             }))

SPILLWAY_API(cudaGraphAddHostNode,
             (Node * node, cudaGraph_t graph, const Node* after, std::size_t count,
              const cudaHostNodeParams* params),
             driver.cuGraphAddHostNode(node, graph, after, count, HostNode(params)))
SPILLWAY_API(cudaGraphHostNodeGetParams, (Node node, cudaHostNodeParams* params),
             driver.cuGraphHostNodeGetParams(node,
                                             reinterpret_cast<CUDA_HOST_NODE_PARAMS*>(params)))
SPILLWAY_API(cudaGraphHostNodeSetParams, (Node node, const cudaHostNodeParams* params),
             driver.cuGraphHostNodeSetParams(node, HostNode(params)))
SPILLWAY_API(cudaGraphExecHostNodeSetParams,
             (cudaGraphExec_t executable, Node node, const cudaHostNodeParams* params),
             driver.cuGraphExecHostNodeSetParams(executable, node, HostNode(params)))

SPILLWAY_API(cudaGraphAddChildGraphNode,
             (Node * node, cudaGraph_t graph, const Node* after, std::size_t count,
              cudaGraph_t child),
             driver.cuGraphAddChildGraphNode(node, graph, after, count, child))
SPILLWAY_API(cudaGraphChildGraphNodeGetGraph, (Node node, cudaGraph_t* graph),
             driver.cuGraphChildGraphNodeGetGraph(node, graph))
SPILLWAY_API(cudaGraphExecChildGraphNodeSetParams,
             (cudaGraphExec_t executable, Node node, cudaGraph_t child),
             driver.cuGraphExecChildGraphNodeSetParams(executable, node, child))
SPILLWAY_API(cudaGraphAddEmptyNode,
             (Node * node, cudaGraph_t graph, const Node* after, std::size_t count),
             driver.cuGraphAddEmptyNode(node, graph, after, count))

SPILLWAY_API(cudaGraphAddEventRecordNode,
             (Node * node, cudaGraph_t graph, const Node* after, std::size_t count,
              cudaEvent_t event),
             driver.cuGraphAddEventRecordNode(node, graph, after, count, event))
SPILLWAY_API(cudaGraphEventRecordNodeGetEvent, (Node node, cudaEvent_t* event),
             driver.cuGraphEventRecordNodeGetEvent(node, event))
SPILLWAY_API(cudaGraphEventRecordNodeSetEvent, (Node node, cudaEvent_t event),
             driver.cuGraphEventRecordNodeSetEvent(node, event))
SPILLWAY_API(cudaGraphExecEventRecordNodeSetEvent,
             (cudaGraphExec_t executable, Node node, cudaEvent_t event),
             driver.cuGraphExecEventRecordNodeSetEvent(executable, node, event))
SPILLWAY_API(cudaGraphAddEventWaitNode,
             (Node * node, cudaGraph_t graph, const Node* after, std::size_t count,
              cudaEvent_t event),
             driver.cuGraphAddEventWaitNode(node, graph, after, count, event))
SPILLWAY_API(cudaGraphEventWaitNodeGetEvent, (Node node, cudaEvent_t* event),
             driver.cuGraphEventWaitNodeGetEvent(node, event))
SPILLWAY_API(cudaGraphEventWaitNodeSetEvent, (Node node, cudaEvent_t event),
             driver.cuGraphEventWaitNodeSetEvent(node, event))
SPILLWAY_API(cudaGraphExecEventWaitNodeSetEvent,
             (cudaGraphExec_t executable, Node node, cudaEvent_t event),
             driver.cuGraphExecEventWaitNodeSetEvent(executable, node, event))

SPILLWAY_API(cudaGraphAddMemAllocNode,
             (Node * node, cudaGraph_t graph, const Node* after, std::size_t count,
              cudaMemAllocNodeParams* params),
             driver.cuGraphAddMemAllocNode(node, graph, after, count,
                                           reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(params)))
SPILLWAY_API(cudaGraphMemAllocNodeGetParams, (Node node, cudaMemAllocNodeParams* params),
             driver.cuGraphMemAllocNodeGetParams(
                 node, reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(params)))
SPILLWAY_API(cudaGraphAddMemFreeNode,
             (Node * node, cudaGraph_t graph, const Node* after, std::size_t count, void* pointer),
             driver.cuGraphAddMemFreeNode(node, graph, after, count, Address(pointer)))
SPILLWAY_API(cudaGraphMemFreeNodeGetParams, (Node node, void* pointer),
             driver.cuGraphMemFreeNodeGetParams(node, static_cast<CUdeviceptr*>(pointer)))
SPILLWAY_API(cudaDeviceGraphMemTrim, (int device), driver.cuDeviceGraphMemTrim(device))
SPILLWAY_API(cudaDeviceGetGraphMemAttribute,
             (int device, cudaGraphMemAttributeType attribute, void* value),
             driver.cuDeviceGetGraphMemAttribute(device,
                                                 static_cast<CUgraphMem_attribute>(attribute),
                                                 value))
SPILLWAY_API(cudaDeviceSetGraphMemAttribute,
             (int device, cudaGraphMemAttributeType attribute, void* value),
             driver.cuDeviceSetGraphMemAttribute(device,
                                                 static_cast<CUgraphMem_attribute>(attribute),
                                                 value))

SPILLWAY_API(cudaGraphAddNode,
             (Node * node, cudaGraph_t graph, const Node* after, const cudaGraphEdgeData* edges,
              std::size_t count, cudaGraphNodeParams* params),
             WithGeneralNode(driver, params, [&](CUgraphNodeParams* general) {
               return driver.cuGraphAddNode(node, graph, after, Edges(edges), count, general);
             }))
SPILLWAY_API(
    cudaGraphConditionalHandleCreate,
    (cudaGraphConditionalHandle * handle, cudaGraph_t graph, unsigned at_launch, unsigned flags),
    driver.cuGraphConditionalHandleCreate(reinterpret_cast<CUgraphConditionalHandle*>(handle),
                                          graph, CurrentContext(driver), at_launch, flags))
SPILLWAY_API(cudaGraphNodeSetParams, (Node node, cudaGraphNodeParams* params),
             WithGeneralNode(driver, params, [&](CUgraphNodeParams* general) {
               return driver.cuGraphNodeSetParams(node, general);
             }))
SPILLWAY_API(cudaGraphExecNodeSetParams,
             (cudaGraphExec_t executable, Node node, cudaGraphNodeParams* params),
             WithGeneralNode(driver, params, [&](CUgraphNodeParams* general) {
               return driver.cuGraphExecNodeSetParams(executable, node, general);
             }))

SPILLWAY_API(cudaGraphInstantiate,
             (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long flags),
             driver.cuGraphInstantiateWithFlags(executable, graph, flags))
SPILLWAY_API(cudaGraphInstantiateWithFlags,
             (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long flags),
             driver.cuGraphInstantiateWithFlags(executable, graph, flags))
SPILLWAY_TWIN_API(
    cudaGraphInstantiateWithParams, _ptsz,
    (cudaGraphExec_t * executable, cudaGraph_t graph, cudaGraphInstantiateParams* params),
    driver.cuGraphInstantiateWithParams(executable, graph,
                                        reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(params)))
SPILLWAY_API(cudaGraphExecGetFlags, (cudaGraphExec_t executable, unsigned long long* flags),
             driver.cuGraphExecGetFlags(executable, reinterpret_cast<cuuint64_t*>(flags)))
SPILLWAY_API(cudaGraphExecUpdate,
             (cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info),
             driver.cuGraphExecUpdate(executable, graph,
                                      reinterpret_cast<CUgraphExecUpdateResultInfo*>(info)))
SPILLWAY_API(cudaGraphNodeSetEnabled, (cudaGraphExec_t executable, Node node, unsigned enabled),
             driver.cuGraphNodeSetEnabled(executable, node, enabled))
SPILLWAY_API(cudaGraphNodeGetEnabled, (cudaGraphExec_t executable, Node node, unsigned* enabled),
             driver.cuGraphNodeGetEnabled(executable, node, enabled))
SPILLWAY_TWIN_API(cudaGraphLaunch, _ptsz, (cudaGraphExec_t executable, cudaStream_t stream),
                  driver.cuGraphLaunch(executable, stream))
SPILLWAY_TWIN_API(cudaGraphUpload, _ptsz, (cudaGraphExec_t executable, cudaStream_t stream),
                  driver.cuGraphUpload(executable, stream))
SPILLWAY_API(cudaGraphExecDestroy, (cudaGraphExec_t executable),
             driver.cuGraphExecDestroy(executable))

SPILLWAY_API(cudaUserObjectCreate,
             (cudaUserObject_t * object, void* data, cudaHostFn_t destroy, unsigned count,
              unsigned flags),
             driver.cuUserObjectCreate(object, data, destroy, count, flags))
SPILLWAY_API(cudaUserObjectRetain, (cudaUserObject_t object, unsigned count),
             driver.cuUserObjectRetain(object, count))
SPILLWAY_API(cudaUserObjectRelease, (cudaUserObject_t object, unsigned count),
             driver.cuUserObjectRelease(object, count))
SPILLWAY_API(cudaGraphRetainUserObject,
             (cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags),
             driver.cuGraphRetainUserObject(graph, object, count, flags))
SPILLWAY_API(cudaGraphReleaseUserObject,
             (cudaGraph_t graph, cudaUserObject_t object, unsigned count),
             driver.cuGraphReleaseUserObject(graph, object, count))
