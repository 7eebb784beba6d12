// convnet: trains a convolutional network of any batch and image size on synthetic images.
//
// Standard output: one line per step (loss with every bit) and the weights' checksum. It never
// depends on time, addresses or the amount of memory.
#include <cuda_runtime.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "common/classifier.cuh"
#include "common/device.cuh"
#include "common/feeder.cuh"
#include "common/sgd.cuh"
#include "common/step_timer.cuh"
#include "convnet_models.cuh"

namespace workloads {

inline constexpr int kChannels = 3;

struct ChannelScale {
  float mean[kChannels];
  float inverse_deviation[kChannels];
};

__constant__ ChannelScale channel_scale;

// [images, channels, pixels] from bytes to floats around zero.
__global__ void scale_images(const unsigned char* bytes, float* images, std::size_t count,
                             int pixels) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int channel = static_cast<int>(i / static_cast<std::size_t>(pixels) % kChannels);
  images[i] = (static_cast<float>(bytes[i]) - channel_scale.mean[channel]) *
              channel_scale.inverse_deviation[channel];
}

struct ConvnetOptions {
  DeviceOptions device;
  std::string model = "resnet50";
  ModelSpecification specification;
  int batch = 64;
  int image = 64;
  int classes = 1000;
  int steps = 3;
  std::string until;
  int images = 0;
  float learning_rate = 0.02f;
};

void check_image(const ConvnetOptions& options) {
  const int least = options.specification.least_side(), step = options.specification.side_step();
  if (options.image % step != 0)
    fail(2, "--image wants a multiple of %d, not '%d'", step, options.image);
  if (options.image < least)
    fail(2, "--image wants at least %d for %s, not '%d'", least, options.model.c_str(),
         options.image);
}

ConvnetOptions parse_convnet_options(int argc, char** argv) {
  ConvnetOptions options;
  Arguments arguments("Trains a convolutional network on synthetic images.");
  arguments.text("model", &options.model,
                 "vgg11|13|16|19, resnet18|34|50|101|152, resnet:A,B,C,D, resnet:DEPTH, resnext50, "
                 "alexnet, googlenet, inception_v4");
  arguments.integer("batch", &options.batch, 1, 8192, "images per step");
  arguments.integer(
      "image", &options.image, 32, 4096,
      "side of an image: a multiple of 32; of alexnet from 67 (its own: 227), of inception_v4 "
      "from 75 (299)");
  arguments.integer("classes", &options.classes, 2, 100000, "kinds of images");
  arguments.integer("steps", &options.steps, 1, 1000000, "training steps");
  arguments.text(
      "until", &options.until,
      "a file: where it exists, the step that has begun is the last, however many there should be");
  arguments.integer("images", &options.images, 0, 1 << 30,
                    "distinct images, 0 for a new one each time");
  arguments.rate("rate", &options.learning_rate, "learning rate");
  options.device.declare(&arguments);
  arguments.parse(argc, argv);
  options.specification = model_named(options.model);
  check_image(options);
  return options;
}

// Images of distinguishable classes: each class has its own coarse pattern, under noise.
class SyntheticImages {
 public:
  SyntheticImages(std::uint64_t seed, const ConvnetOptions& options)
      : seed_(seed), options_(options) {}

  std::size_t image_bytes() const {
    return std::size_t{kChannels} * options_.image * options_.image;
  }

  std::int32_t label(std::uint64_t sample) const {
    return static_cast<std::int32_t>(random_bits(seed_, kLabels, sample) %
                                     static_cast<std::uint64_t>(options_.classes));
  }

  void draw(std::uint64_t sample, unsigned char* image) const {
    const std::uint64_t pattern = static_cast<std::uint64_t>(label(sample));
    const int side = options_.image;
    for (int channel = 0; channel < kChannels; ++channel) {
      for (int y = 0; y < side; ++y) {
        for (int x = 0; x < side; ++x) {
          const int patch =
              (channel * kPatches + y * kPatches / side) * kPatches + x * kPatches / side;
          const std::uint64_t base =
              random_bits(seed_, kPatterns + pattern, static_cast<std::uint64_t>(patch)) % 192;
          const std::uint64_t place = static_cast<std::uint64_t>((channel * side + y) * side + x);
          *image++ =
              static_cast<unsigned char>(base + random_bits(seed_ ^ kNoise, sample, place) % 64);
        }
      }
    }
  }

