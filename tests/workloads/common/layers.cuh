// The layers of a convolutional network over cuDNN, each with its backward pass.
//
// Used by: digits_cnn and convnet, on the main thread.
// Ownership: a layer owns its parameters. Between forward and backward of a training step it shares
// the tensors that its backward pass reads; backward releases them.
//
// Invariants
//
// 1. forward makes a new tensor for its result (no layer works in place), backward one for the
//    input's gradient.
// 2. In Mode::kEvaluate nothing is kept, and running statistics are used but not changed.
// 3. Only algorithms that cuDNN calls deterministic are used, chosen by shape and a fixed workspace
//    limit.
#pragma once

#include <memory>
#include <utility>

#include "convolution.cuh"
#include "layer.h"
#include "linear.cuh"
#include "parameters.cuh"

namespace workloads {

class Convolution final : public Layer {
 public:
  struct Options {
    int in_channels, out_channels, kernel, stride;
    bool bias = false;
    bool first = false;         // the input is data: its gradient is not needed
    int kernel_width = 0;       // 0: as high as it is wide
    int padding = kHalfKernel;  // on each side of each dimension
    int groups = 1;
  };
  static constexpr int kHalfKernel = -1;

  Convolution(Device* device, ParameterFactory* factory, Options options)
      : device_(device),
        options_(options),
        plan_(device, geometry(options)),
        filter_(factory->uniform(filter_shape(options), fan_in(filter_shape(options)), 2.0f)) {
    if (options.bias) bias_ = factory->constant({1, options.out_channels}, 0.0f);
  }

  Tensor forward(const Tensor& x, Mode mode) override {
    plan_.prepare(x.shape, filter_.value.shape);
    Tensor y = transient_tensor(device_->memory(), plan_.output_shape());
    plan_.forward(x, filter_.value, y);
    if (options_.bias) plan_.add_bias(bias_.value, y);
    if (mode == Mode::kTrain) x_ = x;
    return y;
  }

  Tensor backward(Tensor dy) override {
    if (options_.bias) {
      bias_.gradient = transient_tensor(device_->memory(), bias_.value.shape);
      plan_.bias_gradient(dy, bias_.gradient);
    }
    filter_.gradient = transient_tensor(device_->memory(), filter_.value.shape);
    plan_.filter_gradient(x_, dy, filter_.gradient);
    const Shape x_shape = x_.shape;
    x_.reset();
    if (options_.first) return {};
    Tensor dx = transient_tensor(device_->memory(), x_shape);
    plan_.input_gradient(filter_.value, dy, dx);
    return dx;
  }

  void collect(Parameters* parameters) override {
    parameters->push_back(&filter_);
    if (options_.bias) parameters->push_back(&bias_);
  }

 private:
  static int width_of_kernel(const Options& options) {
    return options.kernel_width > 0 ? options.kernel_width : options.kernel;
  }
  static Shape filter_shape(const Options& options) {
    return {options.out_channels, options.in_channels / options.groups, options.kernel,
            width_of_kernel(options)};
  }
  static int fan_in(Shape filter) { return filter.c * filter.h * filter.w; }
  static ConvolutionPlan::Geometry geometry(const Options& options) {
    const auto padding = [&](int kernel) {
      return options.padding == kHalfKernel ? (kernel - 1) / 2 : options.padding;
    };
    return {padding(options.kernel), padding(width_of_kernel(options)), options.stride,
            options.groups};
  }

  Device* const device_;
  const Options options_;
  ConvolutionPlan plan_;
  Parameter filter_, bias_;
  Tensor x_;
};

class BatchNorm final : public Layer {
 public:
  BatchNorm(Device* device, ParameterFactory* factory, int channels)
      : device_(device),
        scale_(factory->constant({1, channels}, 1.0f)),
        shift_(factory->constant({1, channels}, 0.0f)),
        running_mean_(factory->constant({1, channels}, 0.0f, false)),
        running_variance_(factory->constant({1, channels}, 1.0f, false)) {}

  Tensor forward(const Tensor& x, Mode mode) override {
    Tensor y = transient_tensor(device_->memory(), x.shape);
    const TensorDescriptor data(x.shape), channels(scale_.value.shape);
    const float one = 1.0f, zero = 0.0f;
    if (mode == Mode::kEvaluate) {
      CHECK(cudnnBatchNormalizationForwardInference(
          device_->cudnn(), kPerChannel, &one, &zero, data, x.data(), data, y.data(), channels,
          scale_.value.data(), shift_.value.data(), running_mean_.value.data(),
          running_variance_.value.data(), kEpsilon));
      return y;
    }
    mean_ = transient_tensor(device_->memory(), scale_.value.shape);
    inverse_deviation_ = transient_tensor(device_->memory(), scale_.value.shape);
    CHECK(cudnnBatchNormalizationForwardTraining(
        device_->cudnn(), kPerChannel, &one, &zero, data, x.data(), data, y.data(), channels,
        scale_.value.data(), shift_.value.data(), kMomentum, running_mean_.value.data(),
        running_variance_.value.data(), kEpsilon, mean_.data(), inverse_deviation_.data()));
    x_ = x;
    return y;
  }

  Tensor backward(Tensor dy) override {
    Tensor dx = transient_tensor(device_->memory(), dy.shape);
    scale_.gradient = transient_tensor(device_->memory(), scale_.value.shape);
    shift_.gradient = transient_tensor(device_->memory(), shift_.value.shape);
    const TensorDescriptor data(dy.shape), channels(scale_.value.shape);
    const float one = 1.0f, zero = 0.0f;
    CHECK(cudnnBatchNormalizationBackward(
        device_->cudnn(), kPerChannel, &one, &zero, &one, &zero, data, x_.data(), data, dy.data(),
        data, dx.data(), channels, scale_.value.data(), scale_.gradient.data(),
        shift_.gradient.data(), kEpsilon, mean_.data(), inverse_deviation_.data()));
    x_.reset();
    mean_.reset();
    inverse_deviation_.reset();
    return dx;
  }

