#include "simulator/dnn/graph/operation.h"

#include <algorithm>
#include <limits>

#include "simulator/dnn/cudnn/descriptors.h"

namespace spillway::simulator::dnn::graph {
namespace {

struct ConvolutionNames {
  Direction direction;
  cudnnBackendAttributeName_t x, w, y, settings, alpha, beta;
};

const ConvolutionNames* NamesOf(cudnnBackendDescriptorType_t kind) {
  static constexpr ConvolutionNames kForward = {Direction::kForward,
                                                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  static constexpr ConvolutionNames kBackwardData = {
      Direction::kBackwardData,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  static constexpr ConvolutionNames kBackwardFilter = {
      Direction::kBackwardFilter,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  switch (kind) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return &kForward;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return &kBackwardData;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return &kBackwardFilter;
    default:
      return nullptr;
  }
}

std::uint64_t Mix(std::uint64_t hash, std::uint64_t word) {
  const std::uint64_t words[] = {hash, word};
  return HashOf(words, sizeof(words));
}

std::uint64_t MixTensor(std::uint64_t hash, const Tensor& tensor) {
  hash = Mix(hash, tensor.type);
  hash = Mix(hash, tensor.vector_count);
  hash = Mix(hash, tensor.is_virtual);
  for (int d = 0; d < tensor.rank; ++d) hash = Mix(Mix(hash, tensor.dims[d]), tensor.strides[d]);
  return hash;
}

std::uint64_t MixState(std::uint64_t hash, const State& state) {
  hash = Mix(hash, state.kind);
  for (const auto& [name, value] : state.values) {
    hash = Mix(Mix(hash, name), HashOf(value.bytes.data(), value.bytes.size()));
    for (const StatePointer& part : value.parts) {
      hash = part->kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR ? MixTensor(hash, TensorOf(*part))
                                                           : MixState(hash, *part);
    }
  }
  return hash;
}

bool AllPartsAreFinalized(const State& state) {
  for (const auto& [name, value] : state.values) {
    for (const StatePointer& part : value.parts) {
      if (!part->is_finalized) return false;
    }
  }
  return true;
}

// An output that beta adds to is read, too.
bool HasBeta(const State& state) {
  const ConvolutionNames* const names = NamesOf(state.kind);
  return names != nullptr && state.Number(names->beta, 0) != 0;
}

// A backward pass may take the forward pass's result.
bool TakesResult(const State& state, const Attribute& attribute) {
  return attribute.name == CUDNN_ATTR_OPERATION_POINTWISE_YDESC &&
         state.Find(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC) != nullptr;
}

Role RoleOf(const State& state, const Attribute& attribute) {
  if (TakesResult(state, attribute)) return Role::kReads;
  if (attribute.role == Role::kReadsOrWrites) {
    const auto phase = state.Get(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_NORM_FWD_INFERENCE);
    return phase == CUDNN_NORM_FWD_TRAINING ? Role::kWrites : Role::kReads;
  }
  return attribute.role == Role::kWrites && HasBeta(state) ? Role::kUpdates : attribute.role;
}

std::vector<TensorUse> UsesOf(const State& state) {
  std::vector<TensorUse> uses;
  for (const Attribute& attribute : AttributesOf(state.kind)) {
    const Value* const value = state.Find(attribute.name);
    if (value == nullptr || attribute.part != CUDNN_BACKEND_TENSOR_DESCRIPTOR) continue;
    for (const StatePointer& part : value->parts) {
      uses.push_back({attribute.name, RoleOf(state, attribute), TensorOf(*part)});
    }
  }
  return uses;
}

std::int64_t OutputSize(const Convolution& c, int d, std::int64_t padding) {
  const ConvolutionShape& s = c.shape;
  return (s.input[d] + padding - s.dilation[d] * (s.kernel[d] - 1) - 1) / s.stride[d] + 1;
}

cudnnStatus_t DescribeConvolution(const State& state, const ConvolutionNames& names,
                                  const Operation& operation, Convolution* result) {
  const Tensor* const x = operation.Find(names.x);
  const Tensor* const w = operation.Find(names.w);
  const Tensor* const y = operation.Find(names.y);
  const State* const settings = state.Part(names.settings);
  SPILLWAY_DNN_REQUIRE(x != nullptr && w != nullptr && y != nullptr && settings != nullptr,
                       CUDNN_STATUS_BAD_PARAM);
  const auto padding = settings->Integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const auto after = settings->Integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  const auto stride = settings->Integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto dilation = settings->Integers(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  const int spatial = static_cast<int>(stride.size());
  SPILLWAY_DNN_REQUIRE(x->rank == w->rank && x->rank == y->rank && x->rank == spatial + 2,
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(spatial <= kMaxSpatialRank, CUDNN_STATUS_NOT_SUPPORTED);
  SPILLWAY_DNN_REQUIRE(x->dims[1] > 0 && w->dims[1] > 0 && x->dims[1] % w->dims[1] == 0,
                       CUDNN_STATUS_BAD_PARAM);
  const std::int64_t groups = x->dims[1] / w->dims[1];
  SPILLWAY_DNN_REQUIRE(w->dims[0] % groups == 0, CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(y->dims[0] == x->dims[0] && y->dims[1] == w->dims[0],
                       CUDNN_STATUS_BAD_PARAM);

  Convolution& c = *result;
  c = {names.direction, {}, *x, *w, *y, false, true, 1, 0};
  c.shape.spatial_rank = spatial;
  c.shape.groups = groups;
  c.shape.images = x->dims[0];
  c.shape.input_channels = x->dims[1];
  c.shape.output_channels = w->dims[0];
  for (int d = 0; d < spatial; ++d) {
    c.shape.input[d] = x->dims[d + 2];
    c.shape.output[d] = y->dims[d + 2];
    c.shape.kernel[d] = w->dims[d + 2];
    c.shape.padding[d] = padding.empty() ? 0 : padding[d];
    c.shape.stride[d] = stride[d];
    c.shape.dilation[d] = dilation[d];
    const std::int64_t behind = after.empty() ? 0 : after[d];
    SPILLWAY_DNN_REQUIRE(OutputSize(c, d, c.shape.padding[d] + behind) == c.shape.output[d],
                         CUDNN_STATUS_BAD_PARAM);
    if (behind != c.shape.padding[d]) c.is_symmetric = false;
  }
  c.is_turned =
      settings->Get(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CONVOLUTION) == CUDNN_CONVOLUTION;
  c.alpha = static_cast<float>(state.Number(names.alpha, 1));
  c.beta = static_cast<float>(state.Number(names.beta, 0));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t DescribePointwise(const State& state, const Operation& operation, Pointwise* result) {
  const State* const settings = state.Part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  SPILLWAY_DNN_REQUIRE(settings != nullptr, CUDNN_STATUS_BAD_PARAM);
  const Tensor* const x = operation.Find(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  for (const TensorUse& use : operation.uses) {
    const bool is_wider = x != nullptr && use.tensor.rank != x->rank;
    SPILLWAY_DNN_REQUIRE(!is_wider, CUDNN_STATUS_BAD_PARAM);
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto number = [](const State& from, cudnnBackendAttributeName_t name, double otherwise) {
    return static_cast<float>(from.Number(name, otherwise));
  };
  *result = {settings->Get(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD),
             number(state, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1),
             number(state, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1),
             number(*settings, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0),
             number(*settings, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, kInfinity),
             number(*settings, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0)};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CheckMatmul(const Operation& operation) {
  const Tensor* const a = operation.Find(CUDNN_ATTR_OPERATION_MATMUL_ADESC);
  const Tensor* const b = operation.Find(CUDNN_ATTR_OPERATION_MATMUL_BDESC);
  const Tensor* const c = operation.Find(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  SPILLWAY_DNN_REQUIRE(a != nullptr && b != nullptr && c != nullptr, CUDNN_STATUS_BAD_PARAM);
  const int rank = a->rank;
  SPILLWAY_DNN_REQUIRE(rank >= 2 && b->rank == rank && c->rank == rank, CUDNN_STATUS_BAD_PARAM);
  const bool products_fit = a->dims[rank - 1] == b->dims[rank - 2] &&
                            a->dims[rank - 2] == c->dims[rank - 2] &&
                            b->dims[rank - 1] == c->dims[rank - 1];
  SPILLWAY_DNN_REQUIRE(products_fit, CUDNN_STATUS_BAD_PARAM);
  for (int d = 0; d < rank - 2; ++d) {
    const bool divides = a->dims[d] > 0 && b->dims[d] > 0 &&
                         (a->dims[d] % b->dims[d] == 0 || b->dims[d] % a->dims[d] == 0);
    SPILLWAY_DNN_REQUIRE(divides, CUDNN_STATUS_BAD_PARAM);
  }
  return CUDNN_STATUS_SUCCESS;
}

double ElementsOf(const Operation& operation, bool written) {
  double elements = 0;
  for (const TensorUse& use : operation.uses) {
    if ((use.role != Role::kReads) == written) elements += static_cast<double>(use.tensor.Count());
  }
  return elements;
}

double LastDimension(const Operation& operation, cudnnBackendAttributeName_t name, int from_last) {
  const Tensor* const tensor = operation.Find(name);
  if (tensor == nullptr || tensor->rank < from_last) return 1;
  return static_cast<double>(tensor->dims[tensor->rank - from_last]);
}

// Two products forward and five backward, each of queries by keys by channels.
double AttentionFlops(const Operation& operation, cudnnBackendAttributeName_t query,
                      cudnnBackendAttributeName_t key, int products) {
  const Tensor* const q = operation.Find(query);
  const double queries = q == nullptr ? 0 : static_cast<double>(q->Count());
  return products * 2 * queries * LastDimension(operation, key, 2);
}

double FlopsOf(const Operation& operation) {
  if (operation.convolution) return operation.convolution->shape.Flops();
  switch (operation.kind) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return 2 * ElementsOf(operation, true) *
             LastDimension(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, 1);
    case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
      return AttentionFlops(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC,
                            CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, 2);
    case CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR:
      return AttentionFlops(operation, CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC,
                            CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC, 5);
    case CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR:
      return 2 * ElementsOf(operation, true) *
             LastDimension(operation, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_DESC, 1);
    default:
      return 2 * (ElementsOf(operation, false) + ElementsOf(operation, true));
  }
}

}  // namespace

const Tensor* Operation::Find(cudnnBackendAttributeName_t attribute) const {
  for (const TensorUse& use : uses) {
    if (use.attribute == attribute) return &use.tensor;
  }
  return nullptr;
}

cudnnStatus_t CheckConvolution(const State& state) {
  const auto rank = state.Get<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0);
  SPILLWAY_DNN_REQUIRE(rank >= 1 && rank <= CUDNN_DIM_MAX - 2, CUDNN_STATUS_BAD_PARAM);
  const auto fits = [&](cudnnBackendAttributeName_t name, bool is_needed, std::int64_t least) {
    const auto values = state.Integers(name);
    if (values.empty()) return !is_needed;
    return values.size() == static_cast<std::size_t>(rank) &&
           *std::min_element(values.begin(), values.end()) >= least;
  };
  SPILLWAY_DNN_REQUIRE(fits(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, false, 0), CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(fits(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, false, 0),
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(fits(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, true, 1),
                       CUDNN_STATUS_BAD_PARAM);
  SPILLWAY_DNN_REQUIRE(fits(CUDNN_ATTR_CONVOLUTION_DILATIONS, true, 1), CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t DescribeOperation(const State& state, Operation* operation) {
  SPILLWAY_DNN_REQUIRE(AllPartsAreFinalized(state), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  *operation = {state.kind, UsesOf(state), {}, {}, 0, MixState(0, state)};
  const bool has_output =
      std::any_of(operation->uses.begin(), operation->uses.end(),
                  [](const TensorUse& use) { return use.role != Role::kReads; });
  SPILLWAY_DNN_REQUIRE(has_output, CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  if (const ConvolutionNames* const names = NamesOf(state.kind)) {
    status = DescribeConvolution(state, *names, *operation, &operation->convolution.emplace());
  } else if (state.kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
    status = DescribePointwise(state, *operation, &operation->pointwise.emplace());
  } else if (state.kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
    status = CheckMatmul(*operation);
  }
  if (status == CUDNN_STATUS_SUCCESS) operation->flops = FlopsOf(*operation);
  return status;
}

}  // namespace spillway::simulator::dnn::graph
