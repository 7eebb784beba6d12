// The interface of every layer, and chains of layers.
//
// Used by: the trainers, on the main thread, forward and backward in turn.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "parameters.cuh"
#include "tensor.cuh"

namespace workloads {

enum class Mode { kTrain, kEvaluate };

class Layer {
 public:
  virtual ~Layer() = default;
  virtual Tensor forward(const Tensor& x, Mode mode) = 0;
  // Takes the gradient of the last forward result in Mode::kTrain. Computes the parameters'
  // gradients and returns the input's.
  virtual Tensor backward(Tensor dy) = 0;
  virtual void collect(Parameters*) {}
};

// sum += addend
inline void accumulate(const Device& device, const Tensor& addend, const Tensor& sum) {
  const TensorDescriptor data(sum.shape);
  const float one = 1.0f;
  CHECK(cudnnAddTensor(device.cudnn(), &one, data, addend.data(), &one, data, sum.data()));
}

class Chain final : public Layer {
 public:
  template <typename LayerType, typename... Arguments>
  Chain& add(Arguments&&... arguments) {
    layers_.push_back(std::make_unique<LayerType>(std::forward<Arguments>(arguments)...));
    return *this;
  }

  Tensor forward(const Tensor& x, Mode mode) override {
    Tensor y = x;
    for (const auto& layer : layers_) y = layer->forward(y, mode);
    return y;
  }

  Tensor backward(Tensor dy) override {
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer)
      dy = (*layer)->backward(std::move(dy));
    return dy;
  }

  void collect(Parameters* parameters) override {
    for (const auto& layer : layers_) layer->collect(parameters);
  }

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace workloads
