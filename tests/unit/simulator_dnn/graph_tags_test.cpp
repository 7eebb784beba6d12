// Operation graphs in the compute mode `tags`: every result depends on every input, and on nothing
// else. Runs with SPILLWAY_SIM_COMPUTE=tags.
#include "tests/unit/simulator_dnn/device.h"
#include "tests/unit/simulator_dnn/graph_run.h"

namespace spillway::simulator::dnn {
namespace {

constexpr auto kRow = 8;
const Dims kShape = {4, 4, kRow, kRow};
constexpr std::size_t kCount = 4 * 4 * kRow * kRow;

class GraphTagsTest : public CudnnTest {
 protected:
  // Runs the graph by the best engine, with a buffer of kCount floats per tensor; `values` are the
  // inputs' seeds by unique id. Answers the buffers of `results`.
  std::map<std::int64_t, Floats> Run(const Backend& graph,
                                     const std::map<std::int64_t, std::uint32_t>& values,
                                     const std::vector<std::int64_t>& results) {
    std::map<std::int64_t, DeviceFloats> buffers;
    for (const auto& [uid, seed] : values) buffers.try_emplace(uid, Values(kCount, seed));
    for (const std::int64_t uid : results) buffers.try_emplace(uid, kCount);
    Pointers pointers;
    for (const auto& [uid, buffer] : buffers) pointers[uid] = buffer.get();
    RunWith(graph, pointers);
    std::map<std::int64_t, Floats> read;
    for (const std::int64_t uid : results) read[uid] = buffers.at(uid).Read();
    return read;
  }

  void RunWith(const Backend& graph, const Pointers& pointers) {
    RunFirstPlan(handle_, graph, pointers);
  }
};

// An operation with its tensors' attributes.
struct Kind {
  const char* name;
  cudnnBackendDescriptorType_t kind;
  std::vector<cudnnBackendAttributeName_t> reads;
  std::vector<cudnnBackendAttributeName_t> writes;
};

const Kind kKinds[] = {
    {"Product",
     CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
     {CUDNN_ATTR_OPERATION_MATMUL_CDESC}},
    {"Reduction",
     CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_REDUCTION_XDESC},
     {CUDNN_ATTR_OPERATION_REDUCTION_YDESC}},
    {"Statistics",
     CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_GENSTATS_XDESC},
     {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC}},
    {"BatchNormFinalize",
     CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC, CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC,
      CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_MEAN_DESC},
     {CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC,
      CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC,
      CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_SCALE_DESC}},
    {"BatchNormWeights",
     CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC},
     {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC,
      CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS}},
    {"ResampleForward",
     CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC},
     {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC}},
    {"ResampleBackward",
     CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC},
     {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC}},
    {"NormForward",
     CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC,
      CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC},
     {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC}},
    {"NormBackward",
     CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC,
      CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC},
     {CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC}},
    {"Reshape",
     CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_RESHAPE_XDESC},
     {CUDNN_ATTR_OPERATION_RESHAPE_YDESC}},
    {"Concatenation",
     CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS},
     {CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC}},
    {"RandomNumbers",
     CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC},
     {CUDNN_ATTR_OPERATION_RNG_YDESC}},
    {"PagedLoad",
     CUDNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_CONTAINER_DESC,
      CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_PAGE_TABLE_DESC},
     {CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC}},
    {"Quantize",
     CUDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC},
     {CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC,
      CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC}},
    {"AttentionForward",
     CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
      CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC},
     {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC}},
    {"AttentionBackward",
     CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC, CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC,
      CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC, CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC,
      CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC},
     {CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC,
      CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC}},
};

class GraphRolesTest : public GraphTagsTest, public testing::WithParamInterface<Kind> {
 protected:
  // The operation's tensors have the attributes' values as unique ids.
  Backend OneOperation() {
    const Kind& kind = GetParam();
    std::vector<Backend> tensors;
    std::vector<cudnnBackendAttributeName_t> names = kind.reads;
    names.insert(names.end(), kind.writes.begin(), kind.writes.end());
    for (const auto name : names) tensors.push_back(Tensor({name, kShape}));
    Parts parts;
    for (std::size_t i = 0; i < names.size(); ++i) parts.push_back({names[i], &tensors[i]});
    return Operation(kind.kind, parts);
  }
};

