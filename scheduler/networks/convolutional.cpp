#include <array>
#include <initializer_list>

#include "scheduler/networks/catalog.h"

namespace spillway::scheduler::networks {
namespace {

// A convolution as the tables of the papers write it.
struct Conv {
  int64_t channels;
  Kernel kernel;
  int64_t stride = 1;
  int64_t padding = kSamePadding;
};

LayerId conv_norm_relu(LayerGraph& graph, LayerId input, const Conv& conv) {
  return graph.relu(
      graph.batch_norm(graph.conv(input, conv.channels, conv.kernel, conv.stride, conv.padding)));
}

LayerId chain(LayerGraph& graph, LayerId input, std::initializer_list<Conv> convs) {
  for (const Conv& conv : convs) input = conv_norm_relu(graph, input, conv);
  return input;
}

LayerId pooled_conv(LayerGraph& graph, LayerId input, int64_t channels) {
  return chain(graph, graph.average_pool(input, 3, 1, 1), {{channels, 1}});
}

LayerId head(LayerGraph& graph, LayerId features, int64_t classes) {
  return graph.loss(graph.fully_connected(graph.global_average_pool(features), classes));
}

}  // namespace

LayerGraph alexnet(int64_t batch_size) {
  LayerGraph graph("alexnet_b" + std::to_string(batch_size), batch_size);
  LayerId x = graph.data({3, 227, 227});
  const auto conv_relu = [&](int number, int64_t channels, int64_t kernel, int64_t stride, int64_t padding) {
    const std::string n = std::to_string(number);
    x = graph.relu(graph.conv(x, channels, kernel, stride, padding, true, "CONV" + n), "RELU" + n);
  };
  conv_relu(1, 96, 11, 4, 0);
  x = graph.max_pool(graph.lrn(x, "LRN1"), 3, 2, 0, "POOL1");
  conv_relu(2, 256, 5, 1, 2);
  x = graph.max_pool(graph.lrn(x, "LRN2"), 3, 2, 0, "POOL2");
  conv_relu(3, 384, 3, 1, kSamePadding);
  conv_relu(4, 384, 3, 1, kSamePadding);
  conv_relu(5, 256, 3, 1, kSamePadding);
  x = graph.max_pool(x, 3, 2, 0, "POOL5");
  x = graph.dropout(graph.relu(graph.fully_connected(x, 4096, "FC1"), "RELU6"), "Dropout1");
  x = graph.dropout(graph.relu(graph.fully_connected(x, 4096, "FC2"), "RELU7"), "Dropout2");
  graph.loss(graph.fully_connected(x, 1000, "FC3"), "Softmax");
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

std::array<int, 5> vgg_stages(int depth) {
  for (const VggTable& table : kVgg) {
    if (table.depth == depth) return table.convolutions;
  }
  return kVgg[0].convolutions;
}

LayerId vgg_stage(LayerGraph& graph, LayerId x, int count, int64_t channels, bool cifar) {
  for (int i = 0; i < count; ++i) {
    x = graph.conv(x, channels, 3, 1, kSamePadding, true);
    if (cifar) x = graph.batch_norm(x);
    x = graph.relu(x);
    if (cifar && i + 1 < count) x = graph.dropout(x);
  }
  return graph.max_pool(x, 2, 2);
}

}  // namespace

LayerGraph vgg(int depth, int64_t batch_size, ImageSet images) {
  const bool cifar = images == ImageSet::kCifar10;
  LayerGraph graph(
      "vgg" + std::to_string(depth) + (cifar ? "_cifar" : "") + "_b" + std::to_string(batch_size),
      batch_size);
  const int64_t side = cifar ? 32 : 224;
  LayerId x = graph.data({3, side, side});
  const std::array<int, 5> stages = vgg_stages(depth);
  for (size_t i = 0; i < stages.size(); ++i) x = vgg_stage(graph, x, stages[i], kVggChannels[i], cifar);
  if (cifar) {
    x = graph.relu(graph.batch_norm(graph.fully_connected(graph.dropout(x), 512)));
    x = graph.fully_connected(graph.dropout(x), 10);
  } else {
    for (int i = 0; i < 2; ++i) x = graph.dropout(graph.relu(graph.fully_connected(x, 4096)));
    x = graph.fully_connected(x, 1000);
  }
  graph.loss(x);
  return graph;
}

int ResNetShape::depth() const {
  int blocks = 0;
  for (int count : blocks_per_stage) blocks += count;
  return 2 + (bottleneck ? 3 : 2) * blocks;
}

std::optional<ResNetShape> resnet_shape(int depth) {
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

LayerId basic_block(LayerGraph& graph, LayerId input, int64_t channels, int64_t stride) {
  const LayerId inner = graph.relu(graph.batch_norm(graph.conv(input, channels, 3, stride)));
  return graph.batch_norm(graph.conv(inner, channels, 3));
}

LayerId bottleneck_block(LayerGraph& graph, LayerId input, int64_t channels, int64_t stride,
                         bool stride_first) {
  LayerId x = graph.relu(graph.batch_norm(graph.conv(input, channels, 1, stride_first ? stride : 1)));
  x = graph.relu(graph.batch_norm(graph.conv(x, channels, 3, stride_first ? 1 : stride)));
  return graph.batch_norm(graph.conv(x, 4 * channels, 1));
}

const char* suffix_of(ResNetVariant variant) {
  if (variant == ResNetVariant::kCifar10) return "_cifar";
  return variant == ResNetVariant::kSuperNeurons ? "_sn" : "";
}

}  // namespace

LayerGraph resnet(const ResNetShape& shape, int64_t batch_size, ResNetVariant variant) {
  const bool cifar = variant == ResNetVariant::kCifar10,
             superneurons = variant == ResNetVariant::kSuperNeurons;
  LayerGraph graph(
      "resnet" + std::to_string(shape.depth()) + suffix_of(variant) + "_b" + std::to_string(batch_size),
      batch_size);
  const int64_t side = cifar ? 32 : superneurons ? 227 : 224;
  LayerId x = conv_norm_relu(graph, graph.data({3, side, side}), cifar ? Conv{64, 3} : Conv{64, 7, 2});
  if (!cifar) x = graph.max_pool(x, 3, 2, superneurons ? 0 : 1);
  for (size_t stage = 0; stage < shape.blocks_per_stage.size(); ++stage) {
    const int64_t channels = int64_t{64} << stage;
    const int64_t outputs = shape.bottleneck ? 4 * channels : channels;
    for (int block = 0; block < shape.blocks_per_stage[stage]; ++block) {
      const int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      const LayerId y = shape.bottleneck ? bottleneck_block(graph, x, channels, stride, superneurons)
                                         : basic_block(graph, x, channels, stride);
      const bool same = graph.shape(x) == graph.shape(y);
      x = graph.relu(graph.add(y, same ? x : graph.batch_norm(graph.conv(x, outputs, 1, stride))));
    }
  }
  head(graph, x, cifar ? 10 : 1000);
  return graph;
}

LayerGraph inception_v4(int64_t batch_size) {
  LayerGraph g("inceptionv4_b" + std::to_string(batch_size), batch_size);
  const Kernel wide{1, 7}, tall{7, 1};
  LayerId x = chain(g, g.data({3, 299, 299}), {{32, 3, 2, 0}, {32, 3, 1, 0}, {64, 3}});
  {
    const LayerId pooled = g.max_pool(x, 3, 2);
    x = g.concat({pooled, chain(g, x, {{96, 3, 2, 0}})});
  }
  {
    const LayerId plain = chain(g, x, {{64, 1}, {96, 3, 1, 0}});
    x = g.concat({plain, chain(g, x, {{64, 1}, {64, tall}, {64, wide}, {96, 3, 1, 0}})});
  }
  {
    const LayerId strided = chain(g, x, {{192, 3, 2, 0}});
    x = g.concat({strided, g.max_pool(x, 3, 2)});
  }
  for (int i = 0; i < 4; ++i) {  // block A
    const LayerId pooled = pooled_conv(g, x, 96), one = chain(g, x, {{96, 1}}),
                  three = chain(g, x, {{64, 1}, {96, 3}});
    x = g.concat({pooled, one, three, chain(g, x, {{64, 1}, {96, 3}, {96, 3}})});
  }
  {  // reduction A
    const LayerId pooled = g.max_pool(x, 3, 2), strided = chain(g, x, {{384, 3, 2, 0}});
    x = g.concat({pooled, strided, chain(g, x, {{192, 1}, {224, 3}, {256, 3, 2, 0}})});
  }
  for (int i = 0; i < 7; ++i) {  // block B
    const LayerId pooled = pooled_conv(g, x, 128), one = chain(g, x, {{384, 1}});
    const LayerId seven = chain(g, x, {{192, 1}, {224, wide}, {256, tall}});
    x = g.concat(
        {pooled, one, seven, chain(g, x, {{192, 1}, {192, wide}, {224, tall}, {224, wide}, {256, tall}})});
  }
  {  // reduction B
    const LayerId pooled = g.max_pool(x, 3, 2), strided = chain(g, x, {{192, 1}, {192, 3, 2, 0}});
    x = g.concat({pooled, strided, chain(g, x, {{256, 1}, {256, wide}, {320, tall}, {320, 3, 2, 0}})});
  }
  for (int i = 0; i < 3; ++i) {  // block C
    const LayerId a = chain(g, x, {{384, 1}}), b = chain(g, x, {{384, 1}, {448, {1, 3}}, {512, {3, 1}}});
    const LayerId pooled = pooled_conv(g, x, 256), one = chain(g, x, {{256, 1}});
    const LayerId a1 = chain(g, a, {{256, {1, 3}}}), a2 = chain(g, a, {{256, {3, 1}}});
    const LayerId b1 = chain(g, b, {{256, {3, 1}}}), b2 = chain(g, b, {{256, {1, 3}}});
    x = g.concat({pooled, one, a1, a2, b1, b2});
  }
  g.loss(g.fully_connected(g.dropout(g.global_average_pool(x)), 1000));
  return g;
}

LayerGraph inception_v3(int64_t batch_size) {
  LayerGraph g("inceptionv3_b" + std::to_string(batch_size), batch_size);
  const Kernel wide{1, 7}, tall{7, 1};
  LayerId x = chain(g, g.data({3, 299, 299}), {{32, 3, 2, 0}, {32, 3, 1, 0}, {64, 3}});
  x = chain(g, g.max_pool(x, 3, 2), {{80, 1}, {192, 3, 1, 0}});
  x = g.max_pool(x, 3, 2);
  for (int64_t pool_channels : {32, 64, 64}) {
    const LayerId one = chain(g, x, {{64, 1}}), five = chain(g, x, {{48, 1}, {64, 5}});
    const LayerId three = chain(g, x, {{64, 1}, {96, 3}, {96, 3}});
    x = g.concat({one, five, three, pooled_conv(g, x, pool_channels)});
  }
  {
    const LayerId strided = chain(g, x, {{384, 3, 2, 0}}),
                  three = chain(g, x, {{64, 1}, {96, 3}, {96, 3, 2, 0}});
    x = g.concat({strided, three, g.max_pool(x, 3, 2)});
  }
  for (int64_t c : {128, 160, 160, 192}) {
    const LayerId one = chain(g, x, {{192, 1}}), seven = chain(g, x, {{c, 1}, {c, wide}, {192, tall}});
    const LayerId twice = chain(g, x, {{c, 1}, {c, tall}, {c, wide}, {c, tall}, {192, wide}});
    x = g.concat({one, seven, twice, pooled_conv(g, x, 192)});
  }
  {
    const LayerId strided = chain(g, x, {{192, 1}, {320, 3, 2, 0}});
    const LayerId seven = chain(g, x, {{192, 1}, {192, wide}, {192, tall}, {192, 3, 2, 0}});
    x = g.concat({strided, seven, g.max_pool(x, 3, 2)});
  }
  for (int i = 0; i < 2; ++i) {
    const LayerId one = chain(g, x, {{320, 1}}), a = chain(g, x, {{384, 1}}),
                  b = chain(g, x, {{448, 1}, {384, 3}});
    const LayerId a1 = chain(g, a, {{384, {1, 3}}}), a2 = chain(g, a, {{384, {3, 1}}});
    const LayerId b1 = chain(g, b, {{384, {1, 3}}}), b2 = chain(g, b, {{384, {3, 1}}});
    x = g.concat({one, a1, a2, b1, b2, pooled_conv(g, x, 192)});
  }
  g.loss(g.fully_connected(g.dropout(g.global_average_pool(x)), 1000));
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

LayerGraph densenet_of(const DenseNetTable& table, int64_t batch_size) {
  LayerGraph g("densenet" + std::to_string(table.depth) + "_b" + std::to_string(batch_size), batch_size);
  LayerId x = chain(g, g.data({3, 224, 224}), {{2 * table.growth, 7, 2}});
  x = g.max_pool(x, 3, 2, 1);
  for (size_t stage = 0; stage < table.layers.size(); ++stage) {
    for (int i = 0; i < table.layers[stage]; ++i) {
      const LayerId wide = g.conv(g.relu(g.batch_norm(x)), 4 * table.growth, 1);
      x = g.concat({x, g.conv(g.relu(g.batch_norm(wide)), table.growth, 3)});
    }
    if (stage == 3) break;
    x = g.average_pool(g.conv(g.relu(g.batch_norm(x)), g.shape(x)[0] / 2, 1), 2, 2);
  }
  head(g, g.relu(g.batch_norm(x)), 1000);
  return g;
}

}  // namespace

std::optional<LayerGraph> densenet(int depth, int64_t batch_size) {
  for (const DenseNetTable& table : kDenseNet) {
    if (table.depth == depth) return densenet_of(table, batch_size);
  }
  return std::nullopt;
}

}  // namespace spillway::scheduler::networks
