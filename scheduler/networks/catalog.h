// The papers' networks, from their layer tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/networks/layer_graph.h"

namespace spillway::scheduler::networks {

LayerGraph Alexnet(int64_t batch_size);

enum class ImageSet : uint8_t { kImageNet, kCifar10 };

// Depth 11, 13, 16 or 19. The CIFAR variant adds batch norm and dropout, and has a smaller head.
LayerGraph Vgg(int depth, int64_t batch_size, ImageSet images = ImageSet::kImageNet);

// Bottleneck blocks count three convolutions, basic ones two.
struct ResNetShape {
  std::vector<int> blocks_per_stage;
  bool bottleneck = true;

  int depth() const;
  bool operator==(const ResNetShape&) const = default;
};

// Depths 18, 34, 50, 101, 152 as published. Other depths: 2 + 3 x (6 + 32 + n + 6) bottleneck
// blocks, as SuperNeurons grows its third stage; nullopt if the depth does not fit.
std::optional<ResNetShape> ResnetShape(int depth);

enum class ResNetVariant : uint8_t {
  kStandard,
  kCifar10,
  // 227 pixels, first pooling without padding, stride in a block's first convolution.
  kSuperNeurons,
};

LayerGraph Resnet(const ResNetShape& shape, int64_t batch_size,
                  ResNetVariant variant = ResNetVariant::kStandard);

LayerGraph InceptionV3(int64_t batch_size);
LayerGraph InceptionV4(int64_t batch_size);

// Depth 121, 169, 201 (growth 32) or 161 (growth 48).
std::optional<LayerGraph> Densenet(int depth, int64_t batch_size);

struct TransformerShape {
  std::string name;
  int64_t width = 768;
  int64_t heads = 12;
  int layers = 12;
  int64_t vocabulary = 30522;
  bool norm_first = false;  // GPT: norm before each block; BERT: after
  bool flash = false;       // attention without the score matrix
  int64_t element_bytes = 4;
};

LayerGraph Transformer(const TransformerShape& shape, int64_t batch_size, int64_t sequence);

// Names: "alexnet", "vgg16", "vgg16_cifar", "resnet50", "resnet50_cifar", "resnet50_sn",
// "inceptionv3", "inceptionv4", "densenet121", "bert_base", "bert_base_s384", "bert_large",
// "gpt2_small", "gpt2_small_flash", "gpt2_medium". Batch size 0 means the network's usual one.
std::optional<LayerGraph> MakeNetwork(std::string_view name, int64_t batch_size);

std::vector<std::string> NetworkNames();

}  // namespace spillway::scheduler::networks
