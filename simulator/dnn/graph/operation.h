// One operation of a graph: which tensors it reads and writes, and how much it computes.
//
// Invariants
//  1. The roles of tensors come from attributes.inc, and from beta and the norm's phase.
//  2. Equal operations have equal identities; unique ids are no part of them.
#pragma once

#include <cudnn.h>

#include <optional>
#include <vector>

#include "simulator/dnn/cudnn/convolution_engine.h"
#include "simulator/dnn/graph/attributes.h"
#include "simulator/dnn/graph/tensor.h"

namespace spillway::simulator::dnn::graph {

struct TensorUse {
  cudnnBackendAttributeName_t attribute;
  Role role;  // kReads, kWrites or kUpdates
  Tensor tensor;
};

struct Convolution {
  Direction direction;
  ConvolutionShape shape;
  Tensor x, w, y;     // of the backward directions: the gradients
  bool is_turned;     // CUDNN_CONVOLUTION rather than CUDNN_CROSS_CORRELATION
  bool is_symmetric;  // padded alike on both sides
  float alpha, beta;
};

struct Pointwise {
  cudnnPointwiseMode_t mode;
  float alpha1, alpha2;
  float lower_clip, upper_clip, lower_slope;
};

struct Operation {
  cudnnBackendDescriptorType_t kind;
  std::vector<TensorUse> uses;
  std::optional<Convolution> convolution;
  std::optional<Pointwise> pointwise;
  double flops;
  std::uint64_t identity;

  const Tensor* Find(cudnnBackendAttributeName_t attribute) const;
};

// BAD_PARAM when shapes contradict each other, NOT_SUPPORTED for what the simulator lacks.
cudnnStatus_t DescribeOperation(const State& state, Operation* operation);

cudnnStatus_t CheckConvolution(const State& state);

}  // namespace spillway::simulator::dnn::graph