  void collect(Parameters* parameters) override {
    for (Parameter* parameter : {&scale_, &shift_, &running_mean_, &running_variance_})
      parameters->push_back(parameter);
  }

 private:
  static constexpr cudnnBatchNormMode_t kPerChannel = CUDNN_BATCHNORM_SPATIAL;
  static constexpr double kEpsilon = 1e-5;
  static constexpr double kMomentum = 0.1;

  Device* const device_;
  Parameter scale_, shift_, running_mean_, running_variance_;
  Tensor x_, mean_, inverse_deviation_;
};

class Relu final : public Layer {
 public:
  explicit Relu(Device* device) : device_(device) {
    CHECK(cudnnCreateActivationDescriptor(&descriptor_));
    CHECK(cudnnSetActivationDescriptor(descriptor_, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN,
                                       0.0));
  }
  ~Relu() override { CHECK(cudnnDestroyActivationDescriptor(descriptor_)); }

  Tensor forward(const Tensor& x, Mode mode) override {
    Tensor y = transient_tensor(device_->memory(), x.shape);
    const TensorDescriptor data(x.shape);
    const float one = 1.0f, zero = 0.0f;
    CHECK(cudnnActivationForward(device_->cudnn(), descriptor_, &one, data, x.data(), &zero, data,
                                 y.data()));
    if (mode == Mode::kTrain) {
      x_ = x;
      y_ = y;
    }
    return y;
  }

  Tensor backward(Tensor dy) override {
    Tensor dx = transient_tensor(device_->memory(), dy.shape);
    const TensorDescriptor data(dy.shape);
    const float one = 1.0f, zero = 0.0f;
    CHECK(cudnnActivationBackward(device_->cudnn(), descriptor_, &one, data, y_.data(), data,
                                  dy.data(), data, x_.data(), &zero, data, dx.data()));
    x_.reset();
    y_.reset();
    return dx;
  }

 private:
  Device* const device_;
  cudnnActivationDescriptor_t descriptor_ = nullptr;
  Tensor x_, y_;
};

class Pool final : public Layer {
 public:
  enum class Kind { kMaximum, kMean };
  struct Window {
    int size, stride, padding;
  };

  Pool(Device* device, Kind kind, Window window) : device_(device), window_(window) {
    CHECK(cudnnCreatePoolingDescriptor(&descriptor_));
    CHECK(cudnnSetPooling2dDescriptor(
        descriptor_,
        kind == Kind::kMaximum ? CUDNN_POOLING_MAX_DETERMINISTIC
                               : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
        CUDNN_NOT_PROPAGATE_NAN, window.size, window.size, window.padding, window.padding,
        window.stride, window.stride));
  }
  ~Pool() override { CHECK(cudnnDestroyPoolingDescriptor(descriptor_)); }

  Tensor forward(const Tensor& x, Mode mode) override {
    Tensor y = transient_tensor(device_->memory(),
                                {x.shape.n, x.shape.c, pooled(x.shape.h), pooled(x.shape.w)});
    const TensorDescriptor input(x.shape), output(y.shape);
    const float one = 1.0f, zero = 0.0f;
    CHECK(cudnnPoolingForward(device_->cudnn(), descriptor_, &one, input, x.data(), &zero, output,
                              y.data()));
    if (mode == Mode::kTrain) {
      x_ = x;
      y_ = y;
    }
    return y;
  }

  Tensor backward(Tensor dy) override {
    Tensor dx = transient_tensor(device_->memory(), x_.shape);
    const TensorDescriptor input(x_.shape), output(y_.shape);
    const float one = 1.0f, zero = 0.0f;
    CHECK(cudnnPoolingBackward(device_->cudnn(), descriptor_, &one, output, y_.data(), output,
                               dy.data(), input, x_.data(), &zero, input, dx.data()));
    x_.reset();
    y_.reset();
    return dx;
  }

 private:
  int pooled(int size) const {
    return (size + 2 * window_.padding - window_.size) / window_.stride + 1;
  }

  Device* const device_;
  const Window window_;
  cudnnPoolingDescriptor_t descriptor_ = nullptr;
  Tensor x_, y_;
};

// relu(main(x) + shortcut(x)); without a shortcut chain, x itself.
class Residual final : public Layer {
 public:
  Residual(Device* device, std::unique_ptr<Chain> main, std::unique_ptr<Chain> shortcut)
      : device_(device), main_(std::move(main)), shortcut_(std::move(shortcut)), relu_(device) {}

  Tensor forward(const Tensor& x, Mode mode) override {
    Tensor sum = main_->forward(x, mode);
    accumulate(*device_, shortcut_ != nullptr ? shortcut_->forward(x, mode) : x, sum);
    return relu_.forward(sum, mode);
  }

  Tensor backward(Tensor dy) override {
    Tensor d_sum = relu_.backward(std::move(dy));
    Tensor dx = main_->backward(d_sum);
    accumulate(*device_,
               shortcut_ != nullptr ? shortcut_->backward(std::move(d_sum)) : std::move(d_sum), dx);
    return dx;
  }

  void collect(Parameters* parameters) override {
    main_->collect(parameters);
    if (shortcut_ != nullptr) shortcut_->collect(parameters);
  }

 private:
  Device* const device_;
  const std::unique_ptr<Chain> main_, shortcut_;
  Relu relu_;
};

}  // namespace workloads
