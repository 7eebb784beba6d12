// What executions of cuDNN's graph interface copy: inputs come back and are not copied out twice,
// overwritten results do not come back, and no byte is lost.
#include <map>
#include <string>

#include "tests/integration/roles/role_case.h"
#include "tests/unit/simulator_dnn/graph_run.h"

namespace spillway::test {
namespace {

using simulator::dnn::Backend;
using simulator::dnn::Dims;
using simulator::dnn::kLinked;

constexpr auto kReads = Part::kReads;
constexpr auto kOverwrites = Part::kOverwrites;
constexpr auto kUnknown = Part::kUnknown;

const Dims kShape = {32, 4, 64, 64};  // 2 MiB of floats

struct TensorUse {
  cudnnBackendAttributeName_t attribute;
  Part part;
  Dims dims = kShape;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
};

using Setting = std::function<void(Backend&)>;

struct Kind {
  const char* name;
  cudnnBackendDescriptorType_t kind;
  std::vector<TensorUse> uses;
  Setting set = [](Backend&) {};
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

template <class Value>
Setting Sets(cudnnBackendAttributeName_t name, Value value) {
  return [=](Backend& operation) {
    EXPECT_EQ(operation.Set(name, value), CUDNN_STATUS_SUCCESS) << name;
  };
}
Setting SetsEnumerator(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       int value) {
  return [=](Backend& operation) {
    EXPECT_EQ(operation.SetAs(name, type, 1, &value), CUDNN_STATUS_SUCCESS) << name;
  };
}
Setting SetsConvolution(cudnnBackendAttributeName_t name) {
  return [=](Backend& operation) {
    const auto convolution = simulator::dnn::MakeConvolution(kLinked, {{0, 0}, {1, 1}, {1, 1}});
    EXPECT_EQ(operation.Set(name, convolution), CUDNN_STATUS_SUCCESS);
  };
}
Setting SetsPointwise(cudnnPointwiseMode_t mode) {
  return [=](Backend& operation) {
    Backend settings(kLinked, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    settings.Set(CUDNN_ATTR_POINTWISE_MODE, mode);
    settings.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    EXPECT_EQ(settings.Finalize(), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, settings),
              CUDNN_STATUS_SUCCESS);
  };
}
Setting Both(const Setting& one, const Setting& other) {
  return [=](Backend& operation) {
    one(operation);
    other(operation);
  };
}

// Of a convolution of 1 x 1: 2 MiB each, and 4 MiB for y.
const Dims kConvolutionX = {1, 512, 32, 32}, kConvolutionW = {1024, 512, 1, 1},
           kConvolutionY = {1, 1024, 32, 32};
// Of a seed, or of lengths
const Dims kFew = {32, 1, 1, 1};
// 2 MiB of bytes
const Dims kIndices = {128, 4, 64, 64};

std::vector<TensorUse> ConvolutionUses(Part result) {
  return {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, kReads, kConvolutionX},
          {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, kReads, kConvolutionW},
          {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, result, kConvolutionY}};
}
std::vector<TensorUse> NormUses(Part statistics) {
  return {{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, kReads},
          {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, kReads},
          {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, kReads},
          {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, statistics},
          {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, statistics},
          {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, kOverwrites}};
}
std::vector<TensorUse> StatisticsUses(Part statistics) {
  return {{CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC, kReads},
          {CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC, kReads},
          {CUDNN_ATTR_OPERATION_BN_FINALIZE_SCALE_DESC, kReads},
          {CUDNN_ATTR_OPERATION_BN_FINALIZE_BIAS_DESC, kReads},
          {CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_MEAN_DESC, kReads},
          {CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_VAR_DESC, kReads},
          {CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC, statistics},
          {CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC, statistics},
          {CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_MEAN_DESC, statistics},
          {CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC, statistics},
          {CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_SCALE_DESC, kOverwrites},
          {CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_BIAS_DESC, kOverwrites}};
}
std::vector<TensorUse> WithRunningStatistics(std::vector<TensorUse> uses) {
  for (const auto name : {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC,
                          CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC})
    uses.push_back({name, kReads});
  for (const auto name : {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC,
                          CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC})
    uses.push_back({name, kOverwrites});
  return uses;
}
std::vector<TensorUse> ConcatenationUses(Part result) {
  return {{CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS, kReads},
          {CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS, kReads},
          {CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC, result, {64, 4, 64, 64}}};
}
std::vector<TensorUse> AttentionUses(Part result) {
  return {{CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, kReads},
          {CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, kReads},
          {CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, kReads},
          {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, result},
          {CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, result}};
}
std::vector<TensorUse> With(std::vector<TensorUse> uses, const TensorUse& another) {
  uses.push_back(another);
  return uses;
}

const Setting kForwardConvolution =
    SetsConvolution(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);

const Kind kKinds[] = {
    {"ConvolutionForward", CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     ConvolutionUses(kOverwrites), kForwardConvolution},
    {"ConvolutionForwardWithBetaZero", CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     ConvolutionUses(kOverwrites),
     Both(kForwardConvolution, Sets(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0f))},
    {"ConvolutionForwardWithBeta", CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     ConvolutionUses(kUnknown),
     Both(kForwardConvolution, Sets(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 1.0))},
    {"ConvolutionBackwardData",
     CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, kReads, kConvolutionW},
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, kReads, kConvolutionY},
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, kOverwrites, kConvolutionX}},
     SetsConvolution(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC)},
    {"ConvolutionBackwardFilter",
     CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, kReads, kConvolutionX},
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, kReads, kConvolutionY},
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, kOverwrites, kConvolutionW}},
     SetsConvolution(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC)},
    {"Pointwise",
     CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kReads},
      {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kReads},
      {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kOverwrites}},
     SetsPointwise(CUDNN_POINTWISE_ADD)},
    {"PointwiseBackward",
     CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kReads},
      {CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, kReads},
      {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, kOverwrites}},
     SetsPointwise(CUDNN_POINTWISE_RELU_BWD)},
    {"PointwiseBackwardOfTheResult",
     CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kReads},
      {CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, kReads},
      {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, kOverwrites}},
     SetsPointwise(CUDNN_POINTWISE_SIGMOID_BWD)},
    {"PointwiseSelect",
     CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kReads},
      {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kReads},
      {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, kReads},
      {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kOverwrites}},
     SetsPointwise(CUDNN_POINTWISE_BINARY_SELECT)},
    {"Product",
     CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, kReads},
      {CUDNN_ATTR_OPERATION_MATMUL_BDESC, kReads},
      {CUDNN_ATTR_OPERATION_MATMUL_CDESC, kOverwrites}}},
    {"ProductOfLengths",
     CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, kReads},
      {CUDNN_ATTR_OPERATION_MATMUL_BDESC, kReads},
      {CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, kReads, kFew, CUDNN_DATA_INT32},
      {CUDNN_ATTR_OPERATION_MATMUL_CDESC, kUnknown}}},
    {"Reduction",
     CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kReads},
      {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, kOverwrites}}},
    {"Statistics",
     CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_GENSTATS_XDESC, kReads},
      {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, kOverwrites},
      {CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, kOverwrites}}},
    {"BatchNormTrainingStatistics", CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR,
     StatisticsUses(kOverwrites),
     SetsEnumerator(CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE, CUDNN_TYPE_BN_FINALIZE_STATS_MODE,
                    CUDNN_BN_FINALIZE_STATISTICS_TRAINING)},
    {"BatchNormInferenceStatistics", CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR,
     StatisticsUses(kUnknown),
     SetsEnumerator(CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE, CUDNN_TYPE_BN_FINALIZE_STATS_MODE,
                    CUDNN_BN_FINALIZE_STATISTICS_INFERENCE)},
    {"BatchNormWeights",
     CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, kReads},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, kReads},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, kReads},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, kReads},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, kReads},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, kOverwrites},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, kOverwrites},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, kOverwrites},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, kOverwrites},
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, kOverwrites}}},
    {"ResampleForward",
     CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, kReads},
      {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, kOverwrites},
      {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, kOverwrites, kIndices, CUDNN_DATA_INT8}}},
    {"ResampleBackward",
     CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, kReads},
      {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC, kReads, kIndices, CUDNN_DATA_INT8},
      {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_XDESC, kReads},
      {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_YDESC, kReads},
      {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, kUnknown}}},
    {"Concatenation", CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR, ConcatenationUses(kOverwrites)},
    {"ConcatenationInPlace", CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR, ConcatenationUses(kUnknown),
     Sets(CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX, std::int64_t{0})},
    {"NormTraining", CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
     WithRunningStatistics(NormUses(kOverwrites)),
     Sets(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_NORM_FWD_TRAINING)},
    {"NormInference", CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, NormUses(kReads),
     Sets(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_NORM_FWD_INFERENCE)},
    {"NormBackward",
     CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, kReads},
      {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, kReads},
      {CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, kReads},
      {CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, kReads},
      {CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, kReads},
      {CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, kOverwrites},
      {CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, kOverwrites},
      {CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, kOverwrites}}},
    {"Reshape",
     CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, kReads},
      {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, kOverwrites}}},
    {"RandomNumbers",
     CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_RNG_SEED, kReads, kFew, CUDNN_DATA_INT64},
      {CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC, kReads, kFew, CUDNN_DATA_INT64},
      {CUDNN_ATTR_OPERATION_RNG_YDESC, kOverwrites}}},
    {"PagedLoad",
     CUDNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_CONTAINER_DESC, kReads},
      {CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_SEQUENCE_DESC, kReads, kFew, CUDNN_DATA_INT32},
      {CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_PAGE_TABLE_DESC, kReads, kFew, CUDNN_DATA_INT32},
      {CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC, kUnknown}}},
    {"Attention", CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, AttentionUses(kOverwrites)},
    {"AttentionOfLengths", CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
     With(AttentionUses(kUnknown),
          {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, kReads, kFew, CUDNN_DATA_INT32})},
    {"AttentionBackward",
     CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC, kReads},
      {CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC, kReads},
      {CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC, kReads},
      {CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC, kReads},
      {CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, kReads},
      {CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC, kReads},
      {CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, kOverwrites},
      {CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC, kOverwrites},
      {CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC, kOverwrites}}},
    {"Quantize",
     CUDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC, kUnknown},
      {CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC, kUnknown},
      {CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC, kUnknown}}},
};

