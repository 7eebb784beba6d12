// The trainer's networks have the layers of the modelled ones (scheduler/networks), or as many
// parameters as published.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "scheduler/networks/catalog.h"
#include "tests/integration/process.h"
#include "tests/support/paths.h"

namespace spillway::test {
namespace {

using namespace scheduler::networks;

struct LayerShape {
  int64_t channels = 0, height = 0, width = 0;                           // of its result
  int64_t outputs = 0, inputs = 0, kernel_height = 0, kernel_width = 0;  // of its weights
  auto operator<=>(const LayerShape&) const = default;
  int64_t weights() const { return outputs * inputs * kernel_height * kernel_width; }
};

void PrintTo(const LayerShape& layer, std::ostream* to) {
  *to << layer.channels << "x" << layer.height << "x" << layer.width << " by " << layer.outputs
      << "x" << layer.inputs << "x" << layer.kernel_height << "x" << layer.kernel_width;
}

// Convolutions and fully connected layers of convnet, as it meets them at the image's own size.
std::vector<LayerShape> TrainerLayers(const std::string& model, int image) {
  const Ended run =
      RunProgram({BuildPath("workloads/convnet"), "--model=" + model,
                  "--image=" + std::to_string(image), "--batch=1", "--steps=1", "--layers"},
                 {{"LD_LIBRARY_PATH", SimulatorFolder()}, {"SPILLWAY_SIM_COMPUTE", "tags"}});
  EXPECT_EQ(run.exit_code, 0) << run.standard_error;
  std::vector<LayerShape> layers;
  std::istringstream lines(run.standard_error);
  for (std::string line; std::getline(lines, line);) {
    LayerShape it;
    if (std::sscanf(line.c_str(), "layer %ldx%ldx%ld by %ldx%ldx%ldx%ld", &it.channels, &it.height,
                    &it.width, &it.outputs, &it.inputs, &it.kernel_height, &it.kernel_width) == 7)
      layers.push_back(it);
  }
  return layers;
}

std::vector<LayerShape> ModelledLayers(const std::string& network) {
  std::vector<LayerShape> layers;
  const LayerGraph graph = MakeNetwork(network, 1).value();
  for (const Layer& layer : graph.layers()) {
    if (layer.type == LayerType::kConv) {
      layers.push_back({layer.shape[0], layer.shape[1], layer.shape[2], layer.shape[0],
                        layer.input_channels, layer.kernel_height, layer.kernel_width});
    } else if (layer.type == LayerType::kFullyConnected) {
      const int64_t outputs = layer.shape[0];
      layers.push_back({outputs, 1, 1, outputs, layer.parameters / outputs - 1, 1, 1});
    }
  }
  return layers;
}

void ExpectSameLayers(std::vector<LayerShape> trainer, std::vector<LayerShape> modelled) {
  ASSERT_FALSE(trainer.empty());
  std::sort(trainer.begin(), trainer.end());
  std::sort(modelled.begin(), modelled.end());
  EXPECT_EQ(trainer, modelled);
}

int64_t Weights(const std::vector<LayerShape>& layers) {
  int64_t sum = 0;
  for (const LayerShape& layer : layers) sum += layer.weights();
  return sum;
}

int64_t Outputs(const std::vector<LayerShape>& layers) {
  int64_t sum = 0;
  for (const LayerShape& layer : layers) sum += layer.outputs;
  return sum;
}

TEST(NetworkLayersTest, AlexnetIsTheModelledOne) {
  ExpectSameLayers(TrainerLayers("alexnet", 227), ModelledLayers("alexnet"));
}

TEST(NetworkLayersTest, InceptionV4IsTheModelledOne) {
  ExpectSameLayers(TrainerLayers("inception_v4", 299), ModelledLayers("inceptionv4"));
}

// 6,998,552 as in Caffe's bvlc_googlenet without its auxiliary classifiers: each layer has a bias.
TEST(NetworkLayersTest, GooglenetHasAsManyParametersAsPublished) {
  const std::vector<LayerShape> layers = TrainerLayers("googlenet", 224);
  EXPECT_EQ(layers.size(), 58u);
  EXPECT_EQ(Weights(layers) + Outputs(layers), 6998552);
}

// 25,028,904 as in torchvision's resnext50_32x4d: batch norm has two per channel, and only the last
// layer has a bias.
TEST(NetworkLayersTest, Resnext50HasAsManyParametersAsPublished) {
  const std::vector<LayerShape> layers = TrainerLayers("resnext50", 224);
  ASSERT_FALSE(layers.empty());
  constexpr int64_t kClasses = 1000;
  EXPECT_EQ(Weights(layers) + 2 * (Outputs(layers) - kClasses) + kClasses, 25028904);
}

}  // namespace
}  // namespace spillway::test
