// digits_cnn: trains a small residual network on handwritten digits and prints its accuracy on
// unseen ones.
//
// Standard output: one line per step (loss with every bit), one per epoch, the test accuracy, the
// weights' checksum. It never depends on time, addresses or the amount of memory.
#include <cuda_runtime.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/classifier.cuh"
#include "common/device.cuh"
#include "common/feeder.cuh"
#include "common/layers.cuh"
#include "common/sgd.cuh"
#include "digits_data.h"

namespace workloads {

struct PixelScale {
  float mean;
  float inverse_deviation;
};

__constant__ PixelScale pixel_scale;

__global__ void scale_pixels(const unsigned char* pixels, float* images, std::size_t count) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count)
    images[i] = (static_cast<float>(pixels[i]) - pixel_scale.mean) * pixel_scale.inverse_deviation;
}

struct DigitsOptions {
  DeviceOptions device;
  std::string data = default_digits_path();
  int epochs = 12;
  int batch = 512;
  int blocks = 5;
  int width = 32;
  float learning_rate = 0.1f;
};

DigitsOptions parse_digits_options(int argc, char** argv) {
  DigitsOptions options;
  options.device.lifetime = Lifetime::kStep;
  Arguments arguments("Trains a residual network on 8x8 handwritten digits.");
  arguments.text("data", &options.data, "the digits as text, 64 pixels and a label a line");
  arguments.integer("epochs", &options.epochs, 1, 100000, "passes over the training images");
  arguments.integer("batch", &options.batch, 1, 1024, "images per step");
  arguments.integer("blocks", &options.blocks, 1, 1000, "residual blocks");
  arguments.integer("width", &options.width, 2, 4096, "channels between blocks");
  arguments.rate("rate", &options.learning_rate, "highest learning rate");
  options.device.declare(&arguments);
  arguments.parse(argc, argv);
  return options;
}

// 1x1 to half the width, 3x3, 1x1 back, around the identity.
std::unique_ptr<Chain> bottleneck(Device* device, ParameterFactory* factory, int width) {
  const int narrow = std::max(1, width / 2);
  auto chain = std::make_unique<Chain>();
  chain->add<Convolution>(device, factory, Convolution::Options{width, narrow, 1, 1});
  chain->add<BatchNorm>(device, factory, narrow).add<Relu>(device);
  chain->add<Convolution>(device, factory, Convolution::Options{narrow, narrow, 3, 1});
  chain->add<BatchNorm>(device, factory, narrow).add<Relu>(device);
  chain->add<Convolution>(device, factory, Convolution::Options{narrow, width, 1, 1});
  chain->add<BatchNorm>(device, factory, width);
  return chain;
}

std::unique_ptr<Chain> digits_network(Device* device, ParameterFactory* factory,
                                      const DigitsOptions& options) {
  auto network = std::make_unique<Chain>();
  network->add<Convolution>(device, factory,
                            Convolution::Options{1, options.width, 3, 1, false, true});
  network->add<BatchNorm>(device, factory, options.width).add<Relu>(device);
  for (int i = 0; i < options.blocks; ++i) {
    network->add<Residual>(device, bottleneck(device, factory, options.width), nullptr);
  }
  network->add<Pool>(device, Pool::Kind::kMaximum, Pool::Window{2, 2, 0});
  network->add<Convolution>(device, factory,
                            Convolution::Options{options.width, options.width, 3, 1});
  network->add<BatchNorm>(device, factory, options.width).add<Relu>(device);
  network->add<Linear>(device, factory, options.width * kDigitPixels / 4, kDigitClasses);
  return network;
}

class DigitsTrainer {
 public:
  explicit DigitsTrainer(const DigitsOptions& options)
      : options_(options),
        digits_(read_digits(options.data)),
        device_(options.device),
        factory_(&device_),
        network_(digits_network(&device_, &factory_, options)),
        parameters_(collect()),
        optimiser_(&device_, parameters_, 0.9f, 5e-4f),
        classifier_(&device_) {
    if (digits_.training.size() < static_cast<std::size_t>(options.batch)) {
      fail(2, "--batch=%d is more than the %zu training images", options.batch,
           digits_.training.size());
    }
    upload_pixel_scale();
  }

  void train() {
    BatchFeeder feeder(&device_, batch_bytes(options_.batch));
    const int steps_per_epoch = static_cast<int>(digits_.training.size()) / options_.batch;
    const int steps = steps_per_epoch * options_.epochs;
    stage(&feeder, 0, steps_per_epoch);
    double epoch_loss = 0.0;
    for (int step = 0; step < steps; ++step) {
      epoch_loss += train_step(&feeder, step, steps, steps_per_epoch);
      if ((step + 1) % steps_per_epoch != 0) continue;
      std::printf("epoch %d mean loss %.17g\n", step / steps_per_epoch + 1,
                  epoch_loss / steps_per_epoch);
      epoch_loss = 0.0;
    }
  }

