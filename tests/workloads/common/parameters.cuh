// Trainable tensors: their initial values, their gradients, and the checksum over all of them.
//
// Used by: the layers (which own their parameters) and the optimisers, on the main thread.
//
// Invariants
//
// 1. A parameter's initial values depend only on the seed and on its position in the network.
// 2. Its gradient exists from the backward pass to the update, and is made anew in each step.
// 3. The checksum covers the bytes of every parameter and of every running statistic, in network
//    order.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "device.cuh"
#include "random.h"
#include "tensor.cuh"

namespace workloads {

__global__ void fill_uniform(float* values, std::size_t count, float bound, std::uint64_t seed,
                             std::uint64_t stream) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) values[i] = (2.0f * random_unit(seed, stream, i) - 1.0f) * bound;
}

__global__ void fill_constant(float* values, std::size_t count, float value) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) values[i] = value;
}

struct Parameter {
  Tensor value;
  Tensor gradient;
  std::vector<Tensor> optimiser_state;
  bool decays = false;    // weight decay applies: matrices and filters, not biases and scales
  bool trainable = true;  // false: a running statistic
};

class ParameterFactory {
 public:
  explicit ParameterFactory(Device* device) : device_(device) {}

  // Uniform with the variance gain / fan_in.
  Parameter uniform(Shape shape, int fan_in, float gain) {
    Parameter parameter = make(shape, true);
    const float bound = std::sqrt(3.0f * gain / static_cast<float>(fan_in));
    fill_uniform<<<blocks_for(shape.elements()), kThreads, 0, device_->compute_stream()>>>(
        parameter.value.data(), shape.elements(), bound, device_->seed(), next_stream_++);
    CHECK_LAUNCH("fill_uniform");
    return parameter;
  }

  Parameter constant(Shape shape, float value, bool trainable = true) {
    Parameter parameter = make(shape, false);
    parameter.trainable = trainable;
    fill_constant<<<blocks_for(shape.elements()), kThreads, 0, device_->compute_stream()>>>(
        parameter.value.data(), shape.elements(), value);
    CHECK_LAUNCH("fill_constant");
    return parameter;
  }

 private:
  Parameter make(Shape shape, bool decays) {
    Parameter parameter;
    parameter.value = persistent_tensor(device_->memory(), shape);
    parameter.decays = decays;
    return parameter;
  }

  Device* const device_;
  std::uint64_t next_stream_ = 1;
};

using Parameters = std::vector<Parameter*>;

inline void add_optimiser_state(const Parameters& parameters, Device* device, int tensors) {
  for (Parameter* parameter : parameters) {
    if (!parameter->trainable) continue;
    for (int i = 0; i < tensors; ++i) {
      Tensor state = persistent_tensor(device->memory(), parameter->value.shape);
      CHECK(cudaMemsetAsync(state.data(), 0, state.shape.size_bytes(), device->compute_stream()));
      parameter->optimiser_state.push_back(std::move(state));
    }
  }
}

// FNV-1a, 64 bits.
inline std::uint64_t weights_checksum(const Parameters& parameters, const Device& device) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  std::vector<unsigned char> host;
  device.synchronize();
  for (const Parameter* parameter : parameters) {
    host.resize(parameter->value.shape.size_bytes());
    CHECK(cudaMemcpy(host.data(), parameter->value.data(), host.size(), cudaMemcpyDeviceToHost));
    for (const unsigned char byte : host) hash = (hash ^ byte) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace workloads
