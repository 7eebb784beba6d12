// Stochastic gradient descent with momentum and weight decay, one launch per parameter.
//
// Used by: the convolutional trainers, on the main thread, after the backward pass.
#pragma once

#include "parameters.cuh"

namespace workloads {

__global__ void sgd_update(float* weights, float* velocity, const float* gradient,
                           std::size_t count, float learning_rate, float momentum,
                           float weight_decay) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float step = momentum * velocity[i] + gradient[i] + weight_decay * weights[i];
  velocity[i] = step;
  weights[i] -= learning_rate * step;
}

class Sgd {
 public:
  Sgd(Device* device, Parameters parameters, float momentum, float weight_decay)
      : device_(device),
        parameters_(std::move(parameters)),
        momentum_(momentum),
        weight_decay_(weight_decay) {
    add_optimiser_state(parameters_, device_, 1);
  }

  // Consumes the gradients.
  void update(float learning_rate) {
    for (Parameter* parameter : parameters_) {
      if (!parameter->trainable) continue;
      const std::size_t count = parameter->value.elements();
      sgd_update<<<blocks_for(count), kThreads, 0, device_->compute_stream()>>>(
          parameter->value.data(), parameter->optimiser_state[0].data(), parameter->gradient.data(),
          count, learning_rate, momentum_, parameter->decays ? weight_decay_ : 0.0f);
      CHECK_LAUNCH("sgd_update");
      parameter->gradient.reset();
    }
  }

 private:
  Device* const device_;
  const Parameters parameters_;
  const float momentum_;
  const float weight_decay_;
};

}  // namespace workloads
