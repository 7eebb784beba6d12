// The point-wise functions of cuDNN's activation descriptors.
#pragma once

#include <cudnn.h>

#include <cmath>

namespace spillway::simulator::dnn {

struct Activation {
  cudnnActivationMode_t mode;
  float coefficient;  // ceiling of the clipped ReLU, alpha of ELU
  float swish_beta;

  float Forward(float x) const {
    switch (mode) {
      case CUDNN_ACTIVATION_SIGMOID:
        return 1.0f / (1.0f + std::exp(-x));
      case CUDNN_ACTIVATION_RELU:
        return x > 0 ? x : (x != x ? x : 0.0f);
      case CUDNN_ACTIVATION_TANH:
        return std::tanh(x);
      case CUDNN_ACTIVATION_CLIPPED_RELU:
        return x > coefficient ? coefficient : (x < 0 ? 0.0f : x);
      case CUDNN_ACTIVATION_ELU:
        return x > 0 ? x : coefficient * std::expm1(x);
      case CUDNN_ACTIVATION_SWISH:
        return x / (1.0f + std::exp(-swish_beta * x));
      case CUDNN_ACTIVATION_IDENTITY:
        break;
    }
    return x;
  }

  // As in cuDNN, invertible functions use y alone, ReLU and its kin x.
  float Backward(float y, float dy, float x) const {
    switch (mode) {
      case CUDNN_ACTIVATION_SIGMOID:
        return dy * y * (1.0f - y);
      case CUDNN_ACTIVATION_RELU:
        return x > 0 ? dy : 0.0f;
      case CUDNN_ACTIVATION_TANH:
        return dy * (1.0f - y * y);
      case CUDNN_ACTIVATION_CLIPPED_RELU:
        return x > 0 && x < coefficient ? dy : 0.0f;
      case CUDNN_ACTIVATION_ELU:
        return x > 0 ? dy : dy * (y + coefficient);
      case CUDNN_ACTIVATION_SWISH: {
        const float sigmoid = 1.0f / (1.0f + std::exp(-swish_beta * x));
        return dy * (sigmoid + swish_beta * x * sigmoid * (1.0f - sigmoid));
      }
      case CUDNN_ACTIVATION_IDENTITY:
        break;
    }
    return dy;
  }
};

}  // namespace spillway::simulator::dnn
