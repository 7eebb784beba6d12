// AdamW (Loshchilov and Hutter 2017), one launch per parameter.
//
// Used by: gpt, on the main thread, after the backward pass.
#pragma once

#include <cmath>

#include "common/parameters.cuh"

namespace workloads {

struct AdamWStep {
  float learning_rate;
  float first_decay, second_decay;            // of the moments
  float first_correction, second_correction;  // 1 / (1 - decay^step)
  float epsilon;
  float weight_decay;
};

__constant__ AdamWStep adamw_step;

template <bool kDecays>
__global__ void adamw_update(float* weights, float* first, float* second, const float* gradient,
                             std::size_t count) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float slope = gradient[i];
  first[i] = adamw_step.first_decay * first[i] + (1.0f - adamw_step.first_decay) * slope;
  second[i] =
      adamw_step.second_decay * second[i] + (1.0f - adamw_step.second_decay) * slope * slope;
  const float direction = first[i] * adamw_step.first_correction /
                          (sqrtf(second[i] * adamw_step.second_correction) + adamw_step.epsilon);
  const float decay = kDecays ? adamw_step.weight_decay * weights[i] : 0.0f;
  weights[i] -= adamw_step.learning_rate * (direction + decay);
}

class AdamW {
 public:
  AdamW(Device* device, Parameters parameters, float learning_rate)
      : device_(device), parameters_(std::move(parameters)), constants_{learning_rate, 0.9f, 0.95f,
                                                                        1.0f,          1.0f, 1e-8f,
                                                                        0.1f} {
    add_optimiser_state(parameters_, device_, 2);
  }

  // Consumes the gradients.
  void update() {
    ++steps_;
    constants_.first_correction =
        static_cast<float>(1.0 / (1.0 - std::pow(constants_.first_decay, steps_)));
    constants_.second_correction =
        static_cast<float>(1.0 / (1.0 - std::pow(constants_.second_decay, steps_)));
    CHECK(cudaMemcpyToSymbolAsync(adamw_step, &constants_, sizeof(constants_), 0,
                                  cudaMemcpyHostToDevice, device_->compute_stream()));
    for (Parameter* parameter : parameters_) {
      if (parameter->decays) {
        launch<true>(*parameter);
      } else {
        launch<false>(*parameter);
      }
      parameter->gradient.reset();
    }
  }

 private:
  template <bool kDecays>
  void launch(const Parameter& parameter) {
    const std::size_t count = parameter.value.elements();
    adamw_update<kDecays><<<blocks_for(count), kThreads, 0, device_->compute_stream()>>>(
        parameter.value.data(), parameter.optimiser_state[0].data(),
        parameter.optimiser_state[1].data(), parameter.gradient.data(), count);
    CHECK_LAUNCH("adamw_update");
  }

  Device* const device_;
  const Parameters parameters_;
  AdamWStep constants_;
  int steps_ = 0;
};

}  // namespace workloads
