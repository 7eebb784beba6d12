// From the descriptors that a program makes to the claims of an execution.
#include "interposer/dnn/backend_descriptors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/interposer/graph_attributes.h"

namespace spillway::dnn {
namespace {

using interposer::Claims;
using Kind = Claims::Kind;

// Numbers of cudnn_graph.h that the product does not name
constexpr auto kPlanKernelCache = static_cast<Attribute>(406);
constexpr auto kKernelCacheGraph = static_cast<Attribute>(2400);
constexpr auto kHeuristics = static_cast<DescriptorKind>(4);
constexpr auto kReshape = static_cast<DescriptorKind>(31);
constexpr auto kKernelCache = static_cast<DescriptorKind>(34);

constexpr CUdeviceptr kX = 0x10'0000, kY = 0x20'0000, kScratch = 0x30'0000;

std::string Text(const Claims& claims) {
  std::string text;
  for (const Claims::Claim& claim : claims.all()) {
    const char* const names[] = {"reads", "overwrites", "clobbers", "touches"};
    const char* const place = claim.begin == kX         ? "x"
                              : claim.begin == kY       ? "y"
                              : claim.begin == kScratch ? "scratch"
                                                        : "?";
    text += std::string(names[static_cast<int>(claim.kind)]) + " " + place + " " +
            std::to_string(claim.end - claim.begin) + "; ";
  }
  return text;
}
constexpr const char* kReshapeClaims = "reads x 24; overwrites y 24; ";

// Plays the hooks for a program that reshapes x to y. Descriptors are addresses of its bytes.
class BackendDescriptorsTest : public testing::Test {
 protected:
  BackendDescriptor Make(DescriptorKind kind) {
    const BackendDescriptor made = &addresses_[next_++];
    descriptors_.Created(made, kind);
    return made;
  }
  void Set(BackendDescriptor whole, Attribute name, const AttributeValue& value,
           std::int64_t element_bytes) {
    descriptors_.Set(whole, name, value.type,
                     static_cast<std::int64_t>(value.elements.size()) / element_bytes,
                     value.elements.data());
  }
  void SetParts(BackendDescriptor whole, Attribute name, std::vector<BackendDescriptor> parts) {
    descriptors_.Set(whole, name, AttributeType::kDescriptor,
                     static_cast<std::int64_t>(parts.size()), parts.data());
  }

  void Describe(BackendDescriptor tensor, std::int64_t uid) {
    Set(tensor, Attribute::kTensorUniqueId, Integers({uid}), 8);
    Set(tensor, Attribute::kTensorDataType, Enumerator(kFloat), 4);
    Set(tensor, Attribute::kTensorDimensions, Integers({2, 3}), 8);
    Set(tensor, Attribute::kTensorStrides, Integers({3, 1}), 8);
  }
  BackendDescriptor MakeTensor(std::int64_t uid) {
    const BackendDescriptor tensor = Make(DescriptorKind::kTensor);
    Describe(tensor, uid);
    descriptors_.Finalized(tensor);
    return tensor;
  }
  BackendDescriptor MakeReshape(BackendDescriptor x, BackendDescriptor y) {
    const BackendDescriptor operation = Make(kReshape);
    SetParts(operation, static_cast<Attribute>(RESHAPE_XDESC), {x});
    SetParts(operation, static_cast<Attribute>(RESHAPE_YDESC), {y});
    descriptors_.Finalized(operation);
    return operation;
  }
  BackendDescriptor MakeWhole(DescriptorKind kind, Attribute name,
                              std::vector<BackendDescriptor> parts) {
    const BackendDescriptor whole = Make(kind);
    SetParts(whole, name, std::move(parts));
    descriptors_.Finalized(whole);
    return whole;
  }
  BackendDescriptor MakeGraph(std::vector<BackendDescriptor> operations) {
    return MakeWhole(DescriptorKind::kOperationGraph, Attribute::kGraphOperations,
                     std::move(operations));
  }
  BackendDescriptor ReshapeGraph() {
    return MakeGraph({MakeReshape(MakeTensor('x'), MakeTensor('y'))});
  }
  BackendDescriptor MakePlan(BackendDescriptor configuration) {
    return MakeWhole(DescriptorKind::kExecutionPlan, Attribute::kPlanConfiguration,
                     {configuration});
  }
  BackendDescriptor PlanOf(BackendDescriptor graph) {
    const BackendDescriptor engine =
        MakeWhole(DescriptorKind::kEngine, Attribute::kEngineGraph, {graph});
    return MakePlan(
        MakeWhole(DescriptorKind::kEngineConfiguration, Attribute::kConfigurationEngine, {engine}));
  }

