#include "scheduler/networks/layer_graph.h"

#include <utility>

namespace spillway::scheduler::networks {
namespace {

const char* PrefixOf(LayerType type) {
  switch (type) {
    case LayerType::kData:
      return "data";
    case LayerType::kConv:
      return "conv";
    case LayerType::kBatchNorm:
      return "bn";
    case LayerType::kRelu:
      return "relu";
    case LayerType::kLrn:
      return "lrn";
    case LayerType::kMaxPool:
      return "pool";
    case LayerType::kAveragePool:
      return "pool";
    case LayerType::kFullyConnected:
      return "fc";
    case LayerType::kDropout:
      return "dropout";
    case LayerType::kAdd:
      return "add";
    case LayerType::kConcat:
      return "concat";
    case LayerType::kSoftmaxLoss:
      return "softmaxloss";
    case LayerType::kEmbed:
      return "embed";
    case LayerType::kLayerNorm:
      return "ln";
    case LayerType::kGelu:
      return "gelu";
    case LayerType::kMatmul:
      return "bmm";
    case LayerType::kAttentionSoftmax:
      return "attnsoftmax";
    case LayerType::kFlashAttention:
      return "flashattn";
  }
  return "?";
}

}  // namespace

int64_t Product(const std::vector<int64_t>& factors) {
  int64_t result = 1;
  for (int64_t factor : factors) result *= factor;
  return result;
}

LayerGraph::LayerGraph(std::string name, int64_t batch_size, int64_t element_bytes)
    : name_(std::move(name)), batch_size_(batch_size), element_bytes_(element_bytes) {}

int64_t LayerGraph::elements(LayerId id) const { return batch_size_ * Product(shape(id)); }

LayerId LayerGraph::Append(LayerType type, std::vector<LayerId> inputs, std::vector<int64_t> shape,
                           const std::string& name) {
  Layer layer;
  layer.name = name.empty() ? PrefixOf(type) + std::to_string(layers_.size()) : name;
  layer.type = type;
  layer.inputs = std::move(inputs);
  layer.shape = std::move(shape);
  layers_.push_back(std::move(layer));
  return {static_cast<int32_t>(layers_.size()) - 1};
}

LayerId LayerGraph::Data(std::vector<int64_t> shape) {
  return Append(LayerType::kData, {}, std::move(shape), "data");
}

LayerId LayerGraph::Conv(LayerId input, int64_t channels, Kernel kernel, int64_t stride,
                         int64_t padding, bool bias, const std::string& name) {
  const std::vector<int64_t> in = shape(input);
  const int64_t pad_height = padding == kSamePadding ? kernel.height / 2 : padding;
  const int64_t pad_width = padding == kSamePadding ? kernel.width / 2 : padding;
  const int64_t height = (in[1] + 2 * pad_height - kernel.height) / stride + 1;
  const int64_t width = (in[2] + 2 * pad_width - kernel.width) / stride + 1;
  const LayerId id = Append(LayerType::kConv, {input}, {channels, height, width}, name);
  Layer& layer = Change(id);
  const int64_t per_output = in[0] * kernel.height * kernel.width;
  layer.parameters = channels * per_output + (bias ? channels : 0);
  layer.flops = 2 * batch_size_ * channels * height * width * per_output;
  layer.kernel_height = kernel.height;
  layer.kernel_width = kernel.width;
  layer.stride = stride;
  layer.input_channels = in[0];
  return id;
}

LayerId LayerGraph::BatchNorm(LayerId input) {
  const LayerId id = Append(LayerType::kBatchNorm, {input}, shape(input));
  Change(id).parameters = 2 * shape(input)[0];
  Change(id).flops = 8 * elements(input);
  Change(id).auxiliary_bytes = 8 * shape(input)[0];
  return id;
}

LayerId LayerGraph::Relu(LayerId input, const std::string& name) {
  const LayerId id = Append(LayerType::kRelu, {input}, shape(input), name);
  Change(id).flops = elements(input);
  return id;
}

LayerId LayerGraph::Lrn(LayerId input, const std::string& name) {
  const LayerId id = Append(LayerType::kLrn, {input}, shape(input), name);
  Change(id).flops = 20 * elements(input);
  return id;
}

LayerId LayerGraph::Pool(LayerType type, LayerId input, int64_t side, int64_t stride,
                         int64_t padding, const std::string& name) {
  const std::vector<int64_t> in = shape(input);
  const auto out = [&](int64_t extent) { return (extent + 2 * padding - side) / stride + 1; };
  const LayerId id = Append(type, {input}, {in[0], out(in[1]), out(in[2])}, name);
  Change(id).flops = elements(id) * side * side;
  return id;
}

LayerId LayerGraph::MaxPool(LayerId input, int64_t side, int64_t stride, int64_t padding,
                            const std::string& name) {
  return Pool(LayerType::kMaxPool, input, side, stride, padding, name);
}

LayerId LayerGraph::AveragePool(LayerId input, int64_t side, int64_t stride, int64_t padding) {
  return Pool(LayerType::kAveragePool, input, side, stride, padding, "");
}

LayerId LayerGraph::GlobalAveragePool(LayerId input) {
  const LayerId id = Append(LayerType::kAveragePool, {input}, {shape(input)[0]});
  Change(id).flops = elements(input);
  return id;
}

LayerId LayerGraph::FullyConnected(LayerId input, int64_t outputs, const std::string& name) {
  const int64_t inputs = Product(shape(input));
  const LayerId id = Append(LayerType::kFullyConnected, {input}, {outputs}, name);
  Change(id).parameters = inputs * outputs + outputs;
  Change(id).flops = 2 * batch_size_ * inputs * outputs;
  return id;
}

LayerId LayerGraph::Dropout(LayerId input, const std::string& name) {
  const LayerId id = Append(LayerType::kDropout, {input}, shape(input), name);
  Change(id).flops = 2 * elements(input);
  Change(id).auxiliary_bytes = elements(input);
  return id;
}

LayerId LayerGraph::Add(LayerId one, LayerId other) {
  const LayerId id = Append(LayerType::kAdd, {one, other}, shape(one));
  Change(id).flops = elements(one);
  return id;
}

LayerId LayerGraph::Concat(std::vector<LayerId> inputs) {
  std::vector<int64_t> joined = shape(inputs.front());
  joined[0] = 0;
  for (LayerId input : inputs) joined[0] += shape(input)[0];
  return Append(LayerType::kConcat, std::move(inputs), std::move(joined));
}

LayerId LayerGraph::Loss(LayerId input, const std::string& name) {
  const LayerId id = Append(LayerType::kSoftmaxLoss, {input}, shape(input), name);
  Change(id).flops = 5 * elements(input);
  return id;
}

LayerId LayerGraph::Embed(LayerId tokens, int64_t vocabulary, int64_t width) {
  std::vector<int64_t> out = shape(tokens);
  out.push_back(width);
  const LayerId id = Append(LayerType::kEmbed, {tokens}, std::move(out));
  Change(id).parameters = vocabulary * width;
  return id;
}

LayerId LayerGraph::Linear(LayerId input, int64_t outputs) {
  std::vector<int64_t> out = shape(input);
  const int64_t width = out.back();
  out.back() = outputs;
  const LayerId id = Append(LayerType::kFullyConnected, {input}, std::move(out));
  Change(id).parameters = width * outputs + outputs;
  Change(id).flops = 2 * elements(input) * outputs;
  return id;
}

LayerId LayerGraph::LayerNorm(LayerId input) {
  const LayerId id = Append(LayerType::kLayerNorm, {input}, shape(input));
  const int64_t width = shape(input).back();
  Change(id).parameters = 2 * width;
  Change(id).flops = 8 * elements(input);
  Change(id).auxiliary_bytes = 8 * elements(input) / width;
  return id;
}

LayerId LayerGraph::Gelu(LayerId input) {
  const LayerId id = Append(LayerType::kGelu, {input}, shape(input));
  Change(id).flops = 10 * elements(input);
  return id;
}

LayerId LayerGraph::Matmul(LayerId one, LayerId other, std::vector<int64_t> shape, int64_t inner) {
  const LayerId id = Append(LayerType::kMatmul, {one, other}, std::move(shape));
  Change(id).flops = 2 * elements(id) * inner;
  return id;
}

LayerId LayerGraph::AttentionSoftmax(LayerId input) {
  const LayerId id = Append(LayerType::kAttentionSoftmax, {input}, shape(input));
  Change(id).flops = 5 * elements(input);
  return id;
}

LayerId LayerGraph::FlashAttention(LayerId query, LayerId key, LayerId value, int64_t heads) {
  const int64_t sequence = shape(query)[0], width = shape(query)[1];
  const LayerId id = Append(LayerType::kFlashAttention, {query, key, value}, {sequence, width});
  Change(id).flops = 4 * batch_size_ * sequence * sequence * width;
  Change(id).auxiliary_bytes = 4 * batch_size_ * sequence * heads;
  return id;
}

}  // namespace spillway::scheduler::networks
