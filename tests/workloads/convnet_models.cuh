// Convolutional networks as chains of layers, by name.
//
// Used by: convnet, on the main thread. VGG: Simonyan and Zisserman 2014, table 1, without dropout.
// ResNet: He et al. 2015, table 1 (stride on the 3x3 convolution, as in torchvision). ResNeXt: Xie
// et al. 2016, table 1 (32 groups of 4 channels). The others: branched_models.cuh. Inputs are
// squares of 3 channels.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "branched_models.cuh"
#include "common/layers.cuh"

namespace workloads {

struct ModelSpecification {
  enum class Family {
    kVgg,
    kBasicResnet,
    kBottleneckResnet,
    kResnext,
    kAlexnet,
    kGooglenet,
    kInceptionV4
  };
  Family family;
  std::vector<int> stages;  // convolutions (VGG) or blocks (ResNet) per stage

  // Of the images that it takes: the least side, and what a side is a multiple of.
  int least_side() const {
    if (family == Family::kAlexnet) return 67;
    return family == Family::kInceptionV4 ? 75 : 32;
  }
  int side_step() const { return least_side() == 32 ? 32 : 1; }
};

// Stages of resnet:A,B,C,... or of resnet:DEPTH. The depth is 3 * blocks + 2; the stages have 3, 4,
// n and 3 blocks, where the third takes the rest, as in ResNet-50 and -101 (n = 23).
inline std::vector<int> resnet_stages(const std::string& text) {
  std::vector<int> numbers;
  const char* at = text.c_str();
  for (;;) {
    char* end = nullptr;
    const long value = std::strtol(at, &end, 10);
    if (end == at || value < 1 || value > 100000 || (*end != ',' && *end != '\0')) return {};
    numbers.push_back(static_cast<int>(value));
    if (*end == '\0') break;
    at = end + 1;
  }
  if (numbers.size() == 4) return numbers;
  const int depth = numbers[0];
  if (numbers.size() != 1 || (depth - 2) % 3 != 0 || (depth - 2) / 3 <= 10) return {};
  return {3, 4, (depth - 2) / 3 - 10, 3};
}

inline ModelSpecification model_named(const std::string& name) {
  using Family = ModelSpecification::Family;
  const std::vector<std::pair<std::string, ModelSpecification>> models = {
      {"vgg11", {Family::kVgg, {1, 1, 2, 2, 2}}},
      {"vgg13", {Family::kVgg, {2, 2, 2, 2, 2}}},
      {"vgg16", {Family::kVgg, {2, 2, 3, 3, 3}}},
      {"vgg19", {Family::kVgg, {2, 2, 4, 4, 4}}},
      {"resnet18", {Family::kBasicResnet, {2, 2, 2, 2}}},
      {"resnet34", {Family::kBasicResnet, {3, 4, 6, 3}}},
      {"resnet50", {Family::kBottleneckResnet, {3, 4, 6, 3}}},
      {"resnet101", {Family::kBottleneckResnet, {3, 4, 23, 3}}},
      {"resnet152", {Family::kBottleneckResnet, {3, 8, 36, 3}}},
      {"resnext50", {Family::kResnext, {3, 4, 6, 3}}},
      {"alexnet", {Family::kAlexnet, {}}},
      {"googlenet", {Family::kGooglenet, {}}},
      {"inception_v4", {Family::kInceptionV4, {}}},
  };
  for (const auto& [known, specification] : models) {
    if (known == name) return specification;
  }
  if (name.rfind("resnet:", 0) == 0) {
    std::vector<int> stages = resnet_stages(name.substr(7));
    if (!stages.empty()) return {Family::kBottleneckResnet, std::move(stages)};
  }
  fail(2,
       "--model wants vgg11, vgg13, vgg16, vgg19, resnet18, resnet34, resnet50, resnet101, "
       "resnet152, resnext50, alexnet, googlenet, inception_v4, resnet:A,B,C,D or "
       "resnet:DEPTH with a depth of 35, 38, 41, ..., not '%s'",
       name.c_str());
}

class ModelBuilder {
 public:
  ModelBuilder(Device* device, int image_side, int classes)
      : device_(device), factory_(device), image_side_(image_side), classes_(classes) {}

