// What the hooked calls of cuDNN's legacy interface copy: inputs come back and are not copied out
// twice, packed results do not come back, and no byte is lost.
#include <string>
#include <utility>

#include "tests/integration/roles/role_case.h"

namespace spillway::test {
namespace {

constexpr auto kReads = Part::kReads;
constexpr auto kOverwrites = Part::kOverwrites;
constexpr auto kUnknown = Part::kUnknown;

// Of floats
using Dims = std::vector<int>;
const Dims kShape = {32, 4, 64, 64};  // 2 MiB
// Of a batch norm per activation
const Dims kImages = {2, 128, 64, 64}, kParameters = {1, 128, 64, 64};
// Of a convolution of 1 x 1
const Dims kConvolutionX = {1, 512, 32, 32}, kConvolutionW = {1024, 512, 1, 1},
           kConvolutionY = {1, 1024, 32, 32}, kBias = {1, 1024, 1, 1};
// Of a convolution whose bias has 2 MiB
const Dims kChannels = {2, 524288, 1, 1}, kChannelBias = {1, 524288, 1, 1};

struct Use {
  Part part;
  Dims dims;
  bool is_filter = false;
  bool is_scratch = false;  // a workspace or state, without a descriptor
};

constexpr float kOne = 1;

// A call's descriptors and memory, in the order of the uses.
struct Bound {
  cudnnHandle_t handle;
  const float* beta;
  std::vector<cudnnTensorDescriptor_t> tensor;
  std::vector<cudnnFilterDescriptor_t> filter;
  std::vector<void*> data;
};

struct Function {
  const char* name;
  std::vector<Use> uses;
  cudnnStatus_t (*call)(const Bound& b);
  bool has_beta = true;
  bool works_in_place = true;
};
void PrintTo(const Function& function, std::ostream* out) { *out << function.name; }

cudnnConvolutionDescriptor_t Convolution() {
  cudnnConvolutionDescriptor_t convolution = nullptr;
  EXPECT_EQ(cudnnCreateConvolutionDescriptor(&convolution), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnSetConvolution2dDescriptor(convolution, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                            CUDNN_DATA_FLOAT),
            CUDNN_STATUS_SUCCESS);
  return convolution;
}
cudnnActivationDescriptor_t Activation() {
  cudnnActivationDescriptor_t activation = nullptr;
  EXPECT_EQ(cudnnCreateActivationDescriptor(&activation), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(
      cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0.0),
      CUDNN_STATUS_SUCCESS);
  return activation;
}
cudnnLRNDescriptor_t Lrn() {
  cudnnLRNDescriptor_t lrn = nullptr;
  EXPECT_EQ(cudnnCreateLRNDescriptor(&lrn), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnSetLRNDescriptor(lrn, 3, 1e-4, 0.75, 2.0), CUDNN_STATUS_SUCCESS);
  return lrn;
}
cudnnPoolingDescriptor_t Pooling() {
  cudnnPoolingDescriptor_t pooling = nullptr;
  EXPECT_EQ(cudnnCreatePoolingDescriptor(&pooling), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 1, 1,
                                        0, 0, 1, 1),
            CUDNN_STATUS_SUCCESS);
  return pooling;
}
// Takes the states from memory. (Seeding them takes a launch without claims, after which even clean
// memory is copied out again: Note [Good host copies].)
cudnnDropoutDescriptor_t Dropout(const Bound& b, void* states) {
  cudnnDropoutDescriptor_t dropout = nullptr;
  std::size_t bytes = 0;
  EXPECT_EQ(cudnnDropoutGetStatesSize(b.handle, &bytes), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnCreateDropoutDescriptor(&dropout), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnRestoreDropoutDescriptor(dropout, b.handle, 0.5f, states, bytes, 7),
            CUDNN_STATUS_SUCCESS);
  return dropout;
}
cudnnOpTensorDescriptor_t Addition() {
  cudnnOpTensorDescriptor_t addition = nullptr;
  EXPECT_EQ(cudnnCreateOpTensorDescriptor(&addition), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnSetOpTensorDescriptor(addition, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                       CUDNN_NOT_PROPAGATE_NAN),
            CUDNN_STATUS_SUCCESS);
  return addition;
}
cudnnReduceTensorDescriptor_t Sum() {
  cudnnReduceTensorDescriptor_t sum = nullptr;
  EXPECT_EQ(cudnnCreateReduceTensorDescriptor(&sum), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnSetReduceTensorDescriptor(sum, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                           CUDNN_NOT_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
                                           CUDNN_32BIT_INDICES),
            CUDNN_STATUS_SUCCESS);
  return sum;
}
std::size_t DropoutReserveBytes(const Bound& b) {
  std::size_t bytes = 0;
  EXPECT_EQ(cudnnDropoutGetReserveSpaceSize(b.tensor[0], &bytes), CUDNN_STATUS_SUCCESS);
  return bytes;
}

constexpr auto kPerActivation = CUDNN_BATCHNORM_PER_ACTIVATION;
constexpr double kEpsilon = 1e-5;
const Use kScratch = {kUnknown, kShape, false, true};
const Use kParameter = {kReads, kParameters}, kStatistic = {kUnknown, kParameters},
          kGradient = {kOverwrites, kParameters};

const Function kFunctions[] = {
    {"ConvolutionForward",
     {{kReads, kConvolutionX}, {kReads, kConvolutionW, true}, {kOverwrites, kConvolutionY}},
     [](const Bound& b) {
       return cudnnConvolutionForward(
           b.handle, &kOne, b.tensor[0], b.data[0], b.filter[1], b.data[1], Convolution(),
           CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, b.beta, b.tensor[2], b.data[2]);
     }},
    {"ConvolutionBackwardData",
     {{kReads, kConvolutionW, true}, {kReads, kConvolutionY}, {kOverwrites, kConvolutionX}},
     [](const Bound& b) {
       return cudnnConvolutionBackwardData(
           b.handle, &kOne, b.filter[0], b.data[0], b.tensor[1], b.data[1], Convolution(),
           CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, nullptr, 0, b.beta, b.tensor[2], b.data[2]);
     }},
    {"ConvolutionBackwardFilter",
     {{kReads, kConvolutionX}, {kReads, kConvolutionY}, {kOverwrites, kConvolutionW, true}},
     [](const Bound& b) {
       return cudnnConvolutionBackwardFilter(
           b.handle, &kOne, b.tensor[0], b.data[0], b.tensor[1], b.data[1], Convolution(),
           CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, nullptr, 0, b.beta, b.filter[2], b.data[2]);
     }},
    {"ConvolutionBackwardBias",
     {{kReads, kChannels}, {kOverwrites, kChannelBias}},
     [](const Bound& b) {
       return cudnnConvolutionBackwardBias(b.handle, &kOne, b.tensor[0], b.data[0], b.beta,
                                           b.tensor[1], b.data[1]);
     }},
    {"ConvolutionBiasActivationForward",
     {{kReads, kConvolutionX},
      {kReads, kConvolutionW, true},
      {kReads, kConvolutionY},
      {kReads, kBias},
      {kOverwrites, kConvolutionY}},
     [](const Bound& b) {
       return cudnnConvolutionBiasActivationForward(
           b.handle, &kOne, b.tensor[0], b.data[0], b.filter[1], b.data[1], Convolution(),
           CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &kOne, b.tensor[2], b.data[2],
           b.tensor[3], b.data[3], Activation(), b.tensor[4], b.data[4]);
     },
     false},
    {"BatchNormalizationForwardTraining",
     {{kReads, kImages},
      {kOverwrites, kImages},
      kParameter,
      kParameter,
      kStatistic,
      kStatistic,
      kStatistic,
      kStatistic},
     [](const Bound& b) {
       return cudnnBatchNormalizationForwardTraining(
           b.handle, kPerActivation, &kOne, b.beta, b.tensor[0], b.data[0], b.tensor[1], b.data[1],
           b.tensor[2], b.data[2], b.data[3], 0.3, b.data[4], b.data[5], kEpsilon, b.data[6],
           b.data[7]);
     }},
    {"BatchNormalizationForwardTrainingEx",
     {{kReads, kImages},
      {kOverwrites, kImages},
      kParameter,
      kParameter,
      kStatistic,
      kStatistic,
      kStatistic,
      kStatistic},
     [](const Bound& b) {
       return cudnnBatchNormalizationForwardTrainingEx(
           b.handle, kPerActivation, CUDNN_BATCHNORM_OPS_BN, &kOne, b.beta, b.tensor[0], b.data[0],
           nullptr, nullptr, b.tensor[1], b.data[1], b.tensor[2], b.data[2], b.data[3], 0.3,
           b.data[4], b.data[5], kEpsilon, b.data[6], b.data[7], nullptr, nullptr, 0, nullptr, 0);
     }},
    {"BatchNormalizationForwardInference",
     {{kReads, kImages}, {kOverwrites, kImages}, kParameter, kParameter, kParameter, kParameter},
     [](const Bound& b) {
       return cudnnBatchNormalizationForwardInference(
           b.handle, kPerActivation, &kOne, b.beta, b.tensor[0], b.data[0], b.tensor[1], b.data[1],
           b.tensor[2], b.data[2], b.data[3], b.data[4], b.data[5], kEpsilon);
     }},
    {"BatchNormalizationBackward",
     {{kReads, kImages},
      {kReads, kImages},
      {kOverwrites, kImages},
      kParameter,
      kGradient,
      kGradient,
      kParameter,
      kParameter},
     [](const Bound& b) {
       return cudnnBatchNormalizationBackward(
           b.handle, kPerActivation, &kOne, b.beta, &kOne, b.beta, b.tensor[0], b.data[0],
           b.tensor[1], b.data[1], b.tensor[2], b.data[2], b.tensor[3], b.data[3], b.data[4],
           b.data[5], kEpsilon, b.data[6], b.data[7]);
     }},
    {"BatchNormalizationBackwardEx",
     {{kReads, kImages},
      {kReads, kImages},
      {kOverwrites, kImages},
      kParameter,
      kGradient,
      kGradient,
      kParameter,
      kParameter},
     [](const Bound& b) {
       return cudnnBatchNormalizationBackwardEx(
           b.handle, kPerActivation, CUDNN_BATCHNORM_OPS_BN, &kOne, b.beta, &kOne, b.beta,
           b.tensor[0], b.data[0], nullptr, nullptr, b.tensor[1], b.data[1], nullptr, nullptr,
           b.tensor[2], b.data[2], b.tensor[3], b.data[3], nullptr, b.data[4], b.data[5], kEpsilon,
           b.data[6], b.data[7], nullptr, nullptr, 0, nullptr, 0);
     }},
    {"LRNCrossChannelForward",
     {{kReads, kShape}, {kOverwrites, kShape}},
     [](const Bound& b) {
       return cudnnLRNCrossChannelForward(b.handle, Lrn(), CUDNN_LRN_CROSS_CHANNEL_DIM1, &kOne,
                                          b.tensor[0], b.data[0], b.beta, b.tensor[1], b.data[1]);
     },
     true,
     false},
    {"LRNCrossChannelBackward",
     {{kReads, kShape}, {kReads, kShape}, {kReads, kShape}, {kOverwrites, kShape}},
     [](const Bound& b) {
       return cudnnLRNCrossChannelBackward(b.handle, Lrn(), CUDNN_LRN_CROSS_CHANNEL_DIM1, &kOne,
                                           b.tensor[0], b.data[0], b.tensor[1], b.data[1],
                                           b.tensor[2], b.data[2], b.beta, b.tensor[3], b.data[3]);
     }},
    {"ActivationForward",
     {{kReads, kShape}, {kOverwrites, kShape}},
     [](const Bound& b) {
       return cudnnActivationForward(b.handle, Activation(), &kOne, b.tensor[0], b.data[0], b.beta,
                                     b.tensor[1], b.data[1]);
     }},
    {"ActivationBackward",
     {{kReads, kShape}, {kReads, kShape}, {kReads, kShape}, {kOverwrites, kShape}},
     [](const Bound& b) {
       return cudnnActivationBackward(b.handle, Activation(), &kOne, b.tensor[0], b.data[0],
                                      b.tensor[1], b.data[1], b.tensor[2], b.data[2], b.beta,
                                      b.tensor[3], b.data[3]);
     }},
    {"PoolingForward",
     {{kReads, kShape}, {kOverwrites, kShape}},
     [](const Bound& b) {
       return cudnnPoolingForward(b.handle, Pooling(), &kOne, b.tensor[0], b.data[0], b.beta,
                                  b.tensor[1], b.data[1]);
     }},
    {"PoolingBackward",
     {{kReads, kShape}, {kReads, kShape}, {kReads, kShape}, {kOverwrites, kShape}},
     [](const Bound& b) {
       return cudnnPoolingBackward(b.handle, Pooling(), &kOne, b.tensor[0], b.data[0], b.tensor[1],
                                   b.data[1], b.tensor[2], b.data[2], b.beta, b.tensor[3],
                                   b.data[3]);
     }},
    {"SoftmaxForward",
     {{kReads, kShape}, {kOverwrites, kShape}},
     [](const Bound& b) {
       return cudnnSoftmaxForward(b.handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
                                  &kOne, b.tensor[0], b.data[0], b.beta, b.tensor[1], b.data[1]);
     }},
    {"SoftmaxBackward",
     {{kReads, kShape}, {kReads, kShape}, {kOverwrites, kShape}},
     [](const Bound& b) {
       return cudnnSoftmaxBackward(b.handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
                                   &kOne, b.tensor[0], b.data[0], b.tensor[1], b.data[1], b.beta,
                                   b.tensor[2], b.data[2]);
     }},
    {"DropoutForward",
     {{kReads, kShape}, {kOverwrites, kShape}, kScratch, kScratch},
     [](const Bound& b) {
       return cudnnDropoutForward(b.handle, Dropout(b, b.data[3]), b.tensor[0], b.data[0],
                                  b.tensor[1], b.data[1], b.data[2], DropoutReserveBytes(b));
     },
     false},
    {"DropoutBackward",
     {{kReads, kShape}, {kOverwrites, kShape}, kScratch},
     [](const Bound& b) {
       return cudnnDropoutBackward(b.handle, Dropout(b, nullptr), b.tensor[0], b.data[0],
                                   b.tensor[1], b.data[1], b.data[2], DropoutReserveBytes(b));
     },
     false},
    {"AddTensor",
     {{kReads, kShape}, {kOverwrites, kShape}},
     [](const Bound& b) {
       return cudnnAddTensor(b.handle, &kOne, b.tensor[0], b.data[0], b.beta, b.tensor[1],
                             b.data[1]);
     }},
    {"OpTensor",
     {{kReads, kShape}, {kReads, kShape}, {kOverwrites, kShape}},
     [](const Bound& b) {
       return cudnnOpTensor(b.handle, Addition(), &kOne, b.tensor[0], b.data[0], &kOne, b.tensor[1],
                            b.data[1], b.beta, b.tensor[2], b.data[2]);
     }},
    {"ReduceTensor",
     {{kReads, kImages}, {kOverwrites, kParameters}, {Part::kWorkspace, kImages, false, true}},
     [](const Bound& b) {
       std::size_t bytes = 0;
       EXPECT_EQ(cudnnGetReductionWorkspaceSize(b.handle, Sum(), b.tensor[0], b.tensor[1], &bytes),
                 CUDNN_STATUS_SUCCESS);
       return cudnnReduceTensor(b.handle, Sum(), nullptr, 0, b.data[2], bytes, &kOne, b.tensor[0],
                                b.data[0], b.beta, b.tensor[1], b.data[1]);
     }},
    {"SetTensor",
     {{kOverwrites, kShape}},
     [](const Bound& b) { return cudnnSetTensor(b.handle, b.tensor[0], b.data[0], &kOne); },
     false},
    {"TransformTensor",
     {{kReads, kShape}, {kOverwrites, kShape}},
     [](const Bound& b) {
       return cudnnTransformTensor(b.handle, &kOne, b.tensor[0], b.data[0], b.beta, b.tensor[1],
                                   b.data[1]);
     },
     true,
     false},
};

class EvictedLegacyRolesTest : public EvictedRolesTest,
                               public testing::WithParamInterface<Function> {
 protected:
  std::size_t BudgetBytes() const override { return BudgetFor(Operands()); }
  static bool IsTensorResult(const Use& use) {
    return use.part == kOverwrites && !use.is_filter && !use.is_scratch;
  }

  // `step`: the distance of the first result's elements.
  std::vector<Operand> Operands(bool blends = false, int step = 1) const {
    std::vector<Operand> operands;
    for (const Use& use : GetParam().uses) {
      std::size_t count = 1;
      for (const int size : use.dims) count *= static_cast<std::size_t>(size);
      const bool has_gaps = step > 1 && operands.size() == Result();
      std::size_t bytes = sizeof(float) * (has_gaps ? (count - 1) * step + 1 : count);
      if (use.part == kReads) bytes = std::max(bytes, 2 * kMiB);
      const bool is_kept = use.part == kOverwrites && (has_gaps || blends);
      operands.push_back({is_kept ? kUnknown : use.part, bytes});
    }
    return operands;
  }
  std::size_t Result() const {
    std::size_t result = 0;
    while (result + 1 < GetParam().uses.size() && GetParam().uses[result].part != kOverwrites)
      ++result;
    return result;
  }
  static void SetDescriptors(const Use& use, int step, Bound* bound) {
    bound->tensor.push_back(nullptr);
    bound->filter.push_back(nullptr);
    const int rank = static_cast<int>(use.dims.size());
    if (use.is_filter) {
      EXPECT_EQ(cudnnCreateFilterDescriptor(&bound->filter.back()), CUDNN_STATUS_SUCCESS);
      EXPECT_EQ(cudnnSetFilterNdDescriptor(bound->filter.back(), CUDNN_DATA_FLOAT,
                                           CUDNN_TENSOR_NCHW, rank, use.dims.data()),
                CUDNN_STATUS_SUCCESS);
      return;
    }
    Dims strides(use.dims.size(), step);
    for (int i = rank - 1; i-- > 0;) strides[i] = strides[i + 1] * use.dims[i + 1];
    EXPECT_EQ(cudnnCreateTensorDescriptor(&bound->tensor.back()), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnSetTensorNdDescriptor(bound->tensor.back(), CUDNN_DATA_FLOAT, rank,
                                         use.dims.data(), strides.data()),
              CUDNN_STATUS_SUCCESS);
  }
  Call Calls(const float* beta, int step = 1) const {
    Bound bound = {cudnn_, beta, {}, {}, {}};
    for (const Use& use : GetParam().uses)
      SetDescriptors(use, bound.tensor.size() == Result() ? step : 1, &bound);
    return [bound](const std::vector<void*>& operands) mutable {
      bound.data = operands;
      EXPECT_EQ(GetParam().call(bound), CUDNN_STATUS_SUCCESS);
    };
  }

  const float zero_ = 0, two_ = 2;
};

TEST_P(EvictedLegacyRolesTest, CopiesInputsInOnceAndNoPackedResult) {
  const std::vector<Operand> operands = Operands();
  ExpectTrafficOf(operands, Check(Apart(operands), Calls(&zero_)));
}

TEST_P(EvictedLegacyRolesTest, BlendedResultsComeBack) {
  const std::vector<Operand> operands = Operands(GetParam().has_beta);
  ExpectTrafficOf(operands, Check(Apart(operands), Calls(&two_)));
}

TEST_P(EvictedLegacyRolesTest, BytesBetweenAResultsElementsStay) {
  const int step = IsTensorResult(GetParam().uses[Result()]) ? 2 : 1;  // filters have no strides
  const std::vector<Operand> operands = Operands(false, step);
  ExpectTrafficOf(operands, Check(Apart(operands), Calls(&zero_, step)));
}

TEST_P(EvictedLegacyRolesTest, ResultInLargerMemoryLosesNothing) {
  const std::vector<Operand> operands = Operands();
  Check(Inside(operands, Result()), Calls(&zero_));
  if (Result() == 0) return;  // no input
  const std::size_t bytes = operands[0].bytes;
  // In place, in the middle of the input, and behind it in one allocation
  for (const std::size_t offset : {std::size_t{0}, bytes / 2, bytes}) {
    if (offset == 0 && !GetParam().works_in_place) continue;
    Check(Together(operands, Result(), 0, offset), Calls(&zero_));
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, EvictedLegacyRolesTest, testing::ValuesIn(kFunctions),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace spillway::test
