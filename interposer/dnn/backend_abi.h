// cuDNN's graph (backend) interface: the numbers that are used here.
//
// Written from the public header cudnn_graph.h (cuDNN 8 to 9; numbers are never reused), so that
// Spillway builds without it. A test compares them with the header.
#pragma once

namespace spillway::dnn {

// cudnnBackendDescriptorType_t: the kinds that are not operations or their settings
enum class DescriptorKind : int {
  kEngine = 2,
  kEngineConfiguration = 3,
  kExecutionPlan = 5,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
};

// cudnnBackendAttributeType_t
enum class AttributeType : int {
  kHandle = 0,
  kBoolean = 2,
  kInt64 = 3,
  kFloat = 4,
  kDouble = 5,
  kVoidPointer = 6,
  kNumericalNote = 11,
  kDescriptor = 15,
  kInt32 = 23,
  kCharacter = 24,
  kFraction = 26,
  kLast = 30,  // of the known types; those not named here are enumerations
};
inline constexpr int kNormInference = 0;       // cudnnBackendNormFwdPhase_t
inline constexpr int kStatisticsTraining = 0;  // cudnnBnFinalizeStatsMode_t

// cudnnBackendNumericalNote_t
inline constexpr int kTensorCore = 0, kDownConvertInputs = 1, kReducedPrecisionReduction = 2,
                     kNondeterministic = 4;
inline constexpr int kMostNotes = 64;  // cuDNN 9.10 knows 10

// cudnnBackendAttributeName_t. The tensors of operations are in backend_roles.inc.
enum class Attribute : int {
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kConfigurationEngine = 300,
  kConfigurationWorkspaceBytes = 303,
  kPlanConfiguration = 401,
  kPlanWorkspaceBytes = 402,
  kPlanRunsOnly = 404,
  kPlanText = 405,
  kConvolutionForwardBeta = 701,
  kConvolutionBackwardDataBeta = 707,
  kConvolutionBackwardFilterBeta = 713,
  kPointwiseDx = 756,
  kStatisticsMode = 780,
  kGraphOperations = 801,
  kGraphIsDynamic = 803,
  kTensorDataType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorVectorCount = 904,
  kTensorUniqueId = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kTensorReordering = 909,
  kTensorRaggedOffset = 913,
  kPackUniqueIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kPackOverridingShapes = 1011,
  kPackOverridingStrides = 1012,
  kEngineGraph = 1300,
  kEngineNumericalNote = 1303,
  kResampleForwardBeta = 1714,
  kConcatenationInPlace = 1802,
  kNormPhase = 2001,
};

}  // namespace spillway::dnn
