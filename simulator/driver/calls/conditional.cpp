#include "simulator/driver/calls/conditional.h"

#include <utility>

#include "simulator/driver/calls/graph_handles.h"
#include "simulator/driver/machine/compute_mode.h"

namespace spillway::simulator {
namespace {

constexpr std::size_t kNoBody = ~std::size_t{0};

struct Turn {
  GraphPass pass;
  ConditionalShape shape;
  std::shared_ptr<const ConditionalRun::Bodies> bodies;
  OperationRef end;
};

std::size_t BodyFor(const ConditionalShape& shape, std::size_t bodies) {
  const unsigned value = shape.condition->value;
  switch (shape.type) {
    case CU_GRAPH_COND_TYPE_IF:
      if (value != 0) return 0;
      return bodies > 1 ? 1 : kNoBody;
    case CU_GRAPH_COND_TYPE_WHILE:
      return value != 0 ? 0 : kNoBody;
    case CU_GRAPH_COND_TYPE_SWITCH:
      return value < bodies ? value : kNoBody;
  }
  return kNoBody;
}

Operation Decision(const std::shared_ptr<Turn>& turn);

void Decide(const std::shared_ptr<Turn>& turn) {
  const std::size_t chosen = BodyFor(turn->shape, turn->bodies->size());
  if (chosen == kNoBody) return;
  GraphPass& pass = turn->pass;
  std::vector<OperationRef> done;
  for (const ExecNode& node : (*turn->bodies)[chosen]) {
    std::vector<OperationRef> after;
    for (const std::size_t before : node.after) after.push_back(done[before]);
    done.push_back(node.work->Run(pass, after));
  }
  const bool again =
      turn->shape.type == CU_GRAPH_COND_TYPE_WHILE && TheComputeMode() != ComputeMode::kTags;
  if (again) {
    Engine::Precede(pass.Submit(Decision(turn), done), turn->end);
  } else {
    for (const OperationRef& operation : done) Engine::Precede(operation, turn->end);
  }
}

Operation Decision(const std::shared_ptr<Turn>& turn) {
  Operation decision;
  decision.name = "graph condition";
  decision.effect = [turn] { Decide(turn); };
  return decision;
}

bool MayBeInABody(CUgraphNodeType type) {
  return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_EMPTY ||
         type == CU_GRAPH_NODE_TYPE_GRAPH || type == CU_GRAPH_NODE_TYPE_MEMSET ||
         type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

bool SizeFits(CUgraphConditionalNodeType type, unsigned size) {
  if (type == CU_GRAPH_COND_TYPE_WHILE) return size == 1;
  if (type == CU_GRAPH_COND_TYPE_IF) return size == 1 || size == 2;
  return type == CU_GRAPH_COND_TYPE_SWITCH && size > 0;
}

}  // namespace

void ConditionalRun::Describe(CUgraphNodeParams& params) const {
  params.conditional = {shape_.handle(), shape_.type, static_cast<unsigned>(bodies_->size()),
                        nullptr, shape_.context};
}

OperationRef ConditionalRun::Run(GraphPass& pass, const std::vector<OperationRef>& after) const {
  GraphPass inside = pass;
  inside.lock = nullptr;
  const auto end = std::make_shared<Operation>();
  end->name = "graph condition end";
  const auto turn = std::make_shared<Turn>(Turn{inside, shape_, bodies_, end});
  const auto decision = std::make_shared<Operation>(Decision(turn));
  // The end is submitted first, because the decision may be made at once.
  Engine::Precede(decision, end);
  pass.Submit(end, {});
  pass.Submit(decision, after);
  return end;
}

void ConditionalRun::CollectConditions(std::vector<ConditionRef>& out) const {
  out.push_back(shape_.condition);
  for (const std::vector<ExecNode>& body : *bodies_) {
    for (ConditionRef& inner : ConditionsOf(body)) out.push_back(std::move(inner));
  }
}

ConditionalWork::ConditionalWork(ConditionalShape shape, std::vector<GraphRef> bodies)
    : shape_(std::move(shape)), bodies_(std::move(bodies)) {
  for (const GraphRef& body : bodies_) handles_.push_back(Handle(body.get()));
}

void ConditionalWork::Describe(CUgraphNodeParams& params) const {
  params.conditional = {shape_.handle(), shape_.type, static_cast<unsigned>(bodies_.size()),
                        handles_.data(), shape_.context};
}

WorkRef ConditionalWork::Instantiate() const {
  ConditionalRun::Bodies bodies;
  for (const GraphRef& body : bodies_) {
    bodies.push_back(Flatten(*body));
    for (const ExecNode& node : bodies.back()) Require(MayBeInABody(node.type));
  }
  return std::make_shared<ConditionalRun>(shape_, std::move(bodies));
}

WorkRef MakeConditionalWork(Call& call, CUDA_CONDITIONAL_NODE_PARAMS& params) {
  const auto found = call.sim.graphs.conditions.find(params.handle);
  Require(found != call.sim.graphs.conditions.end() && SizeFits(params.type, params.size));
  std::vector<GraphRef> bodies;
  for (unsigned i = 0; i < params.size; ++i)
    bodies.push_back(std::make_shared<Graph>(call.sim.graphs));
  auto work = std::make_shared<ConditionalWork>(
      ConditionalShape{found->second, params.type, params.ctx}, std::move(bodies));
  CUgraphNodeParams described = {};
  work->Describe(described);
  params.phGraph_out = described.conditional.phGraph_out;
  return work;
}

CUgraphConditionalHandle MakeCondition(Call& call, unsigned at_launch, bool has_default) {
  auto condition = std::make_shared<Condition>(Condition{at_launch, at_launch, has_default});
  const CUgraphConditionalHandle handle =
      reinterpret_cast<CUgraphConditionalHandle>(&condition->value);
  call.sim.graphs.conditions.emplace(handle, std::move(condition));
  return handle;
}

std::vector<ConditionRef> ConditionsOf(const std::vector<ExecNode>& nodes) {
  std::vector<ConditionRef> conditions;
  for (const ExecNode& node : nodes) {
    if (const auto* run = dynamic_cast<const ConditionalRun*>(node.work.get()))
      run->CollectConditions(conditions);
  }
  return conditions;
}

}  // namespace spillway::simulator