  void test() {
    const int batch = static_cast<int>(std::min<std::size_t>(digits_.test.size(), 256));
    unsigned int right = 0;
    BatchFeeder feeder(&device_, batch_bytes(batch));
    for (std::size_t begin = 0; begin < digits_.test.size();
         begin += static_cast<std::size_t>(batch)) {
      const int rows =
          static_cast<int>(std::min(digits_.test.size() - begin, static_cast<std::size_t>(batch)));
      feeder.stage([&](unsigned char* bytes) {
        for (int i = 0; i < rows; ++i)
          pack(digits_.test[begin + static_cast<std::size_t>(i)], i, rows, bytes);
      });
      const unsigned char* bytes = feeder.acquire();
      right += classifier_.right_answers(network_->forward(images(bytes, rows), Mode::kEvaluate),
                                         labels(bytes, rows));
      feeder.release();
      device_.memory()->end_step();
    }
    std::printf("test accuracy %.4f (%u of %zu)\n",
                static_cast<double>(right) / static_cast<double>(digits_.test.size()), right,
                digits_.test.size());
  }

  void finish() {
    std::printf("checksum %016" PRIx64 "\n", weights_checksum(parameters_, device_));
    device_.report_peak();
  }

 private:
  // A batch in bytes: the pixels of all images, then their labels.
  static std::size_t batch_bytes(int rows) {
    return static_cast<std::size_t>(rows) * (kDigitPixels + sizeof(std::int32_t));
  }

  static void pack(const Digit& digit, int row, int rows, unsigned char* bytes) {
    std::copy(digit.pixels.begin(), digit.pixels.end(), bytes + row * kDigitPixels);
    reinterpret_cast<std::int32_t*>(bytes + rows * kDigitPixels)[row] = digit.label;
  }

  static const std::int32_t* labels(const unsigned char* bytes, int rows) {
    return reinterpret_cast<const std::int32_t*>(bytes + rows * kDigitPixels);
  }

  Parameters collect() const {
    Parameters parameters;
    network_->collect(&parameters);
    return parameters;
  }

  void upload_pixel_scale() {
    double sum = 0.0, squares = 0.0, count = 0.0;
    for (const Digit& digit : digits_.training) {
      for (const std::uint8_t pixel : digit.pixels) {
        sum += pixel;
        squares += static_cast<double>(pixel) * pixel;
        count += 1.0;
      }
    }
    const double mean = sum / count;
    const PixelScale scale = {static_cast<float>(mean),
                              static_cast<float>(1.0 / std::sqrt(squares / count - mean * mean))};
    CHECK(cudaMemcpyToSymbolAsync(pixel_scale, &scale, sizeof(scale), 0, cudaMemcpyHostToDevice,
                                  device_.compute_stream()));
    device_.synchronize();
  }

  Tensor images(const unsigned char* bytes, int rows) {
    Tensor scaled = transient_tensor(device_.memory(), {rows, 1, kDigitSide, kDigitSide});
    scale_pixels<<<blocks_for(scaled.elements()), kThreads, 0, device_.compute_stream()>>>(
        bytes, scaled.data(), scaled.elements());
    CHECK_LAUNCH("scale_pixels");
    return scaled;
  }

  // A new order of the training images in each epoch, from the seed.
  void shuffle(int epoch) {
    order_.resize(digits_.training.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    for (std::size_t i = order_.size() - 1; i > 0; --i) {
      const std::uint64_t bits =
          random_bits(device_.seed(), kShuffleStream + static_cast<std::uint64_t>(epoch), i);
      std::swap(order_[i], order_[bits % (i + 1)]);
    }
  }

  void stage(BatchFeeder* feeder, int step, int steps_per_epoch) {
    if (step % steps_per_epoch == 0) shuffle(step / steps_per_epoch);
    const std::size_t begin =
        static_cast<std::size_t>(step % steps_per_epoch) * static_cast<std::size_t>(options_.batch);
    feeder->stage([&](unsigned char* bytes) {
      for (int i = 0; i < options_.batch; ++i) {
        pack(digits_.training[order_[begin + static_cast<std::size_t>(i)]], i, options_.batch,
             bytes);
      }
    });
  }

  float train_step(BatchFeeder* feeder, int step, int steps, int steps_per_epoch) {
    const unsigned char* bytes = feeder->acquire();
    if (step + 1 < steps) stage(feeder, step + 1, steps_per_epoch);
    Tensor logits = network_->forward(images(bytes, options_.batch), Mode::kTrain);
    network_->backward(classifier_.train(std::move(logits), labels(bytes, options_.batch)));
    feeder->release();
    optimiser_.update(learning_rate(step, steps));
    device_.memory()->end_step();
    return classifier_.print_loss(step + 1);
  }

  // Rises over the first eighth of the steps, then falls linearly to zero.
  float learning_rate(int step, int steps) const {
    const int warm_up = std::max(1, steps / 8);
    const float share =
        step < warm_up ? static_cast<float>(step + 1) / static_cast<float>(warm_up)
                       : static_cast<float>(steps - step) / static_cast<float>(steps - warm_up);
    return options_.learning_rate * share;
  }

  static constexpr std::uint64_t kShuffleStream = std::uint64_t{1} << 32;

  const DigitsOptions options_;
  const DigitSets digits_;
  Device device_;
  ParameterFactory factory_;
  const std::unique_ptr<Chain> network_;
  const Parameters parameters_;
  Sgd optimiser_;
  Classifier classifier_;
  std::vector<std::size_t> order_;
};

}  // namespace workloads

int main(int argc, char** argv) {
  workloads::DigitsTrainer trainer(workloads::parse_digits_options(argc, argv));
  trainer.train();
  trainer.test();
  trainer.finish();
  return 0;
}
