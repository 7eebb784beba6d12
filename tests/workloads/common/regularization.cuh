// AlexNet's and GoogLeNet's layers beside the usual ones: local response normalization, dropout.
//
// Used by: convnet, on the main thread.
// Ownership: as in layers.cuh. A Dropout owns its generator's states on the device.
//
// Invariants
//
// 1. A dropout draws from its own states, seeded by the trainer's seed and its place in the
//    network. So its masks depend on the arguments and the step alone.
#pragma once

#include "layer.h"
#include "parameters.cuh"

namespace workloads {

// Across five channels, with the constants of Krizhevsky et al. 2012, section 3.3. There alpha is
// not divided by the window, as cuDNN does.
class Lrn final : public Layer {
 public:
  explicit Lrn(Device* device) : device_(device) {
    CHECK(cudnnCreateLRNDescriptor(&descriptor_));
    CHECK(cudnnSetLRNDescriptor(descriptor_, kWindow, kWindow * 1e-4, 0.75, 2.0));
  }
  ~Lrn() override { CHECK(cudnnDestroyLRNDescriptor(descriptor_)); }

  Tensor forward(const Tensor& x, Mode mode) override {
    Tensor y = transient_tensor(device_->memory(), x.shape);
    const TensorDescriptor data(x.shape);
    const float one = 1.0f, zero = 0.0f;
    CHECK(cudnnLRNCrossChannelForward(device_->cudnn(), descriptor_, CUDNN_LRN_CROSS_CHANNEL_DIM1,
                                      &one, data, x.data(), &zero, data, y.data()));
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
    CHECK(cudnnLRNCrossChannelBackward(device_->cudnn(), descriptor_, CUDNN_LRN_CROSS_CHANNEL_DIM1,
                                       &one, data, y_.data(), data, dy.data(), data, x_.data(),
                                       &zero, data, dx.data()));
    x_.reset();
    y_.reset();
    return dx;
  }

 private:
  static constexpr unsigned kWindow = 5;

  Device* const device_;
  cudnnLRNDescriptor_t descriptor_ = nullptr;
  Tensor x_, y_;
};

class Dropout final : public Layer {
 public:
  // `place` tells a network's dropouts apart.
  Dropout(Device* device, float probability, int place) : device_(device) {
    std::size_t states_bytes = 0;
    CHECK(cudnnDropoutGetStatesSize(device->cudnn(), &states_bytes));
    states_ = device->memory()->persistent(states_bytes);
    CHECK(cudnnCreateDropoutDescriptor(&descriptor_));
    CHECK(cudnnSetDropoutDescriptor(descriptor_, device->cudnn(), probability, states_->address(),
                                    states_bytes,
                                    random_bits(device->seed(), kStream, std::uint64_t(place))));
  }
  ~Dropout() override { CHECK(cudnnDestroyDropoutDescriptor(descriptor_)); }

  Tensor forward(const Tensor& x, Mode mode) override {
    if (mode == Mode::kEvaluate) return x;
    Tensor y = transient_tensor(device_->memory(), x.shape);
    const TensorDescriptor data(x.shape);
    std::size_t mask_bytes = 0;
    CHECK(cudnnDropoutGetReserveSpaceSize(data, &mask_bytes));
    mask_ = device_->memory()->transient(mask_bytes);
    CHECK(cudnnDropoutForward(device_->cudnn(), descriptor_, data, x.data(), data, y.data(),
                              mask_->address(), mask_->size_bytes()));
    return y;
  }

  Tensor backward(Tensor dy) override {
    Tensor dx = transient_tensor(device_->memory(), dy.shape);
    const TensorDescriptor data(dy.shape);
    CHECK(cudnnDropoutBackward(device_->cudnn(), descriptor_, data, dy.data(), data, dx.data(),
                               mask_->address(), mask_->size_bytes()));
    mask_.reset();
    return dx;
  }

 private:
  static constexpr std::uint64_t kStream = std::uint64_t{1} << 36;

  Device* const device_;
  cudnnDropoutDescriptor_t descriptor_ = nullptr;
  SharedBuffer states_, mask_;
};

}  // namespace workloads