 private:
  static constexpr int kPatches = 4;  // a pattern is 4 x 4 patches of even brightness per channel
  static constexpr std::uint64_t kLabels = std::uint64_t{1} << 33,
                                 kPatterns = std::uint64_t{1} << 34,
                                 kNoise = std::uint64_t{1} << 35;

  const std::uint64_t seed_;
  const ConvnetOptions options_;
};

class ConvnetTrainer {
 public:
  explicit ConvnetTrainer(const ConvnetOptions& options)
      : options_(options),
        data_(options.device.seed, options),
        device_(options.device),
        network_(
            ModelBuilder(&device_, options.image, options.classes).build(options.specification)),
        parameters_(collect()),
        optimiser_(&device_, parameters_, 0.9f, 1e-4f),
        classifier_(&device_),
        timer_(&device_),
        feeder_(&device_, static_cast<std::size_t>(options.batch) *
                              (data_.image_bytes() + sizeof(std::int32_t))) {
    const ChannelScale scale = {{127.0f, 127.0f, 127.0f},
                                {1.0f / 58.0f, 1.0f / 58.0f, 1.0f / 58.0f}};
    CHECK(cudaMemcpyToSymbolAsync(channel_scale, &scale, sizeof(scale), 0, cudaMemcpyHostToDevice,
                                  device_.compute_stream()));
    device_.synchronize();
  }

  void train() {
    stage(0);
    for (int step = 0; !is_over_; ++step) train_step(step);
    std::printf("checksum %016" PRIx64 "\n", weights_checksum(parameters_, device_));
    device_.report_peak();
  }

 private:
  Parameters collect() const {
    Parameters parameters;
    network_->collect(&parameters);
    return parameters;
  }

  // A batch in bytes: all images, then their labels.
  void stage(int step) {
    feeder_.stage([&](unsigned char* bytes) {
      auto* labels = reinterpret_cast<std::int32_t*>(bytes + data_.image_bytes() * options_.batch);
      for (int i = 0; i < options_.batch; ++i) {
        std::uint64_t sample = static_cast<std::uint64_t>(step) * options_.batch + i;
        if (options_.images > 0) sample %= static_cast<std::uint64_t>(options_.images);
        put_image(sample, bytes + data_.image_bytes() * i);
        labels[i] = data_.label(sample);
      }
    });
  }

  // With a fixed number of images, each is drawn once.
  void put_image(std::uint64_t sample, unsigned char* image) {
    if (options_.images == 0) return data_.draw(sample, image);
    if (sample >= drawn_.size()) drawn_.resize(sample + 1);
    std::vector<unsigned char>& kept = drawn_[sample];
    if (kept.empty()) {
      kept.resize(data_.image_bytes());
      data_.draw(sample, kept.data());
    }
    std::copy(kept.begin(), kept.end(), image);
  }

  Tensor images(const unsigned char* bytes) {
    Tensor scaled = transient_tensor(device_.memory(),
                                     {options_.batch, kChannels, options_.image, options_.image});
    scale_images<<<blocks_for(scaled.elements()), kThreads, 0, device_.compute_stream()>>>(
        bytes, scaled.data(), scaled.elements(), options_.image * options_.image);
    CHECK_LAUNCH("scale_images");
    return scaled;
  }

  void train_step(int step) {
    const unsigned char* bytes = feeder_.acquire();
    is_over_ = step + 1 == options_.steps || exists(options_.until);
    if (!is_over_) stage(step + 1);
    const auto* labels =
        reinterpret_cast<const std::int32_t*>(bytes + data_.image_bytes() * options_.batch);
    Tensor logits = network_->forward(images(bytes), Mode::kTrain);
    network_->backward(classifier_.train(std::move(logits), labels));
    feeder_.release();
    optimiser_.update(options_.learning_rate);
    device_.memory()->end_step();
    timer_.enqueued();
    classifier_.print_loss(step + 1);
    timer_.tell();
  }

  const ConvnetOptions options_;
  const SyntheticImages data_;
  std::vector<std::vector<unsigned char>> drawn_;
  Device device_;
  const std::unique_ptr<Chain> network_;
  const Parameters parameters_;
  Sgd optimiser_;
  Classifier classifier_;
  StepTimer timer_;
  BatchFeeder feeder_;
  bool is_over_ = false;  // true after the current step
};

}  // namespace workloads

int main(int argc, char** argv) {
  workloads::ConvnetTrainer trainer(workloads::parse_convnet_options(argc, argv));
  trainer.train();
  return 0;
}
