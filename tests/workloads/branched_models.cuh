// AlexNet, GoogLeNet and Inception-v4 as chains of layers.
//
// Used by: ModelBuilder (convnet_models.cuh), on the main thread.
// AlexNet: Krizhevsky et al. 2012 in one tower, so no convolution is grouped. GoogLeNet: Szegedy et
// al. 2014, table 1, without the two auxiliary classifiers. Inception-v4: Szegedy et al. 2016,
// figures 3 to 9. AlexNet and Inception-v4 have the layers of scheduler/networks; layers_test.cpp
// compares them. Parts begin in the order in which they are built, so branches are built before
// join() takes them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "map_chain.cuh"

namespace workloads {

inline std::unique_ptr<Chain> alexnet(MapChain x, int classes) {
  x.conv_relu(96, 11, 4, 0).lrn().max_pool(3, 2);
  x.conv_relu(256, 5).lrn().max_pool(3, 2);
  x.conv_relu(384, 3).conv_relu(384, 3).conv_relu(256, 3).max_pool(3, 2);
  x.linear_relu(4096).dropout(0.5f).linear_relu(4096).dropout(0.5f).linear(classes);
  return x.layers();
}

template <typename... Branch>
void join(MapChain* x, Branch... branches) {
  std::vector<MapChain> all;
  (all.push_back(std::move(branches)), ...);
  x->join(std::move(all));
}

struct GooglenetModule {
  int one, three_before, three, five_before, five, pooled;
};

inline void add_module(MapChain* x, const GooglenetModule& widths) {
  MapChain one = x->branch(), three = x->branch(), five = x->branch(), pooled = x->branch();
  one.conv_relu(widths.one, 1);
  three.conv_relu(widths.three_before, 1).conv_relu(widths.three, 3);
  five.conv_relu(widths.five_before, 1).conv_relu(widths.five, 5);
  pooled.max_pool(3, 1, 1).conv_relu(widths.pooled, 1);
  join(x, std::move(one), std::move(three), std::move(five), std::move(pooled));
}

inline std::unique_ptr<Chain> googlenet(MapChain x, int classes) {
  x.conv_relu(64, 7, 2).max_pool(3, 2, 1).lrn();
  x.conv_relu(64, 1).conv_relu(192, 3).lrn().max_pool(3, 2, 1);
  add_module(&x, {64, 96, 128, 16, 32, 32});
  add_module(&x, {128, 128, 192, 32, 96, 64});
  x.max_pool(3, 2, 1);
  add_module(&x, {192, 96, 208, 16, 48, 64});
  add_module(&x, {160, 112, 224, 24, 64, 64});
  add_module(&x, {128, 128, 256, 24, 64, 64});
  add_module(&x, {112, 144, 288, 32, 64, 64});
  add_module(&x, {256, 160, 320, 32, 128, 128});
  x.max_pool(3, 2, 1);
  add_module(&x, {256, 160, 320, 32, 128, 128});
  add_module(&x, {384, 192, 384, 48, 128, 128});
  x.mean_of_maps().dropout(0.4f).linear(classes);
  return x.layers();
}

class InceptionV4 {
 public:
  explicit InceptionV4(MapChain images) : x_(std::move(images)) {}

  std::unique_ptr<Chain> build(int classes) {
    stem();
    for (int i = 0; i < 4; ++i) block_a();
    reduction_a();
    for (int i = 0; i < 7; ++i) block_b();
    reduction_b();
    for (int i = 0; i < 3; ++i) block_c();
    x_.mean_of_maps().dropout(0.2f).linear(classes);
    return x_.layers();
  }

 private:
  using Kernel = MapChain::Kernel;

  struct Conv {
    int channels;
    Kernel kernel;
    int stride = 1;
    int padding = MapChain::kSame;
  };

  static void add(MapChain* chain, const std::vector<Conv>& convolutions) {
    for (const Conv& each : convolutions)
      chain->conv_norm_relu(each.channels, each.kernel, each.stride, each.padding);
  }

  MapChain branch(const std::vector<Conv>& convolutions) const {
    MapChain chain = x_.branch();
    add(&chain, convolutions);
    return chain;
  }

  MapChain pooled_branch(int channels) const {
    MapChain chain = x_.branch();
    chain.mean_pool(3, 1, 1).conv_norm_relu(channels, 1);
    return chain;
  }

  MapChain halved() const {
    MapChain chain = x_.branch();
    chain.max_pool(3, 2);
    return chain;
  }

  void stem() {
    add(&x_, {{32, 3, 2, 0}, {32, 3, 1, 0}, {64, 3}});
    MapChain pooled = halved(), strided = branch({{96, 3, 2, 0}});
    join(&x_, std::move(pooled), std::move(strided));
    MapChain plain = branch({{64, 1}, {96, 3, 1, 0}}),
             seven = branch({{64, 1}, {64, kTall}, {64, kWide}, {96, 3, 1, 0}});
    join(&x_, std::move(plain), std::move(seven));
    MapChain last = branch({{192, 3, 2, 0}}), last_pooled = halved();
    join(&x_, std::move(last), std::move(last_pooled));
  }

  void block_a() {
    MapChain pooled = pooled_branch(96), one = branch({{96, 1}}),
             three = branch({{64, 1}, {96, 3}}), twice = branch({{64, 1}, {96, 3}, {96, 3}});
    join(&x_, std::move(pooled), std::move(one), std::move(three), std::move(twice));
  }

  void reduction_a() {
    MapChain pooled = halved(), strided = branch({{384, 3, 2, 0}}),
             three = branch({{192, 1}, {224, 3}, {256, 3, 2, 0}});
    join(&x_, std::move(pooled), std::move(strided), std::move(three));
  }

  void block_b() {
    MapChain pooled = pooled_branch(128), one = branch({{384, 1}}),
             seven = branch({{192, 1}, {224, kWide}, {256, kTall}}),
             twice = branch({{192, 1}, {192, kWide}, {224, kTall}, {224, kWide}, {256, kTall}});
    join(&x_, std::move(pooled), std::move(one), std::move(seven), std::move(twice));
  }

  void reduction_b() {
    MapChain pooled = halved(), strided = branch({{192, 1}, {192, 3, 2, 0}}),
             seven = branch({{256, 1}, {256, kWide}, {320, kTall}, {320, 3, 2, 0}});
    join(&x_, std::move(pooled), std::move(strided), std::move(seven));
  }

  // Two of its branches end in two.
  void block_c() {
    MapChain pooled = pooled_branch(256), one = branch({{256, 1}}), a = branch({{384, 1}}),
             b = branch({{384, 1}, {448, {1, 3}}, {512, {3, 1}}});
    fork(&a, {256, {1, 3}}, {256, {3, 1}});
    fork(&b, {256, {3, 1}}, {256, {1, 3}});
    join(&x_, std::move(pooled), std::move(one), std::move(a), std::move(b));
  }

  static void fork(MapChain* chain, const Conv& first, const Conv& second) {
    MapChain one = chain->branch(), other = chain->branch();
    add(&one, {first});
    add(&other, {second});
    join(chain, std::move(one), std::move(other));
  }

  const Kernel kWide{1, 7}, kTall{7, 1};

  MapChain x_;
};

}  // namespace workloads
