// A tensor of an operation graph.
#pragma once

#include <cudnn.h>

#include <cstdint>

#include "simulator/dnn/common/tensor.h"
#include "simulator/dnn/graph/descriptor.h"

namespace spillway::simulator::dnn::graph {

struct Tensor {
  std::int64_t uid;
  cudnnDataType_t type;
  int rank;
  std::int64_t dims[CUDNN_DIM_MAX];
  std::int64_t strides[CUDNN_DIM_MAX];  // in elements, or in vectors of `vector_count` elements
  std::int64_t vector_count;
  bool is_virtual;   // has no memory
  bool is_by_value;  // its memory is the host's, and is read when the plan is executed
  bool is_ragged;    // where its rows lie is in device memory

  std::int64_t Count() const;
  std::uint64_t DenseBytes() const;
  std::uint64_t ExtentBytes() const;  // from the first to one past the last
  // Memory within the extent is no element's: others may own it.
  bool HasGaps() const;
  bool ToView(TensorView* view) const;
};

// BAD_PARAM when the values contradict each other.
cudnnStatus_t CheckTensor(const State& state);

Tensor TensorOf(const State& state);

}  // namespace spillway::simulator::dnn::graph
