#include "simulator/dnn/graph/chain.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "simulator/dnn/graph/operation_graph.h"

namespace spillway::simulator::dnn::graph {
namespace {

float Relu(const ChainStep& step, float x) {
  if (x != x || (x > step.lower_clip && x < step.upper_clip)) return x;
  if (x >= step.upper_clip) return step.upper_clip;
  return step.lower_clip + step.lower_slope * (x - step.lower_clip);
}

float ReluGradient(const ChainStep& step, float x, float dy) {
  if (x > step.lower_clip) return x < step.upper_clip ? dy : 0.0f;
  return step.lower_slope * dy;
}

bool IsComputed(cudnnPointwiseMode_t mode) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_MAX:
    case CUDNN_POINTWISE_MIN:
    case CUDNN_POINTWISE_ABS:
    case CUDNN_POINTWISE_NEG:
    case CUDNN_POINTWISE_SQRT:
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_IDENTITY:
    case CUDNN_POINTWISE_RELU_FWD:
    case CUDNN_POINTWISE_RELU_BWD:
    case CUDNN_POINTWISE_SIGMOID_FWD:
    case CUDNN_POINTWISE_TANH_FWD:
      return true;
    default:
      return false;
  }
}

float Compute(const ChainStep& step, float x, float b, float dy) {
  switch (step.mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_MAX:
      return std::max(x, b);
    case CUDNN_POINTWISE_MIN:
      return std::min(x, b);
    case CUDNN_POINTWISE_ABS:
      return std::abs(x);
    case CUDNN_POINTWISE_NEG:
      return -x;
    case CUDNN_POINTWISE_SQRT:
      return std::sqrt(x);
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_RELU_FWD:
      return Relu(step, x);
    case CUDNN_POINTWISE_RELU_BWD:
      return ReluGradient(step, x, dy);
    case CUDNN_POINTWISE_SIGMOID_FWD:
      return 1.0f / (1.0f + std::exp(-x));
    case CUDNN_POINTWISE_TANH_FWD:
      return std::tanh(x);
    default:
      return x;
  }
}

// Dimensions of one repeat.
std::int64_t Broadcast(const TensorView& tensor, const TensorView& shape, std::int64_t index) {
  std::int64_t element = 0;
  std::int64_t stride = 1;
  for (int d = shape.rank - 1; d >= 0; --d) {
    const std::int64_t at = index % shape.dims[d];
    index /= shape.dims[d];
    if (tensor.dims[d] != 1) element += at * stride;
    stride *= tensor.dims[d];
  }
  return element;
}

bool Repeats(const TensorView& tensor, const TensorView& shape) {
  if (tensor.rank != shape.rank) return false;
  for (int d = 0; d < shape.rank; ++d) {
    if (tensor.dims[d] != 1 && tensor.dims[d] != shape.dims[d]) return false;
  }
  return true;
}

class Values {
 public:
  Values(const Chain& chain, void* const* operands) : chain_(chain) {
    inputs_.reserve(chain.tensor_count);
    results_.reserve(chain.tensor_count);
    for (int i = 0; i < chain.tensor_count; ++i) {
      const ChainTensor& tensor = chain.tensors[i];
      const bool is_input = !tensor.is_written && !tensor.is_by_value;
      inputs_.emplace_back(tensor.view, is_input ? operands[tensor.operand] : nullptr);
      results_.emplace_back(is_input ? 0 : tensor.view.Count());
      if (tensor.is_by_value) *results_.back().data() = tensor.value;
    }
  }
  float* At(int tensor) {
    float* const result = results_[tensor].data();
    return result != nullptr ? result : const_cast<float*>(inputs_[tensor].data());
  }
  void Store(void* const* operands) {
    for (int i = 0; i < chain_.tensor_count; ++i) {
      const ChainTensor& tensor = chain_.tensors[i];
      if (!tensor.is_written || tensor.operand < 0) continue;
      const bool is_scaled = chain_.has_convolution && i == Output();
      DenseOutput output(tensor.view, operands[tensor.operand], is_scaled ? chain_.alpha : 1,
                         is_scaled ? chain_.beta : 0);
      std::memcpy(output.data(), At(i), tensor.view.Count() * sizeof(float));
      output.Commit();
    }
  }
  int Output() const {
    if (chain_.direction == Direction::kForward) return chain_.y;
    return chain_.direction == Direction::kBackwardData ? chain_.x : chain_.w;
  }

 private:
  const Chain& chain_;
  std::vector<DenseInput> inputs_;
  std::vector<Scratch> results_;
};

void RunConvolutionOf(const Chain& chain, Values* values) {
  const bool makes_filter = chain.direction == Direction::kBackwardFilter;
  const Scratch turned(chain.is_turned ? chain.shape.FilterCount() : 0);
  float* const filter = values->At(chain.w);
  if (chain.is_turned && !makes_filter) TurnFilter(chain.shape, filter, turned.data());
  float* const correlated = chain.is_turned ? turned.data() : filter;
  RunConvolution(chain.direction, chain.shape,
                 {values->At(chain.x), correlated, values->At(chain.y)});
  if (chain.is_turned && makes_filter) TurnFilter(chain.shape, correlated, filter);
}

// What later steps read of the convolution. Stored results are scaled when they are stored.
void ScaleForSteps(const Chain& chain, Values* values) {
  const ChainTensor& output = chain.tensors[values->Output()];
  if (chain.alpha == 1 || output.operand >= 0) return;
  float* const data = values->At(values->Output());
  for (std::int64_t i = 0; i < output.view.Count(); ++i) data[i] *= chain.alpha;
}

