// The work of each type of graph node. All are constant.
//
// A launch faults if the memory of a node is gone.
#pragma once

#include <vector>

#include "simulator/driver/calls/copy.h"
#include "simulator/driver/calls/graph.h"
#include "simulator/driver/calls/launch.h"

namespace spillway::simulator {

class EmptyWork : public NodeWork {
 public:
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_EMPTY; }
  void Describe(CUgraphNodeParams&) const override {}
  OperationRef Run(GraphPass& pass, const std::vector<OperationRef>& after) const override;
};

// The child's nodes run among their parent's (Flatten); this node is only their end.
class ChildWork : public EmptyWork {
 public:
  explicit ChildWork(GraphRef graph) : graph_(std::move(graph)) {}
  const GraphRef& graph() const { return graph_; }
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_GRAPH; }
  void Describe(CUgraphNodeParams& params) const override;

 private:
  const GraphRef graph_;
};

class KernelWork : public NodeWork {
 public:
  KernelWork(KernelLaunch launch, CUcontext context)
      : launch_(std::move(launch)), context_(context) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_KERNEL; }
  void Describe(CUgraphNodeParams& params) const override;
  OperationRef Run(GraphPass& pass, const std::vector<OperationRef>& after) const override;

 private:
  const KernelLaunch launch_;
  const CUcontext context_;
};

class CopyWork : public NodeWork {
 public:
  CopyWork(const CopyRequest& request, const CUDA_MEMCPY3D& described, CUcontext context)
      : request_(request), described_(described), context_(context) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEMCPY; }
  void Describe(CUgraphNodeParams& params) const override;
  OperationRef Run(GraphPass& pass, const std::vector<OperationRef>& after) const override;

 private:
  const CopyRequest request_;
  const CUDA_MEMCPY3D described_;
  const CUcontext context_;
};

class SetWork : public NodeWork {
 public:
  SetWork(const SetRequest& request, CUcontext context) : request_(request), context_(context) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEMSET; }
  void Describe(CUgraphNodeParams& params) const override;
  OperationRef Run(GraphPass& pass, const std::vector<OperationRef>& after) const override;

 private:
  const SetRequest request_;
  const CUcontext context_;
};

class HostWork : public NodeWork {
 public:
  HostWork(CUhostFn function, void* data) : function_(function), data_(data) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_HOST; }
  void Describe(CUgraphNodeParams& params) const override;
  OperationRef Run(GraphPass& pass, const std::vector<OperationRef>& after) const override;

 private:
  const CUhostFn function_;
  void* const data_;
};

// An event that the program can also use outside the graph.
class EventWork : public NodeWork {
 public:
  EventWork(CUgraphNodeType type, CUevent event) : type_(type), event_(event) {}
  CUevent event() const { return event_; }
  CUgraphNodeType type() const override { return type_; }
  void Describe(CUgraphNodeParams& params) const override;
  OperationRef Run(GraphPass& pass, const std::vector<OperationRef>& after) const override;

 private:
  const CUgraphNodeType type_;
  const CUevent event_;
};

class BatchWork : public NodeWork {
 public:
  BatchWork(std::vector<CUstreamBatchMemOpParams> operations, CUcontext context)
      : operations_(std::move(operations)), context_(context) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
  void Describe(CUgraphNodeParams& params) const override;
  OperationRef Run(GraphPass& pass, const std::vector<OperationRef>& after) const override;

 private:
  const std::vector<CUstreamBatchMemOpParams> operations_;
  const CUcontext context_;
};

class AllocWork : public EmptyWork {
 public:
  explicit AllocWork(GraphAllocationRef allocation) : allocation_(std::move(allocation)) {}
  const GraphAllocationRef& allocation() const { return allocation_; }
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEM_ALLOC; }
  void Describe(CUgraphNodeParams& params) const override;

 private:
  const GraphAllocationRef allocation_;
};

class FreeWork : public EmptyWork {
 public:
  explicit FreeWork(CUdeviceptr address) : address_(address) {}
  CUdeviceptr address() const { return address_; }
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
  void Describe(CUgraphNodeParams& params) const override;

 private:
  const CUdeviceptr address_;
};

WorkRef MakeAllocWork(Call& call, const CUmemPoolProps& properties, std::size_t size_bytes);
WorkRef MakeFreeWork(Call& call, CUdeviceptr address);
WorkRef MakeWork(Call& call, CUgraphNodeParams& params);

}  // namespace spillway::simulator
