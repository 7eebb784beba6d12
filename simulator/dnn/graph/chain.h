// A graph that the simulator computes: a convolution, pointwise operations, or both in a row.
//
// Invariants
//  1. A chain is trivially copyable: it travels with the launch, and with a plan's text.
//  2. Its results are those of the older calls for the same convolution: cudnnConvolutionForward,
//     BackwardData, BackwardFilter and BiasActivationForward.
//  3. Intermediate results are fp32, whatever their tensors' types.
#pragma once

#include <optional>

#include "simulator/dnn/common/tensor.h"
#include "simulator/dnn/cudnn/convolution_engine.h"

namespace spillway::simulator::dnn::graph {

struct OperationGraph;

struct ChainTensor {
  TensorView view;
  std::int32_t operand;  // of the graph's buffers; -1: virtual
  float value;           // known when the plan is executed
  std::int32_t is_by_value;
  std::int32_t is_written;
};

// Tensors by their index; -1: absent.
struct ChainStep {
  std::int32_t mode;  // cudnnPointwiseMode_t
  std::int32_t x, b, dy;
  std::int32_t result;
  float alpha1, alpha2;
  float lower_clip, upper_clip, lower_slope;
};

struct Chain {
  static constexpr int kMostTensors = 12;
  static constexpr int kMostSteps = 8;

  std::int32_t tensor_count;
  std::int32_t step_count;
  ChainTensor tensors[kMostTensors];
  ChainStep steps[kMostSteps];

  std::int32_t has_convolution;
  Direction direction;
  ConvolutionShape shape;
  std::int32_t x, w, y;
  std::int32_t is_turned;
  float alpha, beta;

  void Run(void* const* operands) const;
};

std::optional<Chain> ChainOf(const OperationGraph& graph);

}  // namespace spillway::simulator::dnn::graph
