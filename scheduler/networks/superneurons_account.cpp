#include "scheduler/networks/superneurons_account.h"

#include <algorithm>
#include <set>

namespace spillway::scheduler::networks {
namespace {

bool contains(const std::vector<int32_t>& list, int32_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

size_t at(int32_t index) { return static_cast<size_t>(index); }

}  // namespace

struct SuperNeuronsAccount::Walk {
  std::set<Tensor> have;  // recomputed and still needed
  RecomputeAccount result;
};

SuperNeuronsAccount::SuperNeuronsAccount(const LayerGraph& graph) {
  expand(graph);
  derive_gradients();
  number_steps();
}

SuperNeuronsAccount::Tensor SuperNeuronsAccount::new_tensor(int64_t bytes, int32_t producer) {
  bytes_.push_back(bytes);
  producer_.push_back(producer);
  gradient_.push_back(false);
  return static_cast<Tensor>(bytes_.size()) - 1;
}

// Layers in order, with a FORK after each that several others read.
void SuperNeuronsAccount::expand(const LayerGraph& graph) {
  std::vector<int32_t> consumers(graph.layers().size(), 0);
  for (const Layer& layer : graph.layers()) {
    for (LayerId input : layer.inputs) ++consumers[at(input.index)];
  }
  std::vector<std::vector<Tensor>> copies(graph.layers().size());  // what the next consumers of a layer read
  std::vector<size_t> next_copy(graph.layers().size(), 0);
  for (size_t i = 0; i < graph.layers().size(); ++i) {
    const Layer& layer = graph.layers()[i];
    const int64_t bytes = graph.bytes({static_cast<int32_t>(i)});
    if (layer.type == LayerType::kData) {
      copies[i].assign(at(std::max(1, consumers[i])), new_tensor(bytes, -1));
      continue;
    }
    Entry entry{layer.name, layer.type, false, bytes, {}, {}, {}, {}, {}};
    for (LayerId input : layer.inputs)
      entry.inputs.push_back(copies[at(input.index)][next_copy[at(input.index)]++]);
    entry.outputs = {new_tensor(bytes, static_cast<int32_t>(layers_.size()))};
    copies[i] = entry.outputs;
    layers_.push_back(std::move(entry));
    if (consumers[i] < 2) continue;
    Entry fork{"fork." + layer.name, layer.type, true, bytes, copies[i], {}, {}, {}, {}};
    for (int32_t j = 0; j < consumers[i]; ++j)
      fork.outputs.push_back(new_tensor(bytes, static_cast<int32_t>(layers_.size())));
    copies[i] = fork.outputs;
    layers_.push_back(std::move(fork));
  }
}

void SuperNeuronsAccount::derive_gradients() {
  std::vector<Tensor> flowing(bytes_.size(), -1);  // by output: the gradient that arrives there
  for (size_t i = layers_.size(); i-- > 0;) {
    Entry& layer = layers_[i];
    for (Tensor output : layer.outputs) {
      if (flowing[at(output)] >= 0) layer.incoming.push_back(flowing[at(output)]);
    }
    const auto own = [&](Tensor input) {
      const Tensor tensor = new_tensor(bytes_[at(input)], -1);
      gradient_[at(tensor)] = true;
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
    for (size_t j = 0; j < layer.inputs.size(); ++j) flowing[at(layer.inputs[j])] = layer.outgoing[j];
    if (layer.fork) continue;
    std::vector<Tensor> made;  // inputs that a layer made
    for (Tensor input : layer.inputs) {
      if (producer_[at(input)] >= 0) made.push_back(input);
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

void SuperNeuronsAccount::number_steps() {
  uses_.resize(bytes_.size());
  last_backward_.assign(bytes_.size(), 0);
  const auto touch = [&](Tensor tensor, int32_t step) {
    Use& use = uses_[at(tensor)];
    if (use.first == 0) use.first = step;
    use.last = step;
    if (step > static_cast<int32_t>(layers_.size())) last_backward_[at(tensor)] = step;
  };
  const auto count = static_cast<int32_t>(layers_.size());
  for (int32_t step = 1; step <= count; ++step) {
    const Entry& layer = layers_[at(step - 1)];
    for (Tensor input : layer.inputs) {
      if (producer_[at(input)] >= 0) touch(input, step);
    }
    for (Tensor output : layer.outputs) touch(output, step);
  }
  for (int32_t step = count + 1; step <= 2 * count; ++step) {
    const Entry& layer = backward_entry(step);
    for (const auto* list : {&layer.needed, &layer.incoming, &layer.outgoing}) {
      for (Tensor tensor : *list) touch(tensor, step);
    }
  }
  head_.assign(bytes_.size(), -1);
  for (const Entry& layer : layers_) {
    for (Tensor output : layer.outputs) {
      const Tensor input = layer.inputs.empty() ? -1 : layer.inputs[0];
      head_[at(output)] = is_checkpoint(output) ? output : head_[at(input)] >= 0 ? head_[at(input)] : input;
    }
  }
  absent_.assign(bytes_.size(), {0, 0});
  const Entry* before = nullptr;
  for (const Entry& layer : layers_) {
    if (layer.type != LayerType::kConv || layer.fork) continue;
    if (before) {
      const auto forward = static_cast<int32_t>(&layer - layers_.data()) + 1;
      absent_[at(before->outputs[0])] = {forward + 1, 2 * count + 1 - forward};
    }
    before = &layer;
  }
}

const SuperNeuronsAccount::Entry& SuperNeuronsAccount::backward_entry(int32_t step) const {
  return layers_[at(steps() - step)];
}

bool SuperNeuronsAccount::is_checkpoint(Tensor tensor) const {
  const int32_t producer = producer_[at(tensor)];
  if (producer < 0) return !gradient_[at(tensor)];  // data
  const Entry& layer = layers_[at(producer)];
  return layer.fork || layer.type == LayerType::kConv || layer.type == LayerType::kFullyConnected ||
         layer.type == LayerType::kAdd || layer.type == LayerType::kConcat ||
         layer.type == LayerType::kSoftmaxLoss;
}

bool SuperNeuronsAccount::is_live(Tensor tensor, int32_t step) const {
  const Use& use = uses_[at(tensor)];
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

int64_t SuperNeuronsAccount::live_bytes(int32_t step, bool offloaded) const {
  int64_t sum = 0;
  for (Tensor tensor = 0; at(tensor) < bytes_.size(); ++tensor) {
    if (!is_live(tensor, step)) continue;
    const auto& [from, until] = absent_[at(tensor)];
    if (!offloaded || step < from || step >= until) sum += bytes_[at(tensor)];
  }
  return sum;
}

MemoryPeak SuperNeuronsAccount::liveness_peak() const {
  MemoryPeak peak;
  for (int32_t step = 1; step <= steps(); ++step) {
    const int64_t bytes = live_bytes(step, false);
    if (bytes <= peak.bytes) continue;
    peak = {bytes, step, step * 2 <= steps() ? layers_[at(step - 1)].name : backward_entry(step).name, 0};
  }
  for (Tensor tensor = 0; at(tensor) < bytes_.size(); ++tensor)
    peak.live_tensors += is_live(tensor, peak.step) ? 1 : 0;
  return peak;
}

MemoryPeak SuperNeuronsAccount::offload_peak() const {
  MemoryPeak peak;
  for (int32_t step = steps() / 2 + 1; step <= steps(); ++step) {
    const int64_t bytes = live_bytes(step, true);
    if (bytes > peak.bytes) peak = {bytes, step, backward_entry(step).name, 0};
  }
  return peak;
}

int64_t SuperNeuronsAccount::offload_bytes_at(int32_t step) const { return live_bytes(step, true); }

int64_t SuperNeuronsAccount::layer_peak_bytes() const {
  int64_t most = 0;
  for (const Entry& layer : layers_) {
    int64_t sum = 0;
    for (Tensor tensor : layer.needed) sum += bytes_[at(tensor)];
    for (Tensor tensor : layer.incoming) sum += bytes_[at(tensor)];
    for (Tensor tensor : layer.outgoing)
      sum += layer.type == LayerType::kSoftmaxLoss ? 0 : bytes_[at(tensor)];
    most = std::max(most, sum);
  }
  return most;
}

int64_t SuperNeuronsAccount::output_bytes(const std::string& name) const {
  for (const Entry& layer : layers_) {
    if (layer.name == name) return layer.bytes;
  }
  return 0;
}

int32_t SuperNeuronsAccount::backward_step(const std::string& name) const {
  for (int32_t step = steps() / 2 + 1; step <= steps(); ++step) {
    if (backward_entry(step).name == name) return step;
  }
  return 0;
}

// One backward step: what is missing is recomputed from its checkpoint on; then what is resident is counted.
void SuperNeuronsAccount::recompute_step(Walk& walk, int32_t step, const std::vector<bool>& memory_mode,
                                         std::vector<int64_t>& segment_peaks) const {
  const Entry& layer = backward_entry(step);
  Tensor segment = layer.needed.empty() ? -1 : head_[at(layer.needed[0])];
  Tensor farthest = -1;
  for (Tensor tensor : layer.needed) {
    if (is_checkpoint(tensor) || walk.have.contains(tensor)) continue;
    if (farthest < 0 || uses_[at(tensor)].first > uses_[at(farthest)].first) farthest = tensor;
  }
  if (farthest >= 0) {
    std::vector<Tensor> chain;
    Tensor tensor = farthest;
    for (; !is_checkpoint(tensor); tensor = layers_[at(producer_[at(tensor)])].inputs[0])
      chain.push_back(tensor);
    segment = tensor;
    Tensor previous = tensor;
    for (size_t i = chain.size(); i-- > 0; previous = chain[i]) {
      if (walk.have.insert(chain[i]).second) ++walk.result.extra_forwards;
      if (memory_mode[at(segment)] && !contains(layer.needed, previous)) walk.have.erase(previous);
    }
  }

  // Resident: checkpoints that this step reads or whose segment it walks (others are on the host), live gradients, recomputed.
  std::set<Tensor> resident = walk.have;
  std::vector<Tensor> own = layer.needed;
  own.insert(own.end(), layer.outputs.begin(), layer.outputs.end());
  std::vector<Tensor> candidates = layer.needed;
  for (Tensor tensor : own) candidates.push_back(head_[at(tensor)]);
  for (Tensor tensor : candidates) {
    if (tensor < 0 || !is_checkpoint(tensor) || producer_[at(tensor)] < 0) continue;
    if (uses_[at(tensor)].first > 0 && last_backward_[at(tensor)] >= step) resident.insert(tensor);
  }
  for (Tensor tensor = 0; at(tensor) < bytes_.size(); ++tensor) {
    if (gradient_[at(tensor)] && is_live(tensor, step)) resident.insert(tensor);
  }
  int64_t sum = 0;
  for (Tensor tensor : resident) sum += bytes_[at(tensor)];
  if (sum > walk.result.peak.bytes)
    walk.result.peak = {sum, step, layer.name, static_cast<int32_t>(resident.size())};
  if (segment >= 0) segment_peaks[at(segment)] = std::max(segment_peaks[at(segment)], sum);
  std::erase_if(walk.have, [&](Tensor tensor) { return last_backward_[at(tensor)] <= step; });
}

RecomputeAccount SuperNeuronsAccount::recompute(const std::vector<bool>& memory_mode,
                                                std::vector<int64_t>& segment_peaks) const {
  Walk walk;
  for (int32_t step = steps() / 2 + 1; step <= steps(); ++step)
    recompute_step(walk, step, memory_mode, segment_peaks);
  return walk.result;
}

RecomputeAccount SuperNeuronsAccount::recompute(RecomputeMode mode) const {
  std::vector<int64_t> peaks(bytes_.size(), 0), ignored(bytes_.size(), 0);
  std::vector<bool> memory_mode(bytes_.size(), mode == RecomputeMode::kMemory);
  const RecomputeAccount result = recompute(memory_mode, peaks);
  if (mode != RecomputeMode::kCostAware) return result;
  // Segments whose speed-centric memory exceeds the largest layer's are done the memory-centric way.
  const int64_t limit = layer_peak_bytes();
  for (size_t i = 0; i < peaks.size(); ++i) memory_mode[i] = peaks[i] > limit;
  return recompute(memory_mode, ignored);
}

}  // namespace spillway::scheduler::networks
