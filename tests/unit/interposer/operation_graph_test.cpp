// Which memory a graph of cuDNN operations reads, overwrites or uses in an unknown way.
#include "interposer/dnn/operation_graph.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/interposer/graph_attributes.h"

namespace spillway::dnn {

namespace {

constexpr auto kReads = BufferRole::kReads;
constexpr auto kOverwrites = BufferRole::kOverwrites;
constexpr auto kUnknown = BufferRole::kUnknown;

// Of 2 x 3 floats without gaps, changed by `more`.
Attributes TensorAttributes(std::int64_t uid, Attributes more = {}) {
  Attributes attributes = {{Attribute::kTensorUniqueId, Integers({uid})},
                           {Attribute::kTensorDataType, Enumerator(kFloat)},
                           {Attribute::kTensorDimensions, Integers({2, 3})},
                           {Attribute::kTensorStrides, Integers({3, 1})}};
  for (NamedAttribute& each : more) {
    std::erase_if(attributes, [&](const NamedAttribute& known) { return known.name == each.name; });
    attributes.push_back(std::move(each));
  }
  return attributes;
}
constexpr std::size_t kBytes = 2 * 3 * sizeof(float);

Tensor Plain(std::int64_t uid, Attributes more = {}) {
  return TensorOf(TensorAttributes(uid, std::move(more)));
}
Tensor OfType(std::int64_t uid, int type) {
  return Plain(uid, {{Attribute::kTensorDataType, Enumerator(type)}});
}

NamedAttribute Names(TensorAttribute name, std::vector<Tensor> tensors) {
  return {static_cast<Attribute>(name), {AttributeType::kDescriptor, {}, std::move(tensors)}};
}
NamedAttribute Names(TensorAttribute name, const Tensor& tensor) {
  return Names(name, std::vector{tensor});
}
NamedAttribute Names(TensorAttribute name, std::int64_t uid) { return Names(name, Plain(uid)); }

OperationGraph GraphOfOne(const Attributes& attributes, bool is_dynamic = false) {
  const Operation operation = OperationOf(attributes);
  return GraphOf({&operation, 1}, is_dynamic);
}
OperationGraph GraphOfTwo(const Attributes& first, const Attributes& second) {
  const Operation operations[] = {OperationOf(first), OperationOf(second)};
  return GraphOf(operations, false);
}

const Buffer* Find(const OperationGraph& graph, std::int64_t uid) {
  const Buffer* found = nullptr;
  for (const Buffer& buffer : graph.buffers) {
    if (buffer.uid != uid) continue;
    EXPECT_EQ(found, nullptr) << "twice: " << uid;
    found = &buffer;
  }
  return found;
}
void ExpectRole(const OperationGraph& graph, std::int64_t uid, BufferRole role) {
  const Buffer* const buffer = Find(graph, uid);
  ASSERT_NE(buffer, nullptr) << uid;
  EXPECT_EQ(buffer->role, role) << uid;
}
BufferRole RoleOfResult(Attributes more) {
  const OperationGraph graph =
      GraphOfOne({Names(RESHAPE_XDESC, 'x'), Names(RESHAPE_YDESC, Plain('y', std::move(more)))});
  const Buffer* const buffer = Find(graph, 'y');
  return buffer ? buffer->role : kUnknown;
}

TEST(TensorOfTest, ExtentFollowsSizesAndStrides) {
  const Tensor tensor = Plain(7);
  EXPECT_EQ(tensor.uid, 7);
  EXPECT_EQ(tensor.extent.bytes, kBytes);
  EXPECT_TRUE(tensor.extent.leaves_no_gap);
  EXPECT_TRUE(tensor.has_memory);
  EXPECT_FALSE(tensor.is_ragged);
  EXPECT_FALSE(tensor.holds_lengths);
}

TEST(TensorOfTest, TransposedTensorHasNoGaps) {
  EXPECT_TRUE(Plain(1, {{Attribute::kTensorStrides, Integers({1, 2})}}).extent.leaves_no_gap);
}

TEST(TensorOfTest, EveryFloatingTypeHasItsSize) {
  const std::pair<int, std::size_t> types[] = {
      {kDouble, 48}, {kHalf, 12}, {kBfloat16, 12}, {kFp8E4m3, 6}, {kFp8E5m2, 6},
      {kInt8, 6},    {kUint8, 6}, {kInt32, 24},    {kInt64, 48},  {kUint32, 24}};
  for (const auto& [type, bytes] : types) EXPECT_EQ(OfType(1, type).extent.bytes, bytes) << type;
}

TEST(TensorOfTest, UnknownTypeHasNoExtent) {
  EXPECT_EQ(OfType(1, 99).extent.bytes, 0u);
  EXPECT_EQ(OfType(1, 5).extent.bytes, 0u) << "CUDNN_DATA_INT8x4";
}

TEST(TensorOfTest, VectorizedOrReorderedTensorHasNoExtent) {
  EXPECT_EQ(Plain(1, {{Attribute::kTensorVectorCount, Integers({4})}}).extent.bytes, 0u);
  EXPECT_EQ(Plain(1, {{Attribute::kTensorReordering, Enumerator(1)}}).extent.bytes, 0u);
  EXPECT_EQ(Plain(1, {{Attribute::kTensorVectorCount, Integers({1})}}).extent.bytes, kBytes);
  EXPECT_EQ(Plain(1, {{Attribute::kTensorReordering, Enumerator(0)}}).extent.bytes, kBytes);
}

TEST(TensorOfTest, IncompleteTensorHasNoExtent) {
  EXPECT_EQ(TensorOf({}).extent.bytes, 0u);
  EXPECT_EQ(Plain(1, {{Attribute::kTensorStrides, Integers({3})}}).extent.bytes, 0u);
  EXPECT_EQ(Plain(1, {{Attribute::kTensorStrides, Integers({0, 1})}}).extent.bytes, 0u);
  EXPECT_EQ(Plain(1, {{Attribute::kTensorDimensions, Integers({0, 3})}}).extent.bytes, 0u);
}

TEST(TensorOfTest, IntegersOf32And64BitsMayBeLengths) {
  EXPECT_TRUE(OfType(1, kInt32).holds_lengths);
  EXPECT_TRUE(OfType(1, kInt64).holds_lengths);
  EXPECT_TRUE(OfType(1, kUint32).holds_lengths);
  EXPECT_FALSE(OfType(1, kInt8).holds_lengths);
}

TEST(OperationGraphTest, InputsAreReadAndResultsOverwritten) {
  const OperationGraph graph =
      GraphOfOne({Names(CONVOLUTION_FORWARD_X, 'x'), Names(CONVOLUTION_FORWARD_W, 'w'),
                  Names(CONVOLUTION_FORWARD_Y, 'y')});
  EXPECT_EQ(graph.buffers.size(), 3u);
  ExpectRole(graph, 'x', kReads);
  ExpectRole(graph, 'w', kReads);
  ExpectRole(graph, 'y', kOverwrites);
  EXPECT_EQ(Find(graph, 'x')->bytes, kBytes);
  EXPECT_EQ(Find(graph, 'y')->bytes, kBytes);
}

BufferRole BlendedRole(TensorAttribute result, Attribute beta, const AttributeValue& value) {
  return GraphOfOne({Names(result, 'y'), {beta, value}}).buffers.at(0).role;
}

TEST(OperationGraphTest, ResultThatIsAddedToTheOldOneIsUnknown) {
  const std::pair<TensorAttribute, Attribute> kinds[] = {
      {CONVOLUTION_FORWARD_Y, Attribute::kConvolutionForwardBeta},
      {CONVOLUTION_BWD_DATA_DX, Attribute::kConvolutionBackwardDataBeta},
      {CONVOLUTION_BWD_FILTER_DW, Attribute::kConvolutionBackwardFilterBeta},
      {RESAMPLE_FWD_YDESC, Attribute::kResampleForwardBeta}};
  for (const auto& [result, beta] : kinds) {
    EXPECT_EQ(BlendedRole(result, beta, Float(0)), kOverwrites) << result;
    EXPECT_EQ(BlendedRole(result, beta, Double(0)), kOverwrites) << result;
    EXPECT_EQ(BlendedRole(result, beta, Float(1)), kUnknown) << result;
    EXPECT_EQ(BlendedRole(result, beta, Double(0.5)), kUnknown) << result;
    EXPECT_EQ(BlendedRole(result, beta, Double(1)), kUnknown) << "its lower half is 0";
    EXPECT_EQ(GraphOfOne({Names(result, 'y')}).buffers.at(0).role, kOverwrites) << "unset";
  }
}

TEST(OperationGraphTest, NormsMeanIsReadByInferenceAndMadeByTraining) {
  const auto norm = [](Attributes attributes) {
    attributes.push_back(Names(NORM_FWD_XDESC, 'x'));
    attributes.push_back(Names(NORM_FWD_MEAN_DESC, 'm'));
    attributes.push_back(Names(NORM_FWD_INV_VARIANCE_DESC, 'v'));
    return GraphOfOne(attributes);
  };
  for (const std::int64_t statistic : {'m', 'v'}) {
    ExpectRole(norm({{Attribute::kNormPhase, Enumerator(1)}}), statistic, kOverwrites);
    ExpectRole(norm({{Attribute::kNormPhase, Enumerator(0)}}), statistic, kReads);
    ExpectRole(norm({}), statistic, kReads);
  }
}

TEST(OperationGraphTest, InferenceMayLeaveRunningStatisticsAsTheyAre) {
  const auto norm = [](int phase) {
    return GraphOfOne({{Attribute::kNormPhase, Enumerator(phase)},
                       Names(NORM_FWD_YDESC, 'y'),
                       Names(NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, 'm'),
                       Names(NORM_FWD_OUTPUT_RUNNING_VAR_DESC, 'v')});
  };
  for (const std::int64_t statistic : {'m', 'v'}) {
    ExpectRole(norm(1), statistic, kOverwrites);
    ExpectRole(norm(0), statistic, kUnknown);
  }
  ExpectRole(norm(0), 'y', kOverwrites);
}

TEST(OperationGraphTest, StatisticsInModeInferenceMakeOnlyScaleAndBias) {
  const auto statistics = [](int mode) {
    return GraphOfOne({{Attribute::kStatisticsMode, Enumerator(mode)},
                       Names(BN_FINALIZE_EQ_SCALE_DESC, 's'),
                       Names(BN_FINALIZE_SAVED_MEAN_DESC, 'm'),
                       Names(BN_FINALIZE_UPDATED_RUNNING_VAR_DESC, 'v')});
  };
  ExpectRole(statistics(0), 'm', kOverwrites);
  ExpectRole(statistics(0), 'v', kOverwrites);
  ExpectRole(statistics(0), 's', kOverwrites);
  ExpectRole(statistics(1), 'm', kUnknown);
  ExpectRole(statistics(1), 'v', kUnknown);
  ExpectRole(statistics(1), 's', kOverwrites);
}

TEST(OperationGraphTest, PointwiseResultIsAnInputOfItsBackwardPass) {
  ExpectRole(GraphOfOne({Names(POINTWISE_XDESC, 'x'), Names(POINTWISE_YDESC, 'y')}), 'y',
             kOverwrites);
  const OperationGraph backward = GraphOfOne(
      {Names(POINTWISE_YDESC, 'y'), Names(POINTWISE_DYDESC, 'd'), Names(POINTWISE_DXDESC, 'x')});
  ExpectRole(backward, 'y', kReads);
  ExpectRole(backward, 'd', kReads);
  ExpectRole(backward, 'x', kOverwrites);
}

TEST(OperationGraphTest, ConcatenationInPlaceKeepsAnInputInItsResult) {
  const auto inputs = Names(CONCAT_INPUT_DESCS, {Plain('a'), Plain('b')});
  const OperationGraph graph = GraphOfOne({inputs, Names(CONCAT_OUTPUT_DESC, 'y')});
  ExpectRole(graph, 'a', kReads);
  ExpectRole(graph, 'b', kReads);
  ExpectRole(graph, 'y', kOverwrites);
  // Index 0 is an input, too.
  ExpectRole(GraphOfOne({inputs,
                         Names(CONCAT_OUTPUT_DESC, 'y'),
                         {Attribute::kConcatenationInPlace, Integers({0})}}),
             'y', kUnknown);
}

TEST(OperationGraphTest, TensorInAnUnknownPartIsUnknown) {
  constexpr auto kFuture = static_cast<TensorAttribute>(9999);
  const OperationGraph graph =
      GraphOfOne({Names(kFuture, 'f'), Names(RESHAPE_XDESC, 'x'), Names(RESHAPE_YDESC, 'y')});
  ExpectRole(graph, 'f', kUnknown);
  ExpectRole(graph, 'x', kReads);
  ExpectRole(graph, 'y', kOverwrites);
}

TEST(OperationGraphTest, LengthsInAnUnknownPartMakeResultsPartial) {
  constexpr auto kFuture = static_cast<TensorAttribute>(9999);
  const OperationGraph graph =
      GraphOfOne({Names(kFuture, OfType('f', kInt32)), Names(RESHAPE_YDESC, 'y')});
  ExpectRole(graph, 'f', kUnknown);
  ExpectRole(graph, 'y', kUnknown);
}

TEST(OperationGraphTest, LengthsMakeResultsPartial) {
  const auto product = [](TensorAttribute name, int type) {
    return GraphOfOne({Names(name, OfType('n', type)), Names(MATMUL_CDESC, 'c')});
  };
  ExpectRole(product(MATMUL_ADESC, kFloat), 'c', kOverwrites);
  ExpectRole(product(MATMUL_ADESC, kInt8), 'c', kOverwrites);
  ExpectRole(product(MATMUL_ADESC, kInt32), 'c', kUnknown);
  ExpectRole(product(MATMUL_ADESC, kInt64), 'c', kUnknown);
  ExpectRole(product(MATMUL_ADESC, kInt32), 'n', kReads);
  ExpectRole(product(MATMUL_GEMM_M_OVERRIDE_DESC, kFloat), 'c', kUnknown);
  ExpectRole(product(SDPA_FWD_SEQ_LEN_QDESC, kInt32), 'c', kUnknown);
  ExpectRole(product(SDPA_FWD_BLOCK_MASK_DESC, kUint8), 'c', kUnknown);
  ExpectRole(product(PAGED_CACHE_LOAD_PAGE_TABLE_DESC, kInt32), 'c', kUnknown);
}

TEST(OperationGraphTest, LengthsGivenByValueMakeResultsPartial) {
  const Tensor length = Plain('n', {{Attribute::kTensorDataType, Enumerator(kInt32)},
                                    {Attribute::kTensorIsByValue, Flag(true)}});
  ExpectRole(GraphOfOne({Names(MATMUL_GEMM_K_OVERRIDE_DESC, length), Names(MATMUL_CDESC, 'c')}),
             'c', kUnknown);
}

TEST(OperationGraphTest, LengthsOfOneOperationMakeEveryResultPartial) {
  const OperationGraph graph =
      GraphOfTwo({Names(RESHAPE_XDESC, OfType('n', kInt32)), Names(RESHAPE_YDESC, 'y')},
                 {Names(MATMUL_ADESC, 'a'), Names(MATMUL_CDESC, 'c')});
  ExpectRole(graph, 'y', kUnknown);
  ExpectRole(graph, 'c', kUnknown);
  ExpectRole(graph, 'a', kReads);
}

TEST(OperationGraphTest, RandomNumbersSeedsAreNoLengths) {
  const OperationGraph graph =
      GraphOfOne({Names(RNG_SEED, OfType('s', kInt64)), Names(RNG_OFFSET_DESC, OfType('o', kInt64)),
                  Names(RNG_YDESC, 'y')});
  ExpectRole(graph, 's', kReads);
  ExpectRole(graph, 'o', kReads);
  ExpectRole(graph, 'y', kOverwrites);
}

TEST(OperationGraphTest, CountOfAccumulatedElementsIsNoLength) {
  const OperationGraph graph = GraphOfOne({Names(BN_FINALIZE_ACCUM_COUNT_DESC, OfType('n', kInt64)),
                                           Names(BN_FINALIZE_EQ_SCALE_DESC, 's')});
  ExpectRole(graph, 'n', kReads);
  ExpectRole(graph, 's', kOverwrites);
}

TEST(OperationGraphTest, IndicesThatAreMadeAreNoLengths) {
  const OperationGraph graph = GraphOfOne(
      {Names(RESAMPLE_FWD_YDESC, 'y'), Names(RESAMPLE_FWD_IDXDESC, OfType('i', kInt32))});
  ExpectRole(graph, 'i', kOverwrites);
  ExpectRole(graph, 'y', kOverwrites);
}

TEST(OperationGraphTest, RaggedTensorMakesResultsPartial) {
  const Tensor ragged = Plain(
      'q', {{Attribute::kTensorRaggedOffset, {AttributeType::kDescriptor, {}, {Plain('r')}}}});
  EXPECT_TRUE(ragged.is_ragged);
  const OperationGraph by_input =
      GraphOfOne({Names(SDPA_FWD_QDESC, ragged), Names(SDPA_FWD_ODESC, 'o')});
  ExpectRole(by_input, 'q', kReads);
  ExpectRole(by_input, 'o', kUnknown);
  ExpectRole(GraphOfOne({Names(SDPA_FWD_ODESC, ragged)}), 'q', kUnknown);
}

TEST(OperationGraphTest, DynamicGraphOverwritesNothing) {
  const OperationGraph graph =
      GraphOfOne({Names(RESHAPE_XDESC, 'x'), Names(RESHAPE_YDESC, 'y')}, true);
  ExpectRole(graph, 'x', kReads);
  ExpectRole(graph, 'y', kUnknown);
}

TEST(OperationGraphTest, VirtualTensorsAndTensorsByValueHaveNoBuffer) {
  const OperationGraph graph = GraphOfOne(
      {Names(POINTWISE_XDESC, Plain('x', {{Attribute::kTensorIsVirtual, Flag(true)}})),
       Names(POINTWISE_BDESC, Plain('b', {{Attribute::kTensorIsByValue, Flag(true)}})),
       Names(POINTWISE_YDESC, Plain('y', {{Attribute::kTensorIsVirtual, Flag(false)},
                                          {Attribute::kTensorIsByValue, Flag(false)}}))});
  ASSERT_EQ(graph.buffers.size(), 1u);
  ExpectRole(graph, 'y', kOverwrites);
}

TEST(OperationGraphTest, ResultWithGapsIsUnknown) {
  EXPECT_EQ(RoleOfResult({}), kOverwrites);
  EXPECT_EQ(RoleOfResult({{Attribute::kTensorStrides, Integers({6, 2})}}), kUnknown);
  EXPECT_EQ(RoleOfResult({{Attribute::kTensorStrides, Integers({4, 1})}}), kUnknown);
  EXPECT_EQ(RoleOfResult({{Attribute::kTensorStrides, Integers({1, 1})}}), kUnknown) << "overlap";
}

TEST(OperationGraphTest, ResultWhoseExtentIsUnknownIsUnknown) {
  EXPECT_EQ(RoleOfResult({{Attribute::kTensorVectorCount, Integers({4})}}), kUnknown);
  EXPECT_EQ(RoleOfResult({{Attribute::kTensorReordering, Enumerator(2)}}), kUnknown);
  EXPECT_EQ(RoleOfResult({{Attribute::kTensorDataType, Enumerator(99)}}), kUnknown);
}

TEST(OperationGraphTest, InputWithGapsIsReadToItsLastElement) {
  const Tensor every_second = Plain('x', {{Attribute::kTensorStrides, Integers({6, 2})}});
  const OperationGraph graph =
      GraphOfOne({Names(RESHAPE_XDESC, every_second), Names(RESHAPE_YDESC, 'y')});
  ExpectRole(graph, 'x', kReads);
  EXPECT_EQ(Find(graph, 'x')->bytes, (6 + 2 * 2 + 1) * sizeof(float));
}

TEST(OperationGraphTest, InputOfTwoOperationsIsRead) {
  const OperationGraph graph =
      GraphOfTwo({Names(RESHAPE_XDESC, 'x'), Names(RESHAPE_YDESC, 'y')},
                 {Names(REDUCTION_XDESC, 'x'), Names(REDUCTION_YDESC, 'z')});
  ExpectRole(graph, 'x', kReads);
  EXPECT_EQ(Find(graph, 'x')->bytes, kBytes);
  ExpectRole(graph, 'y', kOverwrites);
  ExpectRole(graph, 'z', kOverwrites);
}

TEST(OperationGraphTest, InputWithTwoShapesIsUnknown) {
  const Tensor larger = Plain('x', {{Attribute::kTensorDimensions, Integers({4, 3})}});
  ExpectRole(GraphOfTwo({Names(RESHAPE_XDESC, 'x')}, {Names(REDUCTION_XDESC, larger)}), 'x',
             kUnknown);
}

// Such is the sum of attention's gradients: before cuDNN 9.6, the program clears it.
TEST(OperationGraphTest, BufferThatIsMadeAndReadIsUnknown) {
  const Attributes makes = {Names(RESHAPE_XDESC, 'x'), Names(RESHAPE_YDESC, 'y')};
  const Attributes reads = {Names(REDUCTION_XDESC, 'y'), Names(REDUCTION_YDESC, 'z')};
  for (const OperationGraph& graph : {GraphOfTwo(makes, reads), GraphOfTwo(reads, makes)}) {
    ExpectRole(graph, 'y', kUnknown);
    EXPECT_EQ(Find(graph, 'y')->bytes, 0u);
    ExpectRole(graph, 'x', kReads);
    ExpectRole(graph, 'z', kOverwrites);
  }
  ExpectRole(GraphOfOne({Names(RESHAPE_XDESC, 'x'), Names(RESHAPE_YDESC, 'x')}), 'x', kUnknown);
}

TEST(OperationGraphTest, ResultOfTwoOperationsIsUnknown) {
  ExpectRole(GraphOfTwo({Names(RESHAPE_YDESC, 'y')}, {Names(REDUCTION_YDESC, 'y')}), 'y', kUnknown);
}

TEST(OperationGraphTest, UnknownDescriptorLeavesNothingKnown) {
  NamedAttribute strange = Names(RESHAPE_XDESC, std::vector<Tensor>());
  strange.value.names_unknown = true;
  const Operation operations[] = {
      OperationOf({strange, Names(RESHAPE_YDESC, 'y')}),
      OperationOf({Names(REDUCTION_XDESC, 'x'), Names(REDUCTION_YDESC, 'z')})};
  EXPECT_FALSE(operations[0].is_understood);
  EXPECT_TRUE(GraphOf(operations, false).buffers.empty());
}

}  // namespace
}  // namespace spillway::dnn