  BackendDescriptor MakePack(std::vector<std::int64_t> uids = {'x', 'y'},
                             std::vector<CUdeviceptr> data = {kX, kY},
                             CUdeviceptr scratch = kScratch) {
    const BackendDescriptor pack = Make(DescriptorKind::kVariantPack);
    descriptors_.Set(pack, Attribute::kPackUniqueIds, AttributeType::kInt64,
                     static_cast<std::int64_t>(uids.size()), uids.data());
    descriptors_.Set(pack, Attribute::kPackPointers, AttributeType::kVoidPointer,
                     static_cast<std::int64_t>(data.size()), data.data());
    descriptors_.Set(pack, Attribute::kPackWorkspace, AttributeType::kVoidPointer, 1, &scratch);
    descriptors_.Finalized(pack);
    return pack;
  }
  Claims ClaimsOf(BackendDescriptor plan, BackendDescriptor pack) const {
    Claims claims;
    descriptors_.AddClaims(plan, pack, &claims);
    return claims;
  }
  // The plan's claims, without those on the workspace.
  std::string TextOf(BackendDescriptor plan) {
    std::string text = Text(ClaimsOf(plan, MakePack()));
    const std::size_t workspace = text.find("touches scratch 1; ");
    return workspace == std::string::npos ? text : text.erase(workspace);
  }