TEST_P(GraphRolesTest, EveryResultDependsOnEveryInputAndOnNothingElse) {
  const Backend operation = OneOperation();
  const Backend graph = Graph({&operation});
  const std::vector<std::int64_t> results(GetParam().writes.begin(), GetParam().writes.end());
  std::map<std::int64_t, std::uint32_t> seeds;
  for (const auto name : GetParam().reads) seeds[name] = 1;
  const auto first = Run(graph, seeds, results);
  for (const auto& [uid, result] : first) EXPECT_NE(result, Floats(kCount)) << uid;

  EXPECT_EQ(Run(graph, seeds, results), first);
  for (const auto changed : GetParam().reads) {
    auto other_seeds = seeds;
    other_seeds[changed] = 2;
    const auto other = Run(graph, other_seeds, results);
    for (const std::int64_t uid : results)
      EXPECT_NE(other.at(uid), first.at(uid)) << uid << " and " << changed;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GraphRolesTest, testing::ValuesIn(kKinds),
                         [](const auto& info) { return info.param.name; });

Backend Product(const Backend& a, const Backend& b, const Backend& c) {
  return Operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                   {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, &a},
                    {CUDNN_ATTR_OPERATION_MATMUL_BDESC, &b},
                    {CUDNN_ATTR_OPERATION_MATMUL_CDESC, &c}});
}

// Attention of products and pointwise operations, as frontends compose it.
class ComposedAttentionTest : public GraphTagsTest {
 protected:
  ComposedAttentionTest() {
    const auto virtual_tensor = [](std::int64_t uid) {
      return Tensor({uid, kShape, CUDNN_DATA_FLOAT, true});
    };
    const Backend q = Tensor({'q', kShape}), k = Tensor({'k', kShape}), v = Tensor({'v', kShape});
    const Backend o = Tensor({'o', kShape});
    const Backend scale = Tensor({'s', {1, 1, 1, 1}, CUDNN_DATA_FLOAT, false, true});
    const Backend scores = virtual_tensor(1), scaled = virtual_tensor(2),
                  weights = virtual_tensor(3);
    operations_.push_back(Product(q, k, scores));
    operations_.push_back(PointwiseOperation({CUDNN_POINTWISE_MUL}, scores, &scale, scaled));
    operations_.push_back(PointwiseOperation({CUDNN_POINTWISE_EXP}, scaled, nullptr, weights));
    operations_.push_back(Product(weights, v, o));
  }
  Floats Attend(std::uint32_t q, std::uint32_t k, std::uint32_t v, float scale) {
    const Backend graph =
        Graph({&operations_[0], &operations_[1], &operations_[2], &operations_[3]});
    const DeviceFloats queries(Values(kCount, q)), keys(Values(kCount, k));
    const DeviceFloats values(Values(kCount, v)), result(kCount);
    RunWith(graph, {{'q', queries.get()},
                    {'k', keys.get()},
                    {'v', values.get()},
                    {'o', result.get()},
                    {'s', &scale}});
    return result.Read();
  }
  std::vector<Backend> operations_;
};

TEST_F(ComposedAttentionTest, ResultDependsOnEveryInput) {
  const Floats result = Attend(1, 2, 3, 0.5f);
  EXPECT_EQ(Attend(1, 2, 3, 0.5f), result);
  EXPECT_NE(Attend(9, 2, 3, 0.5f), result);
  EXPECT_NE(Attend(1, 9, 3, 0.5f), result);
  EXPECT_NE(Attend(1, 2, 9, 0.5f), result);
  EXPECT_NE(Attend(1, 2, 3, 0.25f), result) << "by value";
}

TEST_F(ComposedAttentionTest, StagedEngineKeepsVirtualTensorsInTheWorkspace) {
  const Backend graph = Graph({&operations_[0], &operations_[1], &operations_[2], &operations_[3]});
  const std::vector<Backend> configurations = Configurations(graph, CUDNN_HEUR_MODE_INSTANT);
  ASSERT_EQ(configurations.size(), 2u);
  EXPECT_EQ(WorkspaceOf(PlanOf(configurations[0])), 0);
  EXPECT_EQ(WorkspaceOf(PlanOf(configurations[1])),
            static_cast<std::int64_t>(3 * kCount * sizeof(float)));
}

// The norm's mean is a result of training and an input of inference.
class NormPhaseTest : public GraphTagsTest {
 protected:
  Backend Norm(cudnnBackendNormFwdPhase_t phase) {
    const Backend x = Tensor({'x', kShape}), y = Tensor({'y', kShape}), m = Tensor({'m', kShape});
    Backend norm = UnfinishedOperation(kLinked, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
                                       {{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, &x},
                                        {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, &y},
                                        {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, &m}});
    norm.Set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_BATCH_NORM);
    norm.Set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, phase);
    EXPECT_EQ(norm.Finalize(), CUDNN_STATUS_SUCCESS);
    return norm;
  }
};

TEST_F(NormPhaseTest, TrainingWritesTheMean) {
  const Backend norm = Norm(CUDNN_NORM_FWD_TRAINING);
  const Backend graph = Graph({&norm});
  const auto first = Run(graph, {{'x', 1}, {'m', 1}}, {'y', 'm'});
  EXPECT_EQ(Run(graph, {{'x', 1}, {'m', 2}}, {'y', 'm'}), first);
  EXPECT_NE(Run(graph, {{'x', 2}, {'m', 1}}, {'y', 'm'}).at('m'), first.at('m'));
}

