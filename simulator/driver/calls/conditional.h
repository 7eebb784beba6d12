// Conditional graph nodes.
//
// A body is submitted by the effect of the operation that reads the condition. A node owns its
// bodies' graphs; an executable shares constant copies of their nodes.
//
// Invariants
//  1. A handle is the address of an unsigned int in host memory. Device code sets it by a store:
//     cudaGraphSetConditional(handle, value) is *(unsigned*)handle = value.
//  2. Executables of one graph share its handles' values. A launch begins by assigning the
//     defaults.
//  3. A body has kernels, copies, sets, empty nodes, child graphs and conditional nodes, as
//     documented; instantiation refuses others.
//  4. In the compute mode `tags` kernels set nothing: a loop's body runs once.
#pragma once

#include <vector>

#include "simulator/driver/calls/node_work.h"

namespace spillway::simulator {

struct Condition {
  unsigned value;
  unsigned at_launch;
  bool has_default;
};
using ConditionRef = std::shared_ptr<Condition>;

struct ConditionalShape {
  ConditionRef condition;
  CUgraphConditionalNodeType type;
  CUcontext context;

  CUgraphConditionalHandle handle() const {
    return reinterpret_cast<CUgraphConditionalHandle>(&condition->value);
  }
};

class ConditionalRun : public NodeWork {
 public:
  using Bodies = std::vector<std::vector<ExecNode>>;
  ConditionalRun(ConditionalShape shape, Bodies bodies)
      : shape_(std::move(shape)), bodies_(std::make_shared<const Bodies>(std::move(bodies))) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_CONDITIONAL; }
  void Describe(CUgraphNodeParams& params) const override;
  OperationRef Run(GraphPass& pass, const std::vector<OperationRef>& after) const override;

  const ConditionalShape& shape() const { return shape_; }
  const Bodies& bodies() const { return *bodies_; }
  void CollectConditions(std::vector<ConditionRef>& out) const;

 private:
  const ConditionalShape shape_;
  const std::shared_ptr<const Bodies> bodies_;
};

class ConditionalWork : public EmptyWork {
 public:
  ConditionalWork(ConditionalShape shape, std::vector<GraphRef> bodies);
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_CONDITIONAL; }
  void Describe(CUgraphNodeParams& params) const override;

  WorkRef Instantiate() const;

 private:
  const ConditionalShape shape_;
  const std::vector<GraphRef> bodies_;
  mutable std::vector<CUgraph> handles_;
};

WorkRef MakeConditionalWork(Call& call, CUDA_CONDITIONAL_NODE_PARAMS& params);

CUgraphConditionalHandle MakeCondition(Call& call, unsigned at_launch, bool has_default);

std::vector<ConditionRef> ConditionsOf(const std::vector<ExecNode>& nodes);

}  // namespace spillway::simulator