// Each element is twice as far from the next.
Dims Spread(const Dims& dims) {
  Dims strides = simulator::dnn::RowMajor(dims);
  for (std::int64_t& stride : strides) stride *= 2;
  return strides;
}

class EvictedGraphRolesTest : public EvictedRolesTest, public testing::WithParamInterface<Kind> {
 protected:
  std::size_t BudgetBytes() const override { return BudgetFor(Operands()); }
  static bool IsInput(const TensorUse& use) { return use.part == kReads; }

  // The buffers as the tensors need them. Small inputs have 2 MiB, too.
  std::vector<Operand> Operands(bool results_have_gaps = false) const {
    std::vector<Operand> operands;
    for (const TensorUse& use : GetParam().uses) {
      std::size_t bytes = use.type == CUDNN_DATA_INT8 ? 1 : sizeof(float);
      for (const std::int64_t size : use.dims) bytes *= static_cast<std::size_t>(size);
      if (use.dims == kFew) bytes = 2 * kMiB;
      const bool has_gaps = results_have_gaps && !IsInput(use);
      if (has_gaps) bytes = 2 * bytes - (use.type == CUDNN_DATA_INT8 ? 1 : sizeof(float));
      operands.push_back({has_gaps ? kUnknown : use.part, bytes});
    }
    return operands;
  }