  char addresses_[256] = {};
  int next_ = 0;
  BackendDescriptors descriptors_;
};

TEST_F(BackendDescriptorsTest, PlanOverAnEngineHasItsGraph) {
  EXPECT_EQ(TextOf(PlanOf(ReshapeGraph())), kReshapeClaims);
}

TEST_F(BackendDescriptorsTest, PlanOverHeuristicsHasTheirGraph) {
  const BackendDescriptor heuristics =
      MakeWhole(kHeuristics, Attribute::kHeuristicsGraph, {ReshapeGraph()});
  const BackendDescriptor configurations[] = {Make(DescriptorKind::kEngineConfiguration),
                                              Make(DescriptorKind::kEngineConfiguration)};
  descriptors_.Filled(heuristics, 2, configurations);
  for (const BackendDescriptor configuration : configurations)
    EXPECT_EQ(TextOf(MakePlan(configuration)), kReshapeClaims);
}

TEST_F(BackendDescriptorsTest, EngineOfAConfigurationHasItsGraph) {
  const BackendDescriptor heuristics =
      MakeWhole(kHeuristics, Attribute::kHeuristicsGraph, {ReshapeGraph()});
  const BackendDescriptor configuration = Make(DescriptorKind::kEngineConfiguration);
  descriptors_.Filled(heuristics, 1, &configuration);
  const BackendDescriptor engine = Make(DescriptorKind::kEngine);
  descriptors_.Filled(configuration, 1, &engine);
  EXPECT_EQ(TextOf(MakePlan(MakeWhole(DescriptorKind::kEngineConfiguration,
                                      Attribute::kConfigurationEngine, {engine}))),
            kReshapeClaims);
}

TEST_F(BackendDescriptorsTest, ConfigurationThatIsFilledAnewHasTheNewGraph) {
  const BackendDescriptor configuration = Make(DescriptorKind::kEngineConfiguration);
  const BackendDescriptor known =
      MakeWhole(kHeuristics, Attribute::kHeuristicsGraph, {ReshapeGraph()});
  descriptors_.Filled(known, 1, &configuration);
  const BackendDescriptor unknown = &addresses_[next_++];
  descriptors_.Filled(unknown, 1, &configuration);
  EXPECT_EQ(TextOf(MakePlan(configuration)), "");
}

TEST_F(BackendDescriptorsTest, PartsAreNotNeededOnceTheyWereSet) {
  std::vector<BackendDescriptor> parts;
  const auto forget = [&](BackendDescriptor part) { descriptors_.Destroyed(part); };
  const BackendDescriptor x = MakeTensor('x'), y = MakeTensor('y');
  const BackendDescriptor operation = MakeReshape(x, y);
  forget(x), forget(y);
  const BackendDescriptor graph = MakeGraph({operation});
  forget(operation);
  const BackendDescriptor engine =
      MakeWhole(DescriptorKind::kEngine, Attribute::kEngineGraph, {graph});
  forget(graph);
  const BackendDescriptor configuration =
      MakeWhole(DescriptorKind::kEngineConfiguration, Attribute::kConfigurationEngine, {engine});
  forget(engine);
  const BackendDescriptor plan = MakePlan(configuration);
  forget(configuration);
  EXPECT_EQ(TextOf(plan), kReshapeClaims);
}

TEST_F(BackendDescriptorsTest, DestroyedPlanOrPackMakesNoClaims) {
  const BackendDescriptor plan = PlanOf(ReshapeGraph()), pack = MakePack();
  descriptors_.Destroyed(pack);
  EXPECT_EQ(Text(ClaimsOf(plan, pack)), "");
  descriptors_.Destroyed(plan);
  EXPECT_EQ(TextOf(plan), "");
}

TEST_F(BackendDescriptorsTest, ReusedAddressKeepsNothing) {
  const BackendDescriptor tensor = Make(DescriptorKind::kTensor);
  Describe(tensor, 'x');
  SetParts(tensor, Attribute::kTensorRaggedOffset, {MakeTensor('r')});
  descriptors_.Finalized(tensor);
  descriptors_.Destroyed(tensor);
  descriptors_.Created(tensor, DescriptorKind::kTensor);
  Describe(tensor, 'x');
  descriptors_.Finalized(tensor);
  EXPECT_EQ(TextOf(PlanOf(MakeGraph({MakeReshape(tensor, MakeTensor('y'))}))), kReshapeClaims);

  const BackendDescriptor plan = PlanOf(ReshapeGraph());
  descriptors_.SetWorkspaceBytes(plan, 64);
  descriptors_.MarkDeterministic(plan);
  descriptors_.Created(plan, DescriptorKind::kExecutionPlan);
  const Claims claims = ClaimsOf(plan, MakePack());
  EXPECT_EQ(Text(claims), "");
  EXPECT_FALSE(claims.is_repeatable());
}

TEST_F(BackendDescriptorsTest, PlanOfATextMakesNoClaims) {
  const BackendDescriptor plan = Make(DescriptorKind::kExecutionPlan);
  const auto set_text = [&](BackendDescriptor whole) {
    const char text[] = "{}";
    descriptors_.Set(whole, Attribute::kPlanText, AttributeType::kCharacter, sizeof(text), text);
  };
  set_text(plan);
  descriptors_.Finalized(plan);
  EXPECT_EQ(Text(ClaimsOf(plan, MakePack())), "");
  // With a configuration as well, the text's graph may be another.
  const BackendDescriptor both = PlanOf(ReshapeGraph());
  set_text(both);
  EXPECT_EQ(Text(ClaimsOf(both, MakePack())), "");
}

TEST_F(BackendDescriptorsTest, UnknownPlanOrPackMakesNoClaims) {
  EXPECT_EQ(TextOf(&addresses_[255]), "");
  EXPECT_EQ(Text(ClaimsOf(PlanOf(ReshapeGraph()), &addresses_[255])), "");
}

TEST_F(BackendDescriptorsTest, KernelCacheDoesNotGiveItsGraph) {
  const BackendDescriptor cache = MakeWhole(kKernelCache, kKernelCacheGraph, {ReshapeGraph()});
  EXPECT_EQ(TextOf(MakeWhole(DescriptorKind::kExecutionPlan, kPlanKernelCache, {cache})), "");
  // A plan with both has its configuration's.
  const BackendDescriptor plan = PlanOf(ReshapeGraph());
  SetParts(plan, kPlanKernelCache, {cache});
  EXPECT_EQ(TextOf(plan), kReshapeClaims);
}

TEST_F(BackendDescriptorsTest, OverridingShapesMakeNoClaims) {
  const BackendDescriptor plan = PlanOf(ReshapeGraph());
  for (const Attribute name :
       {Attribute::kPackOverridingShapes, Attribute::kPackOverridingStrides}) {
    const BackendDescriptor pack = MakePack();
    const void* const shapes = nullptr;
    descriptors_.Set(pack, name, AttributeType::kVoidPointer, 1, &shapes);
    EXPECT_EQ(Text(ClaimsOf(plan, pack)), "");
  }
}

TEST_F(BackendDescriptorsTest, PlanThatRunsSomeOperationsMakesNoClaims) {
  const BackendDescriptor plan = PlanOf(ReshapeGraph());
  Set(plan, Attribute::kPlanRunsOnly, Integers({'y'}), 8);
  EXPECT_EQ(Text(ClaimsOf(plan, MakePack())), "");
}

TEST_F(BackendDescriptorsTest, TensorThatCudnnFilledIsUnknown) {
  const BackendDescriptor x = MakeTensor('x'), y = MakeTensor('y');
  descriptors_.Filled(MakeReshape(x, y), 1, &x);
  EXPECT_EQ(TextOf(PlanOf(MakeGraph({MakeReshape(x, y)}))), "");
}

TEST_F(BackendDescriptorsTest, OperationThatCudnnFilledIsUnknown) {
  const BackendDescriptor graph = ReshapeGraph();
  const BackendDescriptor operation = MakeReshape(MakeTensor('x'), MakeTensor('y'));
  descriptors_.Filled(graph, 1, &operation);
  EXPECT_EQ(TextOf(PlanOf(MakeGraph({operation}))), "");
}

TEST_F(BackendDescriptorsTest, GraphWithDynamicShapesOverwritesNothing) {
  const BackendDescriptor graph = Make(DescriptorKind::kOperationGraph);
  SetParts(graph, Attribute::kGraphOperations, {MakeReshape(MakeTensor('x'), MakeTensor('y'))});
  Set(graph, Attribute::kGraphIsDynamic, Flag(true), 1);
  descriptors_.Finalized(graph);
  EXPECT_EQ(TextOf(PlanOf(graph)), "reads x 24; touches y 1; ");
}

TEST_F(BackendDescriptorsTest, LastOperationsOfAGraphCount) {
  const BackendDescriptor graph = Make(DescriptorKind::kOperationGraph);
  SetParts(graph, Attribute::kGraphOperations, {MakeReshape(MakeTensor('y'), MakeTensor('x'))});
  SetParts(graph, Attribute::kGraphOperations, {MakeReshape(MakeTensor('x'), MakeTensor('y'))});
  descriptors_.Finalized(graph);
  EXPECT_EQ(TextOf(PlanOf(graph)), kReshapeClaims);
}

TEST_F(BackendDescriptorsTest, LastValueOfAnAttributeCounts) {
  const BackendDescriptor tensor = Make(DescriptorKind::kTensor);
  Describe(tensor, 'z');
  Set(tensor, Attribute::kTensorIsVirtual, Flag(true), 1);
  Set(tensor, Attribute::kTensorIsVirtual, Flag(false), 1);
  Set(tensor, Attribute::kTensorUniqueId, Integers({'x'}), 8);
  descriptors_.Finalized(tensor);
  EXPECT_EQ(TextOf(PlanOf(MakeGraph({MakeReshape(tensor, MakeTensor('y'))}))), kReshapeClaims);
}

TEST_F(BackendDescriptorsTest, IdsThatTheGraphLacksAreIgnored) {
  EXPECT_EQ(Text(ClaimsOf(PlanOf(ReshapeGraph()), MakePack({'z', 'y'}, {kX, kY}, 0))),
            "overwrites y 24; ");
}

TEST_F(BackendDescriptorsTest, IdWithTwoPointersIsUnknown) {
  // cuDNN's variant pack accepts it.
  EXPECT_EQ(Text(ClaimsOf(PlanOf(ReshapeGraph()), MakePack({'y', 'y'}, {kX, kY}, 0))),
            "touches x 1; touches y 1; ");
}

TEST_F(BackendDescriptorsTest, WorkspaceIsClobberedToItsSize) {
  const BackendDescriptor plan = PlanOf(ReshapeGraph());
  EXPECT_EQ(Text(ClaimsOf(plan, MakePack())), std::string(kReshapeClaims) + "touches scratch 1; ");
  descriptors_.SetWorkspaceBytes(plan, 4096);
  EXPECT_EQ(Text(ClaimsOf(plan, MakePack())),
            std::string(kReshapeClaims) + "clobbers scratch 4096; ");
}

TEST_F(BackendDescriptorsTest, PlanIsRepeatableOnceItIsMarked) {
  const BackendDescriptor plan = PlanOf(ReshapeGraph());
  EXPECT_FALSE(ClaimsOf(plan, MakePack()).is_repeatable());
  descriptors_.MarkDeterministic(plan);
  EXPECT_TRUE(ClaimsOf(plan, MakePack()).is_repeatable());
}

TEST_F(BackendDescriptorsTest, AnotherConfigurationMayNotBeRepeatable) {
  const BackendDescriptor graph = ReshapeGraph();
  const BackendDescriptor plan = PlanOf(graph);
  descriptors_.MarkDeterministic(plan);
  const BackendDescriptor engine =
      MakeWhole(DescriptorKind::kEngine, Attribute::kEngineGraph, {graph});
  SetParts(
      plan, Attribute::kPlanConfiguration,
      {MakeWhole(DescriptorKind::kEngineConfiguration, Attribute::kConfigurationEngine, {engine})});
  EXPECT_FALSE(ClaimsOf(plan, MakePack()).is_repeatable());
}

TEST_F(BackendDescriptorsTest, PlanLosesItsGraphWithItsConfiguration) {
  const BackendDescriptor plan = PlanOf(ReshapeGraph());
  SetParts(plan, Attribute::kPlanConfiguration, {&addresses_[255]});
  EXPECT_TRUE(ClaimsOf(plan, MakePack()).empty());
}

TEST_F(BackendDescriptorsTest, OnlyPlansArePlans) {
  const BackendDescriptor graph = ReshapeGraph();
  EXPECT_TRUE(descriptors_.IsPlan(PlanOf(graph)));
  EXPECT_FALSE(descriptors_.IsPlan(graph));
  EXPECT_FALSE(descriptors_.IsPlan(&addresses_[255]));
}

TEST_F(BackendDescriptorsTest, TypesThatAreNotKnownHaveNoElements) {
  const BackendDescriptor x = Make(DescriptorKind::kTensor);
  Describe(x, 'x');
  const std::int64_t none = 0;
  descriptors_.Set(x, Attribute::kTensorReordering, static_cast<AttributeType>(77), 1 << 20, &none);
  descriptors_.Finalized(x);
  EXPECT_EQ(TextOf(PlanOf(MakeGraph({MakeReshape(x, MakeTensor('y'))}))), kReshapeClaims);
}

}  // namespace
}  // namespace spillway::dnn
