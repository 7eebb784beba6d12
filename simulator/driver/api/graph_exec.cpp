#include "simulator/driver/calls/capture.h"
#include "simulator/driver/calls/conditional.h"
#include "simulator/driver/calls/graph_handles.h"
#include "simulator/driver/calls/node_work.h"
#include "simulator/driver/calls/user_object.h"

namespace spillway::simulator {
namespace {

constexpr unsigned long long kAutoFree = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
constexpr unsigned long long kKnownFlags =
    kAutoFree | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUgraphExec Make(Call& call, CUgraph handle, unsigned long long flags) {
  Require((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) == 0, CUDA_ERROR_NOT_SUPPORTED);
  Require((flags & ~kKnownFlags) == 0);
  Graph& graph = GraphOf(call, handle);
  // "at most one executable graph in existence [...] at a time" (cuda.h, cuGraphAddMemAllocNode);
  // the same of conditional nodes (cuda.h, CU_GRAPH_NODE_TYPE_CONDITIONAL)
  Require(!graph.IsSingular() || graph.executables == 0, CUDA_ERROR_NOT_SUPPORTED);
  const auto executable =
      std::make_shared<GraphExec>(GraphExec{Flatten(graph), flags, graph.weak_from_this()});
  executable->objects = graph.objects;
  for (const auto& [object, count] : graph.objects) object->references += count;
  ++graph.executables;
  call.sim.graphs.executables.emplace(executable.get(), executable);
  return Handle(executable.get());
}

CUresult Instantiate(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  return WithContext([&](Call& call) {
    Require(out != nullptr);
    *out = Make(call, graph, flags);
  });
}

const ExecNode* FindUpdateConflict(const std::vector<ExecNode>& old_nodes,
                                   const std::vector<ExecNode>& new_nodes,
                                   CUgraphExecUpdateResult& result);

CUgraphExecUpdateResult CompareBodies(const ConditionalRun& old_run, const ConditionalRun& fresh) {
  if (old_run.shape().type != fresh.shape().type ||
      old_run.bodies().size() != fresh.bodies().size())
    return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  for (std::size_t i = 0; i < fresh.bodies().size() && result == CU_GRAPH_EXEC_UPDATE_SUCCESS; ++i)
    FindUpdateConflict(old_run.bodies()[i], fresh.bodies()[i], result);
  return result;
}

// Null: none. `result` has the reason.
const ExecNode* FindUpdateConflict(const std::vector<ExecNode>& old_nodes,
                                   const std::vector<ExecNode>& new_nodes,
                                   CUgraphExecUpdateResult& result) {
  result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  for (std::size_t i = 0; i < std::min(old_nodes.size(), new_nodes.size()); ++i) {
    const ExecNode& fresh = new_nodes[i];
    if (old_nodes[i].type != fresh.type) result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (old_nodes[i].after != fresh.after) result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    const bool memory =
        fresh.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || fresh.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
    if (memory) result = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    const auto* run = dynamic_cast<const ConditionalRun*>(fresh.work.get());
    if (run != nullptr && result == CU_GRAPH_EXEC_UPDATE_SUCCESS)
      result = CompareBodies(static_cast<const ConditionalRun&>(*old_nodes[i].work), *run);
    if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return &fresh;
  }
  if (old_nodes.size() != new_nodes.size()) result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  return nullptr;
}

CUgraphNode NodeWithId(const Graph& graph, std::uint64_t id) {
  for (const auto& node : graph.nodes) {
    if (node->id == id) return Handle(node.get());
  }
  return nullptr;
}

CUresult Update(CUgraphExec exec_handle, CUgraph graph_handle, CUgraphNode* error_node,
                CUgraphExecUpdateResult* result) {
  return WithContext([&](Call& call) {
    GraphExec& executable = ExecOf(call, exec_handle);
    const Graph& graph = GraphOf(call, graph_handle);
    const std::vector<ExecNode> fresh = Flatten(graph);
    const ExecNode* const misfit = FindUpdateConflict(executable.nodes, fresh, *result);
    if (error_node != nullptr)
      *error_node = misfit == nullptr ? nullptr : NodeWithId(graph, misfit->id);
    Require(*result == CU_GRAPH_EXEC_UPDATE_SUCCESS, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    for (std::size_t i = 0; i < fresh.size(); ++i) executable.nodes[i].work = fresh[i].work;
  });
}

bool MayBeSwitched(CUgraphNodeType type) {
  return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
         type == CU_GRAPH_NODE_TYPE_MEMSET;
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuGraphInstantiate)
(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char* log, size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes != 0) *log = '\0';
  return Instantiate(out, graph, 0);
}
SIM_API(cuGraphInstantiate_v2)
(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char* log, size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes != 0) *log = '\0';
  return Instantiate(out, graph, 0);
}
SIM_API(cuGraphInstantiateWithFlags)(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  return Instantiate(out, graph, flags);
}
SIM_API(cuGraphInstantiateWithParams)
(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  params->hErrNode_out = nullptr;
  const CUresult result = Instantiate(out, graph, params->flags);
  params->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

SIM_API(cuGraphExecGetFlags)(CUgraphExec executable, cuuint64_t* flags) {
  return WithDriver([&](Call& call) {
    Require(flags != nullptr);
    *flags = ExecOf(call, executable).flags;
  });
}

SIM_API(cuGraphExecUpdate)
(CUgraphExec executable, CUgraph graph, CUgraphNode* error_node, CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResult ignored = CU_GRAPH_EXEC_UPDATE_ERROR;
  return Update(executable, graph, error_node, result == nullptr ? &ignored : result);
}
SIM_API(cuGraphExecUpdate_v2)
(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
  info->errorFromNode = nullptr;
  return Update(executable, graph, &info->errorNode, &info->result);
}

SIM_API(cuGraphNodeSetEnabled)(CUgraphExec executable, CUgraphNode handle, unsigned int enabled) {
  return WithDriver([&](Call& call) {
    ExecNode& node = ExecOf(call, executable).NodeOf(NodeOf(call, handle).id);
    Require(MayBeSwitched(node.type));
    node.enabled = enabled != 0;
  });
}
SIM_API(cuGraphNodeGetEnabled)(CUgraphExec executable, CUgraphNode handle, unsigned int* enabled) {
  return WithDriver([&](Call& call) {
    const ExecNode& node = ExecOf(call, executable).NodeOf(NodeOf(call, handle).id);
    Require(enabled != nullptr && MayBeSwitched(node.type));
    *enabled = node.enabled ? 1 : 0;
  });
}

SIM_API(cuGraphUpload)(CUgraphExec executable, CUstream stream_handle) {
  return WithContext([&](Call& call) {
    ExecOf(call, executable);
    Operation upload;
    upload.name = "graph upload";
    call.Submit(call.StreamOf(stream_handle), std::move(upload));
  });
}

SIM_API(cuGraphLaunch)(CUgraphExec exec_handle, CUstream stream_handle) {
  return WithContext([&](Call& call) {
    GraphExec& executable = ExecOf(call, exec_handle);
    Stream& stream = call.StreamOf(stream_handle);
    RequireUncaptured(call, stream);
    LaunchGraph(call, executable, stream);
  });
}

SIM_API(cuGraphExecDestroy)(CUgraphExec handle) {
  return WithDriver([&](Call& call) {
    GraphExec& executable = ExecOf(call, handle);
    if (const GraphRef source = executable.source.lock()) --source->executables;
    ReleaseUserObjects(call, executable.objects, executable.last_launch);
    call.sim.graphs.executables.erase(&executable);
  });
}