void RunStep(const Chain& chain, const ChainStep& step, Values* values) {
  const TensorView& shape = chain.tensors[step.result].view;
  const auto read = [&](int tensor, std::int64_t index) {
    if (tensor < 0) return 0.0f;
    return values->At(tensor)[Broadcast(chain.tensors[tensor].view, shape, index)];
  };
  float* const result = values->At(step.result);
  for (std::int64_t i = 0; i < shape.Count(); ++i) {
    result[i] = Compute(step, step.alpha1 * read(step.x, i), step.alpha2 * read(step.b, i),
                        read(step.dy, i));
  }
}

class ChainBuilder {
 public:
  explicit ChainBuilder(const OperationGraph& graph) : graph_(graph) {
    std::memset(static_cast<void*>(&chain_), 0, sizeof(chain_));
  }

  std::optional<Chain> Build() {
    for (const auto& operation : graph_.operations) {
      const bool fits = operation->convolution ? AddConvolution(*operation->convolution)
                                               : operation->pointwise && AddStep(*operation);
      if (!fits) return std::nullopt;
    }
    return chain_;
  }

 private:
  // -1: too many tensors, one that is not computed on, or one that is read before it is made.
  int Add(const Tensor& tensor, bool is_written) {
    int index = 0;
    while (index < chain_.tensor_count && uids_[index] != tensor.uid) ++index;
    if (index == chain_.tensor_count) {
      ChainTensor added = {};
      if (index == Chain::kMostTensors || !tensor.ToView(&added.view)) return -1;
      added.operand = OperandOf(tensor);
      added.is_by_value = tensor.is_by_value;
      if (tensor.is_by_value && tensor.Count() != 1) return -1;
      chain_.tensors[chain_.tensor_count++] = added;
      uids_.push_back(tensor.uid);
    }
    ChainTensor& known = chain_.tensors[index];
    if (is_written) known.is_written = 1;
    const bool has_value = known.operand >= 0 || known.is_written;
    return has_value ? index : -1;
  }

  int OperandOf(const Tensor& tensor) const {
    for (std::size_t i = 0; i < graph_.buffers.size(); ++i) {
      if (graph_.buffers[i].uid == tensor.uid) return static_cast<int>(i);
    }
    return -1;
  }

  bool AddConvolution(const Convolution& convolution) {
    if (chain_.has_convolution || chain_.step_count > 0 || !convolution.is_symmetric) return false;
    chain_.has_convolution = 1;
    chain_.direction = convolution.direction;
    chain_.shape = convolution.shape;
    chain_.x = Add(convolution.x, convolution.direction == Direction::kBackwardData);
    chain_.w = Add(convolution.w, convolution.direction == Direction::kBackwardFilter);
    chain_.y = Add(convolution.y, convolution.direction == Direction::kForward);
    chain_.is_turned = convolution.is_turned;
    chain_.alpha = convolution.alpha;
    chain_.beta = convolution.beta;
    const bool has_tensors = chain_.x >= 0 && chain_.w >= 0 && chain_.y >= 0;
    // Scaled and stored, it cannot be read by later steps too.
    return has_tensors && (graph_.operations.size() == 1 ||
                           (chain_.beta == 0 && chain_.alpha == 1) || IsVirtualOutput(convolution));
  }

  static bool IsVirtualOutput(const Convolution& convolution) {
    switch (convolution.direction) {
      case Direction::kForward:
        return convolution.y.is_virtual && convolution.beta == 0;
      case Direction::kBackwardData:
        return convolution.x.is_virtual && convolution.beta == 0;
      case Direction::kBackwardFilter:
        break;
    }
    return convolution.w.is_virtual && convolution.beta == 0;
  }

  bool AddStep(const Operation& operation) {
    const Pointwise& pointwise = *operation.pointwise;
    if (chain_.step_count == Chain::kMostSteps || !IsComputed(pointwise.mode)) return false;
    ChainStep step = {pointwise.mode,
                      -1,
                      -1,
                      -1,
                      -1,
                      pointwise.alpha1,
                      pointwise.alpha2,
                      pointwise.lower_clip,
                      pointwise.upper_clip,
                      pointwise.lower_slope};
    for (const TensorUse& use : operation.uses) {
      const int index = Add(use.tensor, use.role != Role::kReads);
      if (index < 0) return false;
      if (use.role != Role::kReads) step.result = index;
      if (use.attribute == CUDNN_ATTR_OPERATION_POINTWISE_XDESC) step.x = index;
      if (use.attribute == CUDNN_ATTR_OPERATION_POINTWISE_BDESC) step.b = index;
      if (use.attribute == CUDNN_ATTR_OPERATION_POINTWISE_DYDESC) step.dy = index;
      if (use.attribute == CUDNN_ATTR_OPERATION_POINTWISE_TDESC) return false;
    }
    if (step.result < 0 || step.x < 0 || !InputsRepeat(step)) return false;
    chain_.steps[chain_.step_count++] = step;
    return true;
  }

  bool InputsRepeat(const ChainStep& step) const {
    const TensorView& shape = chain_.tensors[step.result].view;
    for (const int input : {step.x, step.b, step.dy}) {
      if (input >= 0 && !Repeats(chain_.tensors[input].view, shape)) return false;
    }
    return true;
  }

  const OperationGraph& graph_;
  Chain chain_;
  std::vector<std::int64_t> uids_;
};

}  // namespace

void Chain::Run(void* const* operands) const {
  Values values(*this, operands);
  if (has_convolution) {
    RunConvolutionOf(*this, &values);
    ScaleForSteps(*this, &values);
  }
  for (int i = 0; i < step_count; ++i) RunStep(*this, steps[i], &values);
  values.Store(operands);
}

std::optional<Chain> ChainOf(const OperationGraph& graph) { return ChainBuilder(graph).Build(); }

}  // namespace spillway::simulator::dnn::graph