  // Tensors have their operands' numbers as unique ids.
  Backend Plan(bool results_have_gaps = false) const {
    std::map<cudnnBackendAttributeName_t, std::vector<cudnnBackendDescriptor_t>> parts;
    std::vector<Backend> tensors;
    for (std::size_t i = 0; i < GetParam().uses.size(); ++i) {
      const TensorUse& use = GetParam().uses[i];
      const bool has_gaps = results_have_gaps && !IsInput(use);
      tensors.push_back(
          simulator::dnn::Tensor({static_cast<std::int64_t>(i) + 1, use.dims, use.type, false,
                                  false, has_gaps ? Spread(use.dims) : Dims()}));
      parts[use.attribute].push_back(tensors.back().get());
    }
    Backend operation(kLinked, GetParam().kind);
    for (const auto& [attribute, part] : parts) {
      EXPECT_EQ(operation.SetAs(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                static_cast<std::int64_t>(part.size()), part.data()),
                CUDNN_STATUS_SUCCESS)
          << attribute;
    }
    GetParam().set(operation);
    EXPECT_EQ(operation.Finalize(), CUDNN_STATUS_SUCCESS);
    const Backend graph = simulator::dnn::Graph({&operation});
    const auto configurations =
        simulator::dnn::Configurations(graph, CUDNN_HEUR_MODE_FALLBACK);  // least workspace first
    return simulator::dnn::PlanOf(configurations.at(0));
  }

