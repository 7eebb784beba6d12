// An operation graph: which memory it reads and writes, and what it computes.
//
// Invariants
//  1. Every tensor with memory is one buffer: written if an operation makes it, else read.
//  2. A buffer is updated if its maker also reads it, or if its elements have gaps between them.
//  3. No tensor has two makers, and no operation depends on itself.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/dnn/common/operation.h"
#include "simulator/dnn/graph/chain.h"
#include "simulator/dnn/graph/operation.h"

namespace spillway::simulator::dnn::graph {

struct Buffer {
  std::int64_t uid;
  std::uint64_t size_bytes;
  Access access;
  cudnnDataType_t type;
  std::int32_t is_by_value;
};

enum class Family : std::int32_t {
  kConvolutionForward,
  kConvolutionBackwardData,
  kConvolutionBackwardFilter,
  kAttention,
  kMatmul,
  kNorm,
  kPointwise,
  kOther,
};

struct OperationGraph {
  std::vector<std::shared_ptr<const Operation>> operations;
  std::vector<Buffer> buffers;
  std::uint64_t virtual_bytes;      // of the results that have no memory
  std::uint64_t accumulator_bytes;  // fp32 sums of the largest gradient of attention
  double flops;
  std::uint64_t identity;
  Family family;
  std::optional<Chain> chain;

  const Convolution* OnlyConvolution() const;
  bool HasFloatInputs() const;
  // "matmul,pointwise"
  std::string Label() const;
};

// BAD_PARAM for a graph that contradicts itself, NOT_SUPPORTED for what the simulator lacks.
cudnnStatus_t DescribeGraph(const State& state, OperationGraph* graph);

}  // namespace spillway::simulator::dnn::graph