TEST_F(NormPhaseTest, InferenceReadsTheMean) {
  const Backend norm = Norm(CUDNN_NORM_FWD_INFERENCE);
  const Backend graph = Graph({&norm});
  const auto first = Run(graph, {{'x', 1}, {'m', 1}}, {'y', 'm'});
  EXPECT_EQ(first.at('m'), Values(kCount, 1));
  EXPECT_NE(Run(graph, {{'x', 1}, {'m', 2}}, {'y', 'm'}).at('y'), first.at('y'));
}

TEST_F(GraphTagsTest, ResultsThatReplaceAnInputDependOnIt) {
  const Backend x = Tensor({'x', kShape}), y = Tensor({'y', kShape});
  const Backend operation = Operation(
      CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
      {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, &x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, &y}});
  const Backend graph = Graph({&operation});
  const auto in_place = [&](std::uint32_t seed) {
    const DeviceFloats buffer(Values(kCount, seed));
    RunWith(graph, {{'x', buffer.get()}, {'y', buffer.get()}});
    return buffer.Read();
  };
  EXPECT_NE(in_place(1), Values(kCount, 1));
  EXPECT_NE(in_place(1), in_place(2));
  EXPECT_EQ(in_place(1), Run(graph, {{'x', 1}}, {'y'}).at('y'));
}

TEST_F(GraphTagsTest, StridedResultsKeepTheBytesBetweenThem) {
  const Dims every_second = {8 * kRow * kRow, 2 * kRow * kRow, 2 * kRow, 2};
  const Backend x = Tensor({'x', kShape});
  const Backend y = Tensor({'y', kShape, CUDNN_DATA_FLOAT, false, false, every_second});
  const Backend operation = Operation(
      CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
      {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, &x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, &y}});
  const DeviceFloats input(Values(kCount, 1)), output(Values(2 * kCount, 2));
  RunWith(Graph({&operation}), {{'x', input.get()}, {'y', output.get()}});
  const Floats before = Values(2 * kCount, 2), after = output.Read();
  EXPECT_NE(after, before);
  EXPECT_EQ(Floats(after.begin() + kCount, after.begin() + kCount + 64),
            Floats(before.begin() + kCount, before.begin() + kCount + 64));
}

TEST_F(GraphTagsTest, BetaReadsTheOldResult) {
  const auto run = [&](float beta, std::uint32_t old_result) {
    const Backend x = Tensor({'x', kShape}), w = Tensor({'w', {4, 4, 3, 3}});
    const Backend y = Tensor({'y', kShape});
    const Backend convolution = MakeConvolution(kLinked, {});
    Backend operation =
        UnfinishedOperation(kLinked, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                            {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, &x},
                             {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, &w},
                             {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, &y},
                             {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, &convolution}});
    operation.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, beta);
    EXPECT_EQ(operation.Finalize(), CUDNN_STATUS_SUCCESS);
    return Run(Graph({&operation}), {{'x', 1}, {'w', 2}, {'y', old_result}}, {'y'}).at('y');
  };
  EXPECT_EQ(run(0, 3), run(0, 4));
  EXPECT_NE(run(1, 3), run(1, 4));
}

TEST_F(GraphTagsTest, UniqueIdsAndAddressesDoNotMatter) {
  const auto run = [&](std::int64_t input, std::int64_t result) {
    const Backend x = Tensor({input, kShape}), y = Tensor({result, kShape});
    const Backend operation = Operation(
        CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
        {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, &x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, &y}});
    return Run(Graph({&operation}), {{input, 1}}, {result}).at(result);
  };
  const DeviceFloats in_the_way(kCount);
  EXPECT_EQ(run(1, 2), run(200, 100));
}

TEST_F(GraphTagsTest, RaggedTensorsAreNotSupported) {
  const Backend offsets = Tensor({'r', {5, 1, 1, 1}, CUDNN_DATA_INT64});
  Backend x = UnfinishedTensor(kLinked, {'x', kShape});
  ASSERT_EQ(x.Set(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, offsets), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(x.Finalize(), CUDNN_STATUS_SUCCESS);
  const Backend y = Tensor({'y', kShape});
  const Backend operation = Operation(
      CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
      {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, &x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, &y}});
  testing::internal::CaptureStderr();
  EXPECT_EQ(UnfinishedGraph(kLinked, {&operation}).Finalize(),
            CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cudnn_graph(ragged_tensor)"),
            std::string::npos);
}

}  // namespace
}  // namespace spillway::simulator::dnn
