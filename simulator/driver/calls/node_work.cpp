#include "simulator/driver/calls/node_work.h"

#include "simulator/driver/calls/conditional.h"
#include "simulator/driver/calls/copy_shape.h"

#include <algorithm>

#include "simulator/driver/calls/stream_memory.h"
#include "simulator/driver/device/device.h"

namespace spillway::simulator {
namespace {

// For a node whose memory was valid when it was made. A launch after the memory is gone faults.
template <class Make>
Operation FaultIfGone(std::uintptr_t address, Make make) {
  try {
    return make();
  } catch (const Failure&) {
    Operation fault;
    fault.name = "graph node on memory that is gone";
    fault.effect = [address] { throw Fault{address}; };
    return fault;
  }
}

CUDA_KERNEL_NODE_PARAMS_v3 KernelParams(const KernelLaunch& launch, CUcontext context) {
  CUDA_KERNEL_NODE_PARAMS_v3 params = {};
  params.func = static_cast<CUfunction>(launch.handle);
  params.gridDimX = launch.shape.grid[0];
  params.gridDimY = launch.shape.grid[1];
  params.gridDimZ = launch.shape.grid[2];
  params.blockDimX = launch.shape.block[0];
  params.blockDimY = launch.shape.block[1];
  params.blockDimZ = launch.shape.block[2];
  params.sharedMemBytes = launch.shape.dynamic_shared_bytes;
  params.kernelParams = const_cast<void**>(launch.arguments->pointers());
  params.ctx = context;
  return params;
}

WorkRef MakeKernelWork(Call& call, const CUDA_KERNEL_NODE_PARAMS_v3& params) {
  const void* const handle =
      params.func != nullptr ? static_cast<const void*>(params.func) : params.kern;
  const LaunchShape shape{{params.gridDimX, params.gridDimY, params.gridDimZ},
                          {params.blockDimX, params.blockDimY, params.blockDimZ},
                          params.sharedMemBytes};
  KernelLaunch launch =
      DescribeLaunch(call, handle, shape, params.kernelParams, params.extra, Blocks::kAnyNumber);
  return std::make_shared<KernelWork>(std::move(launch), params.ctx);
}

WorkRef MakeCopyWork(Call& call, const CUDA_MEMCPY_NODE_PARAMS& params) {
  const CopyRequest request = RequestOf(call, params.copyParams);
  CheckCopy(call.sim, request);
  return std::make_shared<CopyWork>(request, params.copyParams, params.copyCtx);
}

WorkRef MakeSetWork(Call& call, const CUDA_MEMSET_NODE_PARAMS_v2& params) {
  Require(params.elementSize == 1 || params.elementSize == 2 || params.elementSize == 4);
  Require(params.width != 0 && params.height != 0);
  const SetRequest request{params.dst,         params.pitch, params.value,
                           params.elementSize, params.width, params.height};
  CheckSet(call.sim, request);
  return std::make_shared<SetWork>(request, params.ctx);
}

WorkRef MakeBatchWork(Call& call, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2& params) {
  Require(params.count <= 256 && params.paramArray != nullptr && params.flags == 0);
  for (unsigned i = 0; i < params.count; ++i) MakeMemoryOperation(call.sim, params.paramArray[i]);
  return std::make_shared<BatchWork>(
      std::vector<CUstreamBatchMemOpParams>(params.paramArray, params.paramArray + params.count),
      params.ctx);
}

WorkRef MakeChildWork(Call& call, const CUDA_CHILD_GRAPH_NODE_PARAMS& params) {
  Require(call.sim.graphs.graphs.contains(reinterpret_cast<Graph*>(params.graph)));
  const Graph& graph = *reinterpret_cast<const Graph*>(params.graph);
  if (params.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
    const auto found = call.sim.graphs.owned.find(reinterpret_cast<Graph*>(params.graph));
    Require(found != call.sim.graphs.owned.end());
    Require(!graph.HasConditionalNodes(), CUDA_ERROR_NOT_SUPPORTED);
    return std::make_shared<ChildWork>(std::move(call.sim.graphs.owned.extract(found).mapped()));
  }
  Require(!graph.IsSingular(), CUDA_ERROR_NOT_SUPPORTED);
  return std::make_shared<ChildWork>(graph.Clone());
}

WorkRef MakeEventWork(Call& call, CUgraphNodeType type, CUevent event) {
  call.EventOf(event);
  return std::make_shared<EventWork>(type, event);
}

}  // namespace

OperationRef EmptyWork::Run(GraphPass& pass, const std::vector<OperationRef>& after) const {
  Operation nothing;
  nothing.name = "graph edge";
  return pass.Submit(std::move(nothing), after);
}

void ChildWork::Describe(CUgraphNodeParams& params) const {
  params.graph.graph = reinterpret_cast<CUgraph>(graph_.get());
}

void KernelWork::Describe(CUgraphNodeParams& params) const {
  params.kernel = KernelParams(launch_, context_);
}

OperationRef KernelWork::Run(GraphPass& pass, const std::vector<OperationRef>& after) const {
  return pass.Submit(MakeLaunch(pass.sim, launch_), after);
}

void CopyWork::Describe(CUgraphNodeParams& params) const {
  params.memcpy.copyCtx = context_;
  params.memcpy.copyParams = described_;
}

OperationRef CopyWork::Run(GraphPass& pass, const std::vector<OperationRef>& after) const {
  return pass.Submit(
      FaultIfGone(request_.target.base, [&] { return MakeCopy(pass.sim, request_); }), after);
}

void SetWork::Describe(CUgraphNodeParams& params) const {
  params.memset = {request_.base,
                   request_.pitch_bytes,
                   request_.value,
                   static_cast<unsigned>(request_.element_bytes),
                   request_.row_elements,
                   request_.rows,
                   context_};
}

OperationRef SetWork::Run(GraphPass& pass, const std::vector<OperationRef>& after) const {
  return pass.Submit(FaultIfGone(request_.base, [&] { return MakeSet(pass.sim, request_); }),
                     after);
}

void HostWork::Describe(CUgraphNodeParams& params) const { params.host = {function_, data_}; }

OperationRef HostWork::Run(GraphPass& pass, const std::vector<OperationRef>& after) const {
  Operation operation;
  operation.name = "host function";
  operation.resource = Resource::kHostThread;
  operation.effect = [errors = pass.like.errors, function = function_, data = data_] {
    if (errors->sticky == CUDA_SUCCESS) function(data);
  };
  return pass.Submit(std::move(operation), after);
}

void EventWork::Describe(CUgraphNodeParams& params) const {
  if (type_ == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
    params.eventRecord.event = event_;
  else
    params.eventWait.event = event_;
}

OperationRef EventWork::Run(GraphPass& pass, const std::vector<OperationRef>& after) const {
  const auto found = pass.sim.events.find(reinterpret_cast<Event*>(event_));
  Event* const event = found == pass.sim.events.end() ? nullptr : found->second.get();
  Operation operation;
  operation.name = type_ == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? "event record" : "event wait";
  if (type_ == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
    const OperationRef record = pass.Submit(std::move(operation), after);
    if (event != nullptr) event->Record(record);
    return record;
  }
  std::vector<OperationRef> also = after;
  if (event != nullptr) also.push_back(event->recorded);
  return pass.Submit(std::move(operation), also);
}

void BatchWork::Describe(CUgraphNodeParams& params) const {
  params.memOp.ctx = context_;
  params.memOp.count = static_cast<unsigned>(operations_.size());
  params.memOp.paramArray = const_cast<CUstreamBatchMemOpParams*>(operations_.data());
}

OperationRef BatchWork::Run(GraphPass& pass, const std::vector<OperationRef>& after) const {
  OperationRef last = EmptyWork().Run(pass, after);
  for (const CUstreamBatchMemOpParams& one : operations_) {
    const auto make = [&] { return MakeMemoryOperation(pass.sim, one); };
    last = pass.Submit(FaultIfGone(one.waitValue.address, make), {last});
  }
  return last;
}

void AllocWork::Describe(CUgraphNodeParams& params) const {
  CUDA_MEM_ALLOC_NODE_PARAMS_v2& alloc = params.alloc;
  alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  alloc.poolProps.location.id = allocation_->device.ordinal;
  alloc.bytesize = allocation_->size_bytes;
  alloc.dptr = allocation_->base;
}

void FreeWork::Describe(CUgraphNodeParams& params) const { params.free.dptr = address_; }

WorkRef MakeAllocWork(Call& call, const CUmemPoolProps& properties, std::size_t size_bytes) {
  Require(properties.allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
          properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE && size_bytes != 0);
  Require(properties.handleTypes == CU_MEM_HANDLE_TYPE_NONE);
  Device& device = call.sim.devices.At(properties.location.id);
  Require(size_bytes <= device.physical.capacity_bytes(), CUDA_ERROR_OUT_OF_MEMORY);
  return std::make_shared<AllocWork>(
      call.sim.graph_memory.Reserve(device, call.sim.addresses, size_bytes));
}

WorkRef MakeFreeWork(Call& call, CUdeviceptr address) {
  Require(call.sim.graph_memory.Find(address) != nullptr);
  return std::make_shared<FreeWork>(address);
}

WorkRef MakeWork(Call& call, CUgraphNodeParams& params) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return MakeKernelWork(call, params.kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return MakeCopyWork(call, params.memcpy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return MakeSetWork(call, params.memset);
    case CU_GRAPH_NODE_TYPE_HOST:
      Require(params.host.fn != nullptr);
      return std::make_shared<HostWork>(params.host.fn, params.host.userData);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return MakeChildWork(call, params.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return std::make_shared<EmptyWork>();
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return MakeEventWork(call, params.type, params.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return MakeEventWork(call, params.type, params.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      const WorkRef work = MakeAllocWork(call, params.alloc.poolProps, params.alloc.bytesize);
      params.alloc.dptr = static_cast<const AllocWork&>(*work).allocation()->base;
      return work;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return MakeFreeWork(call, params.free.dptr);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return MakeBatchWork(call, params.memOp);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return MakeConditionalWork(call, params.conditional);
    default:
      throw Failure{CUDA_ERROR_NOT_SUPPORTED};
  }
}

}  // namespace spillway::simulator
