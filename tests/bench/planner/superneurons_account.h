// Counts memory as SuperNeurons does (Wang et al., PPoPP 2018), only to reproduce its figures.
//
// Pure; built once per network. The paper does not state its conventions. These reproduce its
// figures:
//   1. Counted: every layer's forward output, and the gradient tensors of convolution, pooling,
//      fully connected, batch norm and dropout, each of the size of the layer's input, even for the
//      first convolution. Relu and LRN write in place of the incoming gradient, softmax in place of
//      its own output. Not counted: input, labels, parameters and their gradients, dropout's state,
//      workspaces.
//   2. A fan-out is a FORK layer with one copy per consumer; its gradient aliases the first. A JOIN
//      makes a new tensor; its first input's gradient aliases the incoming one.
//   3. Steps 1..N are forward, N+1..2N backward. Live are all tensors allocated during the step.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/networks/layer_graph.h"

namespace spillway::papers {

enum class RecomputeMode : uint8_t { kSpeed, kMemory, kCostAware };

struct MemoryPeak {
  int64_t bytes = 0;
  int32_t step = 0;
  std::string layer;
  int32_t live_tensors = 0;
};

struct RecomputeAccount {
  int32_t extra_forwards = 0;
  MemoryPeak peak;
};

class SuperNeuronsAccount {
 public:
  explicit SuperNeuronsAccount(const scheduler::networks::LayerGraph& graph);

  int32_t steps() const { return 2 * static_cast<int32_t>(layers_.size()); }

  // The baseline: everything at once.
  int32_t tensor_count() const;
  int64_t total_bytes() const;

  MemoryPeak LivenessPeak() const;

  // If convolution outputs leave after the next convolution's forward, and return for its backward.
  MemoryPeak OffloadPeak() const;
  int64_t OffloadBytesAt(int32_t step) const;

  // In backward, without in-place writes: a lower bound for any technique.
  int64_t LayerPeakBytes() const;

  RecomputeAccount Recompute(RecomputeMode mode) const;

  int64_t OutputBytes(const std::string& layer) const;
  int32_t BackwardStep(const std::string& layer) const;

 private:
  using Tensor = int32_t;
  struct Entry {
    std::string name;
    scheduler::networks::LayerType type;
    bool fork = false;
    int64_t bytes = 0;
    std::vector<Tensor> inputs, outputs, incoming, outgoing, needed;
  };
  struct Use {
    int32_t first = 0, last = 0;  // 0: never
  };
  struct Walk;

  void Expand(const scheduler::networks::LayerGraph& graph);
  void DeriveGradients();
  void NumberSteps();
  Tensor NewTensor(int64_t bytes, int32_t producer);
  bool IsCheckpoint(Tensor tensor) const;
  bool IsLive(Tensor tensor, int32_t step) const;
  int64_t LiveBytes(int32_t step, bool offloaded) const;
  const Entry& BackwardEntry(int32_t step) const;
  RecomputeAccount Recompute(const std::vector<bool>& memory_mode,
                             std::vector<int64_t>& segment_peaks) const;
  void RecomputeStep(Walk& walk, int32_t step, const std::vector<bool>& memory_mode,
                     std::vector<int64_t>& segment_peaks) const;

  std::vector<Entry> layers_;      // without the data layer
  std::vector<int64_t> bytes_;     // by tensor
  std::vector<int32_t> producer_;  // by tensor: index into layers_; -1: data or gradient
  std::vector<bool> gradient_;     // by tensor
  std::vector<Tensor> head_;       // by tensor: its segment's checkpoint; -1: none
  std::vector<Use> uses_;          // by tensor
  std::vector<int32_t> last_backward_;
  std::vector<std::pair<int32_t, int32_t>> absent_;  // by tensor: steps [from, until) on the host
};

}  // namespace spillway::papers
