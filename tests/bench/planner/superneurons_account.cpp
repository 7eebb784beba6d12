#include "tests/bench/planner/superneurons_account.h"

#include <algorithm>
#include <set>

namespace spillway::papers {
namespace {

using namespace scheduler::networks;

bool Contains(const std::vector<int32_t>& list, int32_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

size_t At(int32_t index) { return static_cast<size_t>(index); }

}  // namespace

struct SuperNeuronsAccount::Walk {
  std::set<Tensor> have;  // recomputed and still needed
  RecomputeAccount result;
};

SuperNeuronsAccount::SuperNeuronsAccount(const LayerGraph& graph) {
  Expand(graph);
  DeriveGradients();
  NumberSteps();
}

SuperNeuronsAccount::Tensor SuperNeuronsAccount::NewTensor(int64_t bytes, int32_t producer) {
  bytes_.push_back(bytes);
  producer_.push_back(producer);
  gradient_.push_back(false);
  return static_cast<Tensor>(bytes_.size()) - 1;
}

// Layers in order, with a FORK after each layer with several readers.
void SuperNeuronsAccount::Expand(const LayerGraph& graph) {
  std::vector<int32_t> consumers(graph.layers().size(), 0);
  for (const Layer& layer : graph.layers()) {
    for (LayerId input : layer.inputs) ++consumers[At(input.index)];
  }
  // What a layer's next consumers read.
  std::vector<std::vector<Tensor>> copies(graph.layers().size());
  std::vector<size_t> next_copy(graph.layers().size(), 0);
  for (size_t i = 0; i < graph.layers().size(); ++i) {
    const Layer& layer = graph.layers()[i];
    const int64_t bytes = graph.bytes({static_cast<int32_t>(i)});
    if (layer.type == LayerType::kData) {
      copies[i].assign(At(std::max(1, consumers[i])), NewTensor(bytes, -1));
      continue;
    }
    Entry entry{layer.name, layer.type, false, bytes, {}, {}, {}, {}, {}};
    for (LayerId input : layer.inputs)
      entry.inputs.push_back(copies[At(input.index)][next_copy[At(input.index)]++]);
    entry.outputs = {NewTensor(bytes, static_cast<int32_t>(layers_.size()))};
    copies[i] = entry.outputs;
    layers_.push_back(std::move(entry));
    if (consumers[i] < 2) continue;
    Entry fork{"fork." + layer.name, layer.type, true, bytes, copies[i], {}, {}, {}, {}};
    for (int32_t j = 0; j < consumers[i]; ++j)
      fork.outputs.push_back(NewTensor(bytes, static_cast<int32_t>(layers_.size())));
    copies[i] = fork.outputs;
    layers_.push_back(std::move(fork));
  }
}

void SuperNeuronsAccount::DeriveGradients() {
  std::vector<Tensor> flowing(bytes_.size(), -1);  // by output: its incoming gradient
  for (size_t i = layers_.size(); i-- > 0;) {
    Entry& layer = layers_[i];
    for (Tensor output : layer.outputs) {
      if (flowing[At(output)] >= 0) layer.incoming.push_back(flowing[At(output)]);
    }
    const auto own = [&](Tensor input) {
      const Tensor tensor = NewTensor(bytes_[At(input)], -1);
      gradient_[At(tensor)] = true;
      return tensor;
    };
    const bool join = layer.type == LayerType::kAdd && !layer.fork;
    if (layer.fork || layer.type == LayerType::kRelu || layer.type == LayerType::kLrn) {
      layer.outgoing = {layer.incoming[0]};
    } else if (layer.type == LayerType::kSoftmaxLoss) {
      layer.outgoing = layer.outputs;
    } else {
      for (size_t j = 0; j < layer.inputs.size(); ++j)
        layer.outgoing.push_back(join && j == 0 ? layer.incoming[0] : own(layer.inputs[j]));
    }
    for (size_t j = 0; j < layer.inputs.size(); ++j)
      flowing[At(layer.inputs[j])] = layer.outgoing[j];
    if (layer.fork) continue;
    std::vector<Tensor> made;  // inputs that are outputs of layers
    for (Tensor input : layer.inputs) {
      if (producer_[At(input)] >= 0) made.push_back(input);
    }
    switch (layer.type) {
      case LayerType::kConv:
      case LayerType::kFullyConnected:
      case LayerType::kBatchNorm:
        layer.needed = made;
        break;
      case LayerType::kRelu:
      case LayerType::kLrn:
      case LayerType::kMaxPool:
      case LayerType::kAveragePool:
      case LayerType::kSoftmaxLoss:
        layer.needed = made;
        layer.needed.insert(layer.needed.end(), layer.outputs.begin(), layer.outputs.end());
        break;
      default:
        break;
    }
  }
}

void SuperNeuronsAccount::NumberSteps() {
  uses_.resize(bytes_.size());
  last_backward_.assign(bytes_.size(), 0);
  const auto touch = [&](Tensor tensor, int32_t step) {
    Use& use = uses_[At(tensor)];
    if (use.first == 0) use.first = step;
    use.last = step;
    if (step > static_cast<int32_t>(layers_.size())) last_backward_[At(tensor)] = step;
  };
  const auto count = static_cast<int32_t>(layers_.size());
  for (int32_t step = 1; step <= count; ++step) {
    const Entry& layer = layers_[At(step - 1)];
    for (Tensor input : layer.inputs) {
      if (producer_[At(input)] >= 0) touch(input, step);
    }
    for (Tensor output : layer.outputs) touch(output, step);
  }
  for (int32_t step = count + 1; step <= 2 * count; ++step) {
    const Entry& layer = BackwardEntry(step);
    for (const auto* list : {&layer.needed, &layer.incoming, &layer.outgoing}) {
      for (Tensor tensor : *list) touch(tensor, step);
    }
  }
  head_.assign(bytes_.size(), -1);
  for (const Entry& layer : layers_) {
    for (Tensor output : layer.outputs) {
      const Tensor input = layer.inputs.empty() ? -1 : layer.inputs[0];
      head_[At(output)] = IsCheckpoint(output)    ? output
                          : head_[At(input)] >= 0 ? head_[At(input)]
                                                  : input;
    }
  }
  absent_.assign(bytes_.size(), {0, 0});
  const Entry* before = nullptr;
  for (const Entry& layer : layers_) {
    if (layer.type != LayerType::kConv || layer.fork) continue;
    if (before) {
      const auto forward = static_cast<int32_t>(&layer - layers_.data()) + 1;
      absent_[At(before->outputs[0])] = {forward + 1, 2 * count + 1 - forward};
    }
    before = &layer;
  }
}

const SuperNeuronsAccount::Entry& SuperNeuronsAccount::BackwardEntry(int32_t step) const {
  return layers_[At(steps() - step)];
}

bool SuperNeuronsAccount::IsCheckpoint(Tensor tensor) const {
  const int32_t producer = producer_[At(tensor)];
  if (producer < 0) return !gradient_[At(tensor)];  // data
  const Entry& layer = layers_[At(producer)];
  return layer.fork || layer.type == LayerType::kConv || layer.type == LayerType::kFullyConnected ||
         layer.type == LayerType::kAdd || layer.type == LayerType::kConcat ||
         layer.type == LayerType::kSoftmaxLoss;
}

bool SuperNeuronsAccount::IsLive(Tensor tensor, int32_t step) const {
  const Use& use = uses_[At(tensor)];
  return use.first > 0 && use.first <= step && step <= use.last;
}

int32_t SuperNeuronsAccount::tensor_count() const {
  return static_cast<int32_t>(
      std::count_if(uses_.begin(), uses_.end(), [](const Use& use) { return use.first > 0; }));
}

int64_t SuperNeuronsAccount::total_bytes() const {
  int64_t sum = 0;
  for (size_t i = 0; i < bytes_.size(); ++i) sum += uses_[i].first > 0 ? bytes_[i] : 0;
  return sum;
}

int64_t SuperNeuronsAccount::LiveBytes(int32_t step, bool offloaded) const {
  int64_t sum = 0;
  for (Tensor tensor = 0; At(tensor) < bytes_.size(); ++tensor) {
    if (!IsLive(tensor, step)) continue;
    const auto& [from, until] = absent_[At(tensor)];
    if (!offloaded || step < from || step >= until) sum += bytes_[At(tensor)];
  }
  return sum;
}

MemoryPeak SuperNeuronsAccount::LivenessPeak() const {
  MemoryPeak peak;
  for (int32_t step = 1; step <= steps(); ++step) {
    const int64_t bytes = LiveBytes(step, false);
    if (bytes <= peak.bytes) continue;
    peak = {bytes, step,
            step * 2 <= steps() ? layers_[At(step - 1)].name : BackwardEntry(step).name, 0};
  }
  for (Tensor tensor = 0; At(tensor) < bytes_.size(); ++tensor)
    peak.live_tensors += IsLive(tensor, peak.step) ? 1 : 0;
  return peak;
}

MemoryPeak SuperNeuronsAccount::OffloadPeak() const {
  MemoryPeak peak;
  for (int32_t step = steps() / 2 + 1; step <= steps(); ++step) {
    const int64_t bytes = LiveBytes(step, true);
    if (bytes > peak.bytes) peak = {bytes, step, BackwardEntry(step).name, 0};
  }
  return peak;
}

int64_t SuperNeuronsAccount::OffloadBytesAt(int32_t step) const { return LiveBytes(step, true); }

int64_t SuperNeuronsAccount::LayerPeakBytes() const {
  int64_t most = 0;
  for (const Entry& layer : layers_) {
    int64_t sum = 0;
    for (Tensor tensor : layer.needed) sum += bytes_[At(tensor)];
    for (Tensor tensor : layer.incoming) sum += bytes_[At(tensor)];
    for (Tensor tensor : layer.outgoing)
      sum += layer.type == LayerType::kSoftmaxLoss ? 0 : bytes_[At(tensor)];
    most = std::max(most, sum);
  }
  return most;
}

int64_t SuperNeuronsAccount::OutputBytes(const std::string& name) const {
  for (const Entry& layer : layers_) {
    if (layer.name == name) return layer.bytes;
  }
  return 0;
}

int32_t SuperNeuronsAccount::BackwardStep(const std::string& name) const {
  for (int32_t step = steps() / 2 + 1; step <= steps(); ++step) {
    if (BackwardEntry(step).name == name) return step;
  }
  return 0;
}

// Recomputes missing tensors from their checkpoint on, then counts resident ones.
void SuperNeuronsAccount::RecomputeStep(Walk& walk, int32_t step,
                                        const std::vector<bool>& memory_mode,
                                        std::vector<int64_t>& segment_peaks) const {
  const Entry& layer = BackwardEntry(step);
  Tensor segment = layer.needed.empty() ? -1 : head_[At(layer.needed[0])];
  Tensor farthest = -1;
  for (Tensor tensor : layer.needed) {
    if (IsCheckpoint(tensor) || walk.have.contains(tensor)) continue;
    if (farthest < 0 || uses_[At(tensor)].first > uses_[At(farthest)].first) farthest = tensor;
  }
  if (farthest >= 0) {
    std::vector<Tensor> chain;
    Tensor tensor = farthest;
    for (; !IsCheckpoint(tensor); tensor = layers_[At(producer_[At(tensor)])].inputs[0])
      chain.push_back(tensor);
    segment = tensor;
    Tensor previous = tensor;
    for (size_t i = chain.size(); i-- > 0; previous = chain[i]) {
      if (walk.have.insert(chain[i]).second) ++walk.result.extra_forwards;
      if (memory_mode[At(segment)] && !Contains(layer.needed, previous)) walk.have.erase(previous);
    }
  }

  // Resident: live gradients, recomputed tensors, and the checkpoints that this step reads or whose
  // segment it walks. Other checkpoints are on the host.
  std::set<Tensor> resident = walk.have;
  std::vector<Tensor> own = layer.needed;
  own.insert(own.end(), layer.outputs.begin(), layer.outputs.end());
  std::vector<Tensor> candidates = layer.needed;
  for (Tensor tensor : own) candidates.push_back(head_[At(tensor)]);
  for (Tensor tensor : candidates) {
    if (tensor < 0 || !IsCheckpoint(tensor) || producer_[At(tensor)] < 0) continue;
    if (uses_[At(tensor)].first > 0 && last_backward_[At(tensor)] >= step) resident.insert(tensor);
  }
  for (Tensor tensor = 0; At(tensor) < bytes_.size(); ++tensor) {
    if (gradient_[At(tensor)] && IsLive(tensor, step)) resident.insert(tensor);
  }
  int64_t sum = 0;
  for (Tensor tensor : resident) sum += bytes_[At(tensor)];
  if (sum > walk.result.peak.bytes)
    walk.result.peak = {sum, step, layer.name, static_cast<int32_t>(resident.size())};
  if (segment >= 0) segment_peaks[At(segment)] = std::max(segment_peaks[At(segment)], sum);
  std::erase_if(walk.have, [&](Tensor tensor) { return last_backward_[At(tensor)] <= step; });
}

RecomputeAccount SuperNeuronsAccount::Recompute(const std::vector<bool>& memory_mode,
                                                std::vector<int64_t>& segment_peaks) const {
  Walk walk;
  for (int32_t step = steps() / 2 + 1; step <= steps(); ++step)
    RecomputeStep(walk, step, memory_mode, segment_peaks);
  return walk.result;
}

RecomputeAccount SuperNeuronsAccount::Recompute(RecomputeMode mode) const {
  std::vector<int64_t> peaks(bytes_.size(), 0), ignored(bytes_.size(), 0);
  std::vector<bool> memory_mode(bytes_.size(), mode == RecomputeMode::kMemory);
  const RecomputeAccount result = Recompute(memory_mode, peaks);
  if (mode != RecomputeMode::kCostAware) return result;
  // Memory-centric for segments whose speed-centric memory exceeds the largest layer's.
  const int64_t limit = LayerPeakBytes();
  for (size_t i = 0; i < peaks.size(); ++i) memory_mode[i] = peaks[i] > limit;
  return Recompute(memory_mode, ignored);
}

}  // namespace spillway::papers