  Call Executes(const Backend& plan) {
    return [this, &plan](const std::vector<void*>& operands) {
      simulator::dnn::Pointers pointers;
      for (std::size_t i = 0; i < operands.size(); ++i)
        pointers[static_cast<std::int64_t>(i) + 1] = operands[i];
      CUdeviceptr workspace = 0;
      const auto bytes = simulator::dnn::WorkspaceOf(plan);
      if (bytes > 0) {
        ASSERT_EQ(cuMemAlloc(&workspace, bytes), CUDA_SUCCESS);
      }
      EXPECT_EQ(simulator::dnn::Execute(cudnn_, plan, pointers, reinterpret_cast<void*>(workspace)),
                CUDNN_STATUS_SUCCESS);
      EXPECT_EQ(cuMemFree(workspace), CUDA_SUCCESS);
    };
  }

  // The input is the first of at least the result's size (or of any).
  std::pair<std::size_t, std::size_t> ResultAndInput() const {
    const std::vector<Operand> operands = Operands();
    std::size_t result = 0, input = 0;
    while (IsInput(GetParam().uses[result])) ++result;
    while (input + 1 < operands.size() && operands[input].bytes < operands[result].bytes) ++input;
    return {result, input == result ? 0 : input};
  }
};

TEST_P(EvictedGraphRolesTest, CopiesInputsInOnceAndNoOverwrittenResult) {
  const std::vector<Operand> operands = Operands();
  const Backend plan = Plan();
  ExpectTrafficOf(operands, Check(Apart(operands), Executes(plan)));
}

TEST_P(EvictedGraphRolesTest, BytesBetweenAResultsElementsStay) {
  const std::vector<Operand> operands = Operands(true);
  const Backend plan = Plan(true);
  ExpectTrafficOf(operands, Check(Apart(operands), Executes(plan)));
}

TEST_P(EvictedGraphRolesTest, ResultsInLargerMemoryLoseNothing) {
  const std::vector<Operand> operands = Operands();
  const Backend plan = Plan();
  const auto [result, input] = ResultAndInput();
  const std::size_t bytes = operands[input].bytes;
  // In place, in the middle of the input, and behind it in one allocation
  for (const std::size_t offset : {std::size_t{0}, bytes / 2, bytes})
    Check(Together(operands, result, input, offset), Executes(plan));
  Check(Inside(operands, result), Executes(plan));
}

// c = relu(b), b = a a. `b` has memory.
TEST_F(EvictedRolesTest, IntermediateResultWithMemoryComesBack) {
  const auto tensor = [](std::int64_t uid) { return simulator::dnn::Tensor({uid, kShape}); };
  const Backend a = tensor(1), b = tensor(2), c = tensor(3);
  const Backend product = simulator::dnn::Operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                                                    {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, &a},
                                                     {CUDNN_ATTR_OPERATION_MATMUL_BDESC, &a},
                                                     {CUDNN_ATTR_OPERATION_MATMUL_CDESC, &b}});
  const Backend relu =
      simulator::dnn::PointwiseOperation({CUDNN_POINTWISE_RELU_FWD}, b, nullptr, c);
  const Backend graph = simulator::dnn::Graph({&product, &relu});
  const auto configurations = simulator::dnn::Configurations(graph, CUDNN_HEUR_MODE_FALLBACK);
  const Backend plan = simulator::dnn::PlanOf(configurations.at(0));
  ASSERT_EQ(simulator::dnn::WorkspaceOf(plan), 0);
  const std::vector<Operand> operands = {
      {kReads, 2 * kMiB}, {kUnknown, 2 * kMiB}, {kOverwrites, 2 * kMiB}};

  const Traffic traffic = Check(Apart(operands), [&](const std::vector<void*>& data) {
    EXPECT_EQ(
        simulator::dnn::Execute(cudnn_, plan, {{1, data[0]}, {2, data[1]}, {3, data[2]}}, nullptr),
        CUDNN_STATUS_SUCCESS);
  });

  ExpectTrafficOf(operands, traffic);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EvictedGraphRolesTest, testing::ValuesIn(kKinds),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace spillway::test
