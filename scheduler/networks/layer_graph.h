// A neural network as layers. Shapes are per sample.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::scheduler::networks {

enum class LayerType : uint8_t {
  kData,
  kConv,
  kBatchNorm,
  kRelu,
  kLrn,
  kMaxPool,
  kAveragePool,
  kFullyConnected,
  kDropout,
  kAdd,
  kConcat,
  kSoftmaxLoss,
  kEmbed,
  kLayerNorm,
  kGelu,
  kMatmul,
  kAttentionSoftmax,
  kFlashAttention,
};

struct LayerId {
  int32_t index = -1;
  bool operator==(const LayerId&) const = default;
};

struct Layer {
  std::string name;
  LayerType type = LayerType::kData;
  std::vector<LayerId> inputs;
  std::vector<int64_t> shape;
  int64_t parameters = 0;
  int64_t flops = 0;  // forward, whole batch
  int64_t auxiliary_bytes = 0;
  int64_t kernel_height = 0, kernel_width = 0, stride = 1, input_channels = 0;
};

// A single number sets both.
struct Kernel {
  int64_t height, width;
  Kernel(int64_t side) : height(side), width(side) {}
  Kernel(int64_t the_height, int64_t the_width) : height(the_height), width(the_width) {}
};

inline constexpr int64_t kSamePadding = -1;  // half the kernel, on each side of each dimension

class LayerGraph {
 public:
  LayerGraph(std::string name, int64_t batch_size, int64_t element_bytes = 4);

  LayerId Data(std::vector<int64_t> shape);
  LayerId Conv(LayerId input, int64_t channels, Kernel kernel, int64_t stride = 1,
               int64_t padding = kSamePadding, bool bias = false, const std::string& name = "");
  LayerId BatchNorm(LayerId input);
  LayerId Relu(LayerId input, const std::string& name = "");
  LayerId Lrn(LayerId input, const std::string& name = "");
  LayerId MaxPool(LayerId input, int64_t side, int64_t stride, int64_t padding = 0,
                  const std::string& name = "");
  LayerId AveragePool(LayerId input, int64_t side, int64_t stride, int64_t padding = 0);
  LayerId GlobalAveragePool(LayerId input);
  LayerId FullyConnected(LayerId input, int64_t outputs, const std::string& name = "");
  LayerId Dropout(LayerId input, const std::string& name = "");
  LayerId Add(LayerId one, LayerId other);
  LayerId Concat(std::vector<LayerId> inputs);
  LayerId Loss(LayerId input, const std::string& name = "softmax");

  // Transformers: shape = {sequence, width}.
  LayerId Embed(LayerId tokens, int64_t vocabulary, int64_t width);
  LayerId Linear(LayerId input, int64_t outputs);  // along the last dimension
  LayerId LayerNorm(LayerId input);
  LayerId Gelu(LayerId input);
  LayerId Matmul(LayerId one, LayerId other, std::vector<int64_t> shape, int64_t inner);
  LayerId AttentionSoftmax(LayerId input);
  LayerId FlashAttention(LayerId query, LayerId key, LayerId value, int64_t heads);

  const std::string& name() const { return name_; }
  int64_t batch_size() const { return batch_size_; }
  int64_t element_bytes() const { return element_bytes_; }
  const std::vector<Layer>& layers() const { return layers_; }
  const Layer& at(LayerId id) const { return layers_[static_cast<size_t>(id.index)]; }
  const std::vector<int64_t>& shape(LayerId id) const { return at(id).shape; }
  int64_t elements(LayerId id) const;
  int64_t bytes(LayerId id) const { return elements(id) * element_bytes_; }

 private:
  LayerId Append(LayerType type, std::vector<LayerId> inputs, std::vector<int64_t> shape,
                 const std::string& name = "");
  LayerId Pool(LayerType type, LayerId input, int64_t side, int64_t stride, int64_t padding,
               const std::string& name);
  Layer& Change(LayerId id) { return layers_[static_cast<size_t>(id.index)]; }

  std::string name_;
  int64_t batch_size_;
  int64_t element_bytes_;
  std::vector<Layer> layers_;
};

int64_t Product(const std::vector<int64_t>& factors);

}  // namespace spillway::scheduler::networks