  std::unique_ptr<Chain> build(const ModelSpecification& specification) {
    using Family = ModelSpecification::Family;
    MapChain images(device_, &factory_, {3, image_side_});
    switch (specification.family) {
      case Family::kVgg:
        return vgg(specification);
      case Family::kAlexnet:
        return alexnet(std::move(images), classes_);
      case Family::kGooglenet:
        return googlenet(std::move(images), classes_);
      case Family::kInceptionV4:
        return InceptionV4(std::move(images)).build(classes_);
      default:
        return resnet(specification);
    }
  }

 private:
  std::unique_ptr<Chain> vgg(const ModelSpecification& specification) {
    auto chain = std::make_unique<Chain>();
    int channels = 3;
    for (std::size_t stage = 0; stage < specification.stages.size(); ++stage) {
      const int width = std::min(512, 64 << stage);
      for (int i = 0; i < specification.stages[stage]; ++i) {
        chain->add<Convolution>(device_, &factory_,
                                Convolution::Options{channels, width, 3, 1, true, channels == 3});
        chain->add<Relu>(device_);
        channels = width;
      }
      chain->add<Pool>(device_, Pool::Kind::kMaximum, Pool::Window{2, 2, 0});
    }
    const int side = image_side_ / 32;
    chain->add<Linear>(device_, &factory_, channels * side * side, kVggHidden).add<Relu>(device_);
    chain->add<Linear>(device_, &factory_, kVggHidden, kVggHidden).add<Relu>(device_);
    chain->add<Linear>(device_, &factory_, kVggHidden, classes_);
    return chain;
  }

  std::unique_ptr<Chain> resnet(const ModelSpecification& specification) {
    using Family = ModelSpecification::Family;
    const Family family = specification.family;
    const int expansion = family == Family::kBasicResnet ? 1 : 4;
    auto chain = std::make_unique<Chain>();
    convolution(chain.get(), {3, 64, 7, 2, false, true});
    chain->add<Relu>(device_);
    chain->add<Pool>(device_, Pool::Kind::kMaximum, Pool::Window{3, 2, 1});
    int channels = 64;
    for (std::size_t stage = 0; stage < specification.stages.size(); ++stage) {
      const int width = 64 << stage;
      for (int i = 0; i < specification.stages[stage]; ++i) {
        const int stride = stage > 0 && i == 0 ? 2 : 1;
        add_block(chain.get(), family, {channels, width, width * expansion, stride});
        channels = width * expansion;
      }
    }
    const int side = image_side_ / 32;
    chain->add<Pool>(device_, Pool::Kind::kMean, Pool::Window{side, side, 0});
    chain->add<Linear>(device_, &factory_, channels, classes_);
    return chain;
  }

  struct Block {
    int channels, width, result, stride;
  };

  void add_block(Chain* chain, ModelSpecification::Family family, const Block& block) {
    using Family = ModelSpecification::Family;
    auto main = std::make_unique<Chain>();
    if (family == Family::kBasicResnet) {
      convolution(main.get(), {block.channels, block.width, 3, block.stride});
      main->add<Relu>(device_);
      convolution(main.get(), {block.width, block.width, 3, 1});
    } else {
      const bool is_grouped = family == Family::kResnext;
      const int width = is_grouped ? 2 * block.width : block.width;
      convolution(main.get(), {block.channels, width, 1, 1});
      main->add<Relu>(device_);
      Convolution::Options middle{width, width, 3, block.stride};
      middle.groups = is_grouped ? kResnextGroups : 1;
      convolution(main.get(), middle);
      main->add<Relu>(device_);
      convolution(main.get(), {width, block.result, 1, 1});
    }
    std::unique_ptr<Chain> shortcut;
    if (block.stride != 1 || block.channels != block.result) {
      shortcut = std::make_unique<Chain>();
      convolution(shortcut.get(), {block.channels, block.result, 1, block.stride});
    }
    chain->add<Residual>(device_, std::move(main), std::move(shortcut));
  }

  // Followed by batch norm.
  void convolution(Chain* chain, Convolution::Options options) {
    chain->add<Convolution>(device_, &factory_, options);
    chain->add<BatchNorm>(device_, &factory_, options.out_channels);
  }

  static constexpr int kVggHidden = 4096;
  static constexpr int kResnextGroups = 32;

  Device* const device_;
  ParameterFactory factory_;
  const int image_side_, classes_;
};

}  // namespace workloads
