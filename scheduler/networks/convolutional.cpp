#include <array>
#include <initializer_list>

#include "scheduler/networks/catalog.h"

namespace spillway::scheduler::networks {
namespace {

struct Conv {
  int64_t channels;
  Kernel kernel;
  int64_t stride = 1;
  int64_t padding = kSamePadding;
};

LayerId ConvNormRelu(LayerGraph& graph, LayerId input, const Conv& conv) {
  return graph.Relu(
      graph.BatchNorm(graph.Conv(input, conv.channels, conv.kernel, conv.stride, conv.padding)));
}

LayerId Chain(LayerGraph& graph, LayerId input, std::initializer_list<Conv> convs) {
  for (const Conv& conv : convs) input = ConvNormRelu(graph, input, conv);
  return input;
}

LayerId PooledConv(LayerGraph& graph, LayerId input, int64_t channels) {
  return Chain(graph, graph.AveragePool(input, 3, 1, 1), {{channels, 1}});
}

LayerId Head(LayerGraph& graph, LayerId features, int64_t classes) {
  return graph.Loss(graph.FullyConnected(graph.GlobalAveragePool(features), classes));
}

}  // namespace

LayerGraph Alexnet(int64_t batch_size) {
  LayerGraph graph("alexnet_b" + std::to_string(batch_size), batch_size);
  LayerId x = graph.Data({3, 227, 227});
  const auto conv_relu = [&](int number, int64_t channels, int64_t kernel, int64_t stride,
                             int64_t padding) {
    const std::string n = std::to_string(number);
    x = graph.Relu(graph.Conv(x, channels, kernel, stride, padding, true, "CONV" + n), "RELU" + n);
  };
  conv_relu(1, 96, 11, 4, 0);
  x = graph.MaxPool(graph.Lrn(x, "LRN1"), 3, 2, 0, "POOL1");
  conv_relu(2, 256, 5, 1, 2);
  x = graph.MaxPool(graph.Lrn(x, "LRN2"), 3, 2, 0, "POOL2");
  conv_relu(3, 384, 3, 1, kSamePadding);
  conv_relu(4, 384, 3, 1, kSamePadding);
  conv_relu(5, 256, 3, 1, kSamePadding);
  x = graph.MaxPool(x, 3, 2, 0, "POOL5");
  x = graph.Dropout(graph.Relu(graph.FullyConnected(x, 4096, "FC1"), "RELU6"), "Dropout1");
  x = graph.Dropout(graph.Relu(graph.FullyConnected(x, 4096, "FC2"), "RELU7"), "Dropout2");
  graph.Loss(graph.FullyConnected(x, 1000, "FC3"), "Softmax");
  return graph;
}

namespace {

struct VggTable {
  int depth;
  std::array<int, 5> convolutions;  // per stage
};
constexpr VggTable kVgg[] = {
    {11, {1, 1, 2, 2, 2}}, {13, {2, 2, 2, 2, 2}}, {16, {2, 2, 3, 3, 3}}, {19, {2, 2, 4, 4, 4}}};
constexpr std::array<int64_t, 5> kVggChannels = {64, 128, 256, 512, 512};

std::array<int, 5> VggStages(int depth) {
  for (const VggTable& table : kVgg) {
    if (table.depth == depth) return table.convolutions;
  }
  return kVgg[0].convolutions;
}

LayerId VggStage(LayerGraph& graph, LayerId x, int count, int64_t channels, bool cifar) {
  for (int i = 0; i < count; ++i) {
    x = graph.Conv(x, channels, 3, 1, kSamePadding, true);
    if (cifar) x = graph.BatchNorm(x);
    x = graph.Relu(x);
    if (cifar && i + 1 < count) x = graph.Dropout(x);
  }
  return graph.MaxPool(x, 2, 2);
}

}  // namespace

LayerGraph Vgg(int depth, int64_t batch_size, ImageSet images) {
  const bool cifar = images == ImageSet::kCifar10;
  LayerGraph graph(
      "vgg" + std::to_string(depth) + (cifar ? "_cifar" : "") + "_b" + std::to_string(batch_size),
      batch_size);
  const int64_t side = cifar ? 32 : 224;
  LayerId x = graph.Data({3, side, side});
  const std::array<int, 5> stages = VggStages(depth);
  for (size_t i = 0; i < stages.size(); ++i)
    x = VggStage(graph, x, stages[i], kVggChannels[i], cifar);
  if (cifar) {
    x = graph.Relu(graph.BatchNorm(graph.FullyConnected(graph.Dropout(x), 512)));
    x = graph.FullyConnected(graph.Dropout(x), 10);
  } else {
    for (int i = 0; i < 2; ++i) x = graph.Dropout(graph.Relu(graph.FullyConnected(x, 4096)));
    x = graph.FullyConnected(x, 1000);
  }
  graph.Loss(x);
  return graph;
}

int ResNetShape::depth() const {
  int blocks = 0;
  for (int count : blocks_per_stage) blocks += count;
  return 2 + (bottleneck ? 3 : 2) * blocks;
}

std::optional<ResNetShape> ResnetShape(int depth) {
  const std::vector<ResNetShape> published = {{{2, 2, 2, 2}, false},
                                              {{3, 4, 6, 3}, false},
                                              {{3, 4, 6, 3}, true},
                                              {{3, 4, 23, 3}, true},
                                              {{3, 8, 36, 3}, true}};
  for (const ResNetShape& shape : published) {
    if (shape.depth() == depth) return shape;
  }
  const int third_stage = (depth - 2) / 3 - (6 + 32 + 6);
  if ((depth - 2) % 3 != 0 || third_stage < 1) return std::nullopt;
  return ResNetShape{{6, 32, third_stage, 6}, true};
}

namespace {

LayerId BasicBlock(LayerGraph& graph, LayerId input, int64_t channels, int64_t stride) {
  const LayerId inner = graph.Relu(graph.BatchNorm(graph.Conv(input, channels, 3, stride)));
  return graph.BatchNorm(graph.Conv(inner, channels, 3));
}

LayerId BottleneckBlock(LayerGraph& graph, LayerId input, int64_t channels, int64_t stride,
                        bool stride_first) {
  LayerId x =
      graph.Relu(graph.BatchNorm(graph.Conv(input, channels, 1, stride_first ? stride : 1)));
  x = graph.Relu(graph.BatchNorm(graph.Conv(x, channels, 3, stride_first ? 1 : stride)));
  return graph.BatchNorm(graph.Conv(x, 4 * channels, 1));
}

const char* SuffixOf(ResNetVariant variant) {
  if (variant == ResNetVariant::kCifar10) return "_cifar";
  return variant == ResNetVariant::kSuperNeurons ? "_sn" : "";
}

}  // namespace

LayerGraph Resnet(const ResNetShape& shape, int64_t batch_size, ResNetVariant variant) {
  const bool cifar = variant == ResNetVariant::kCifar10,
             superneurons = variant == ResNetVariant::kSuperNeurons;
  LayerGraph graph("resnet" + std::to_string(shape.depth()) + SuffixOf(variant) + "_b" +
                       std::to_string(batch_size),
                   batch_size);
  const int64_t side = cifar ? 32 : superneurons ? 227 : 224;
  LayerId x =
      ConvNormRelu(graph, graph.Data({3, side, side}), cifar ? Conv{64, 3} : Conv{64, 7, 2});
  if (!cifar) x = graph.MaxPool(x, 3, 2, superneurons ? 0 : 1);
  for (size_t stage = 0; stage < shape.blocks_per_stage.size(); ++stage) {
    const int64_t channels = int64_t{64} << stage;
    const int64_t outputs = shape.bottleneck ? 4 * channels : channels;
    for (int block = 0; block < shape.blocks_per_stage[stage]; ++block) {
      const int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      const LayerId y = shape.bottleneck ? BottleneckBlock(graph, x, channels, stride, superneurons)
                                         : BasicBlock(graph, x, channels, stride);
      const bool same = graph.shape(x) == graph.shape(y);
      x = graph.Relu(graph.Add(y, same ? x : graph.BatchNorm(graph.Conv(x, outputs, 1, stride))));
    }
  }
  Head(graph, x, cifar ? 10 : 1000);
  return graph;
}

LayerGraph InceptionV4(int64_t batch_size) {
  LayerGraph g("inceptionv4_b" + std::to_string(batch_size), batch_size);
  const Kernel wide{1, 7}, tall{7, 1};
  LayerId x = Chain(g, g.Data({3, 299, 299}), {{32, 3, 2, 0}, {32, 3, 1, 0}, {64, 3}});
  {
    const LayerId pooled = g.MaxPool(x, 3, 2);
    x = g.Concat({pooled, Chain(g, x, {{96, 3, 2, 0}})});
  }
  {
    const LayerId plain = Chain(g, x, {{64, 1}, {96, 3, 1, 0}});
    x = g.Concat({plain, Chain(g, x, {{64, 1}, {64, tall}, {64, wide}, {96, 3, 1, 0}})});
  }
  {
    const LayerId strided = Chain(g, x, {{192, 3, 2, 0}});
    x = g.Concat({strided, g.MaxPool(x, 3, 2)});
  }
  for (int i = 0; i < 4; ++i) {  // block A
    const LayerId pooled = PooledConv(g, x, 96), one = Chain(g, x, {{96, 1}}),
                  three = Chain(g, x, {{64, 1}, {96, 3}});
    x = g.Concat({pooled, one, three, Chain(g, x, {{64, 1}, {96, 3}, {96, 3}})});
  }
  {  // reduction A
    const LayerId pooled = g.MaxPool(x, 3, 2), strided = Chain(g, x, {{384, 3, 2, 0}});
    x = g.Concat({pooled, strided, Chain(g, x, {{192, 1}, {224, 3}, {256, 3, 2, 0}})});
  }
  for (int i = 0; i < 7; ++i) {  // block B
    const LayerId pooled = PooledConv(g, x, 128), one = Chain(g, x, {{384, 1}});
    const LayerId seven = Chain(g, x, {{192, 1}, {224, wide}, {256, tall}});
    x = g.Concat({pooled, one, seven,
                  Chain(g, x, {{192, 1}, {192, wide}, {224, tall}, {224, wide}, {256, tall}})});
  }
  {  // reduction B
    const LayerId pooled = g.MaxPool(x, 3, 2), strided = Chain(g, x, {{192, 1}, {192, 3, 2, 0}});
    x = g.Concat(
        {pooled, strided, Chain(g, x, {{256, 1}, {256, wide}, {320, tall}, {320, 3, 2, 0}})});
  }
  for (int i = 0; i < 3; ++i) {  // block C
    const LayerId a = Chain(g, x, {{384, 1}}),
                  b = Chain(g, x, {{384, 1}, {448, {1, 3}}, {512, {3, 1}}});
    const LayerId pooled = PooledConv(g, x, 256), one = Chain(g, x, {{256, 1}});
    const LayerId a1 = Chain(g, a, {{256, {1, 3}}}), a2 = Chain(g, a, {{256, {3, 1}}});
    const LayerId b1 = Chain(g, b, {{256, {3, 1}}}), b2 = Chain(g, b, {{256, {1, 3}}});
    x = g.Concat({pooled, one, a1, a2, b1, b2});
  }
  g.Loss(g.FullyConnected(g.Dropout(g.GlobalAveragePool(x)), 1000));
  return g;
}

LayerGraph InceptionV3(int64_t batch_size) {
  LayerGraph g("inceptionv3_b" + std::to_string(batch_size), batch_size);
  const Kernel wide{1, 7}, tall{7, 1};
  LayerId x = Chain(g, g.Data({3, 299, 299}), {{32, 3, 2, 0}, {32, 3, 1, 0}, {64, 3}});
  x = Chain(g, g.MaxPool(x, 3, 2), {{80, 1}, {192, 3, 1, 0}});
  x = g.MaxPool(x, 3, 2);
  for (int64_t pool_channels : {32, 64, 64}) {
    const LayerId one = Chain(g, x, {{64, 1}}), five = Chain(g, x, {{48, 1}, {64, 5}});
    const LayerId three = Chain(g, x, {{64, 1}, {96, 3}, {96, 3}});
    x = g.Concat({one, five, three, PooledConv(g, x, pool_channels)});
  }
  {
    const LayerId strided = Chain(g, x, {{384, 3, 2, 0}}),
                  three = Chain(g, x, {{64, 1}, {96, 3}, {96, 3, 2, 0}});
    x = g.Concat({strided, three, g.MaxPool(x, 3, 2)});
  }
  for (int64_t c : {128, 160, 160, 192}) {
    const LayerId one = Chain(g, x, {{192, 1}}),
                  seven = Chain(g, x, {{c, 1}, {c, wide}, {192, tall}});
    const LayerId twice = Chain(g, x, {{c, 1}, {c, tall}, {c, wide}, {c, tall}, {192, wide}});
    x = g.Concat({one, seven, twice, PooledConv(g, x, 192)});
  }
  {
    const LayerId strided = Chain(g, x, {{192, 1}, {320, 3, 2, 0}});
    const LayerId seven = Chain(g, x, {{192, 1}, {192, wide}, {192, tall}, {192, 3, 2, 0}});
    x = g.Concat({strided, seven, g.MaxPool(x, 3, 2)});
  }
  for (int i = 0; i < 2; ++i) {
    const LayerId one = Chain(g, x, {{320, 1}}), a = Chain(g, x, {{384, 1}}),
                  b = Chain(g, x, {{448, 1}, {384, 3}});
    const LayerId a1 = Chain(g, a, {{384, {1, 3}}}), a2 = Chain(g, a, {{384, {3, 1}}});
    const LayerId b1 = Chain(g, b, {{384, {1, 3}}}), b2 = Chain(g, b, {{384, {3, 1}}});
    x = g.Concat({one, a1, a2, b1, b2, PooledConv(g, x, 192)});
  }
  g.Loss(g.FullyConnected(g.Dropout(g.GlobalAveragePool(x)), 1000));
  return g;
}

namespace {

struct DenseNetTable {
  int depth;
  int64_t growth;
  std::array<int, 4> layers;
};
constexpr DenseNetTable kDenseNet[] = {{121, 32, {6, 12, 24, 16}},
                                       {169, 32, {6, 12, 32, 32}},
                                       {201, 32, {6, 12, 48, 32}},
                                       {161, 48, {6, 12, 36, 24}}};

LayerGraph DensenetOf(const DenseNetTable& table, int64_t batch_size) {
  LayerGraph g("densenet" + std::to_string(table.depth) + "_b" + std::to_string(batch_size),
               batch_size);
  LayerId x = Chain(g, g.Data({3, 224, 224}), {{2 * table.growth, 7, 2}});
  x = g.MaxPool(x, 3, 2, 1);
  for (size_t stage = 0; stage < table.layers.size(); ++stage) {
    for (int i = 0; i < table.layers[stage]; ++i) {
      const LayerId wide = g.Conv(g.Relu(g.BatchNorm(x)), 4 * table.growth, 1);
      x = g.Concat({x, g.Conv(g.Relu(g.BatchNorm(wide)), table.growth, 3)});
    }
    if (stage == 3) break;
    x = g.AveragePool(g.Conv(g.Relu(g.BatchNorm(x)), g.shape(x)[0] / 2, 1), 2, 2);
  }
  Head(g, g.Relu(g.BatchNorm(x)), 1000);
  return g;
}

}  // namespace

std::optional<LayerGraph> Densenet(int depth, int64_t batch_size) {
  for (const DenseNetTable& table : kDenseNet) {
    if (table.depth == depth) return DensenetOf(table, batch_size);
  }
  return std::nullopt;
}

}  // namespace spillway::scheduler::networks
