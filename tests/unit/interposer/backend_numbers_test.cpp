// The numbers in interposer/dnn are those of cuDNN's public headers; its tensor roles are those of
// the simulated cuDNN, written separately.
#include <cudnn.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "interposer/dnn/backend_abi.h"
#include "interposer/dnn/tensor_extent.h"

namespace spillway::dnn {
namespace {

// The build fails if a number differs.
#define SPILLWAY_TENSOR(attribute, number, role) \
  static_assert(CUDNN_ATTR_OPERATION_##attribute == number);
#include "interposer/dnn/backend_roles.inc"
#undef SPILLWAY_TENSOR

template <class Ours, class Theirs>
constexpr bool Equal(Ours ours, Theirs theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs);
}

static_assert(Equal(DescriptorKind::kEngine, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
static_assert(Equal(DescriptorKind::kEngineConfiguration, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
static_assert(Equal(DescriptorKind::kExecutionPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
static_assert(Equal(DescriptorKind::kOperationGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
static_assert(Equal(DescriptorKind::kVariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
static_assert(Equal(DescriptorKind::kTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR));

static_assert(Equal(AttributeType::kHandle, CUDNN_TYPE_HANDLE));
static_assert(Equal(AttributeType::kBoolean, CUDNN_TYPE_BOOLEAN));
static_assert(Equal(AttributeType::kInt64, CUDNN_TYPE_INT64));
static_assert(Equal(AttributeType::kFloat, CUDNN_TYPE_FLOAT));
static_assert(Equal(AttributeType::kDouble, CUDNN_TYPE_DOUBLE));
static_assert(Equal(AttributeType::kVoidPointer, CUDNN_TYPE_VOID_PTR));
static_assert(Equal(AttributeType::kNumericalNote, CUDNN_TYPE_NUMERICAL_NOTE));
static_assert(Equal(AttributeType::kDescriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR));
static_assert(Equal(AttributeType::kInt32, CUDNN_TYPE_INT32));
static_assert(Equal(AttributeType::kCharacter, CUDNN_TYPE_CHAR));
static_assert(Equal(AttributeType::kFraction, CUDNN_TYPE_FRACTION));
static_assert(Equal(AttributeType::kLast, CUDNN_TYPE_MOE_GROUPED_MATMUL_MODE));
static_assert(sizeof(cudnnFraction_t) == 16 && sizeof(cudnnBackendNumericalNote_t) == 4 &&
              sizeof(cudnnBackendHeurMode_t) == 4 && sizeof(bool) == 1);

static_assert(kNormInference == CUDNN_NORM_FWD_INFERENCE);
static_assert(kStatisticsTraining == CUDNN_BN_FINALIZE_STATISTICS_TRAINING);
static_assert(kNondeterministic == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
static_assert(kMostNotes >= CUDNN_NUMERICAL_NOTE_TYPE_COUNT);

static_assert(Equal(Attribute::kHeuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
static_assert(Equal(Attribute::kConfigurationEngine, CUDNN_ATTR_ENGINECFG_ENGINE));
static_assert(Equal(Attribute::kPlanConfiguration, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
static_assert(Equal(Attribute::kPlanWorkspaceBytes, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
static_assert(Equal(Attribute::kPlanRunsOnly,
                    CUDNN_ATTR_EXECUTION_PLAN_RUN_ONLY_INTERMEDIATE_UIDS));
static_assert(Equal(Attribute::kPlanText, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION));
static_assert(Equal(Attribute::kConvolutionForwardBeta,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA));
static_assert(Equal(Attribute::kConvolutionBackwardDataBeta,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA));
static_assert(Equal(Attribute::kConvolutionBackwardFilterBeta,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA));
static_assert(Equal(Attribute::kPointwiseDx, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC));
static_assert(Equal(Attribute::kStatisticsMode, CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE));
static_assert(Equal(Attribute::kGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS));
static_assert(Equal(Attribute::kGraphIsDynamic,
                    CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED));
static_assert(Equal(Attribute::kTensorDataType, CUDNN_ATTR_TENSOR_DATA_TYPE));
static_assert(Equal(Attribute::kTensorDimensions, CUDNN_ATTR_TENSOR_DIMENSIONS));
static_assert(Equal(Attribute::kTensorStrides, CUDNN_ATTR_TENSOR_STRIDES));
static_assert(Equal(Attribute::kTensorVectorCount, CUDNN_ATTR_TENSOR_VECTOR_COUNT));
static_assert(Equal(Attribute::kTensorUniqueId, CUDNN_ATTR_TENSOR_UNIQUE_ID));
static_assert(Equal(Attribute::kTensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL));
static_assert(Equal(Attribute::kTensorIsByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE));
static_assert(Equal(Attribute::kTensorReordering, CUDNN_ATTR_TENSOR_REORDERING_MODE));
static_assert(Equal(Attribute::kTensorRaggedOffset, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC));
static_assert(Equal(Attribute::kPackUniqueIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS));
static_assert(Equal(Attribute::kPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS));
static_assert(Equal(Attribute::kPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
static_assert(Equal(Attribute::kPackOverridingShapes, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES));
static_assert(Equal(Attribute::kPackOverridingStrides, CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES));
static_assert(Equal(Attribute::kEngineGraph, CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
static_assert(Equal(Attribute::kEngineNumericalNote, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE));
static_assert(Equal(Attribute::kResampleForwardBeta, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA));
static_assert(Equal(Attribute::kConcatenationInPlace, CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX));
static_assert(Equal(Attribute::kNormPhase, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE));

static_assert(kFloat == CUDNN_DATA_FLOAT && kDouble == CUDNN_DATA_DOUBLE &&
              kHalf == CUDNN_DATA_HALF && kInt8 == CUDNN_DATA_INT8 && kInt32 == CUDNN_DATA_INT32 &&
              kUint8 == CUDNN_DATA_UINT8 && kBfloat16 == CUDNN_DATA_BFLOAT16 &&
              kInt64 == CUDNN_DATA_INT64 && kFp8E4m3 == CUDNN_DATA_FP8_E4M3 &&
              kFp8E5m2 == CUDNN_DATA_FP8_E5M2 && kUint32 == CUDNN_DATA_UINT32);
static_assert(kMostDimensions == CUDNN_DIM_MAX);

std::map<std::string, std::string> OurRoles() {
  return {
#define SPILLWAY_TENSOR(attribute, number, role) {"OPERATION_" #attribute, #role},
#include "interposer/dnn/backend_roles.inc"
#undef SPILLWAY_TENSOR
  };
}

std::map<std::string, std::string> SimulatedRoles() {
  return {
#define KIND(kind)
#define SETS(name, type)
#define LIST(name, type)
#define NUMBER(name)
#define FRACTIONS(name)
#define PART(name, kind)
#define PARTS(name, kind)
#define OPERATIONS(name)
#define ANSWERS(name, type)
#define READS(name) {#name, "reads"},
#define READS_MANY(name) {#name, "reads"},
#define READS_OR_SETS(name) {#name, "reads"},
#define WRITES(name) {#name, "writes"},
#define UPDATES(name) {#name, "updates"},
#define UPDATES_MANY(name) {#name, "updates"},
#define READS_OR_WRITES(name) {#name, "reads or writes"},
#include "simulator/dnn/graph/attributes.inc"
  };
}

// Tensors without a role, on purpose: how their operations fill their results is not documented.
// Gradients of a pooling may be added up where windows overlap. Flags and statistics of peers
// belong to several devices. Scales are stored in blocks, and band matrices with padding. Experts
// leave the rows of other experts.
const std::set<std::string> kLeftUnknown = {
    "OPERATION_RESAMPLE_BWD_DXDESC",
    "OPERATION_SIGNAL_FLAGDESC",
    "OPERATION_SIGNAL_XDESC",
    "OPERATION_SIGNAL_YDESC",
    "OPERATION_NORM_FWD_PEER_STAT_DESCS",
    "OPERATION_NORM_BWD_PEER_STAT_DESCS",
    "OPERATION_BLOCK_SCALE_QUANTIZE_XDESC",
    "OPERATION_BLOCK_SCALE_QUANTIZE_YDESC",
    "OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC",
    "OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC",
    "OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC",
    "OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC",
    "OPERATION_EXPAND_BAND_MATRIX_XDESC",
    "OPERATION_EXPAND_BAND_MATRIX_YDESC",
    "OPERATION_EXPAND_BAND_MATRIX_KV_TOKEN_OFFSET_DESC",
    "OPERATION_EXPAND_BAND_MATRIX_SPECULATIVE_MASK_DESC",
    "OPERATION_CONTRACT_BAND_MATRIX_XDESC",
    "OPERATION_CONTRACT_BAND_MATRIX_YDESC",
    "OPERATION_MOE_GROUPED_MATMUL_TOKEN_DESC",
    "OPERATION_MOE_GROUPED_MATMUL_WEIGHT_DESC",
    "OPERATION_MOE_GROUPED_MATMUL_FIRST_TOKEN_OFFSET_DESC",
    "OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC",
    "OPERATION_MOE_GROUPED_MATMUL_TOKEN_INDEX_DESC",
    "OPERATION_MOE_GROUPED_MATMUL_TOKEN_KS_DESC",
};

TEST(BackendRolesTest, EveryTensorHasARoleOrIsLeftUnknown) {
  const auto ours = OurRoles();
  for (const auto& [name, role] : SimulatedRoles())
    EXPECT_NE(ours.contains(name), kLeftUnknown.contains(name)) << name;
}

TEST(BackendRolesTest, EveryTensorIsSimulated) {
  const auto simulated = SimulatedRoles();
  for (const auto& [name, role] : OurRoles()) EXPECT_TRUE(simulated.contains(name)) << name;
  for (const std::string& name : kLeftUnknown) EXPECT_TRUE(simulated.contains(name)) << name;
}

TEST(BackendRolesTest, SimulatedLibraryAgreesOnEachRole) {
  const std::map<std::string, std::string> simulated_name = {{"Reads", "reads"},
                                                             {"Seeds", "reads"},
                                                             {"Selects", "reads"},
                                                             {"Writes", "writes"},
                                                             {"Trains", "writes"},
                                                             {"Result", "writes"},
                                                             {"ReadsOrWrites", "reads or writes"}};
  const auto simulated = SimulatedRoles();
  for (const auto& [name, role] : OurRoles())
    EXPECT_EQ(simulated_name.at(role), simulated.at(name)) << name;
}

TEST(BackendRolesTest, ElementsHaveTheirTypesSizes) {
  const std::map<int, std::size_t> bytes = {
      {CUDNN_DATA_FLOAT, 4},    {CUDNN_DATA_DOUBLE, 8}, {CUDNN_DATA_HALF, 2},
      {CUDNN_DATA_INT8, 1},     {CUDNN_DATA_INT32, 4},  {CUDNN_DATA_UINT8, 1},
      {CUDNN_DATA_BFLOAT16, 2}, {CUDNN_DATA_INT64, 8},  {CUDNN_DATA_FP8_E4M3, 1},
      {CUDNN_DATA_FP8_E5M2, 1}, {CUDNN_DATA_UINT32, 4},
  };
  constexpr int kMore = 100;  // types that cuDNN may add
  for (int type = 0; type < kMore; ++type) {
    const auto known = bytes.find(type);
    EXPECT_EQ(ElementBytes(type), known == bytes.end() ? 0 : known->second) << type;
  }
}

}  // namespace
}  // namespace spillway::dnn
