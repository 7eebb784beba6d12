#include "scheduler/networks/training_step.h"

#include <algorithm>
#include <utility>

#include "base/units.h"

namespace spillway::scheduler::networks {
namespace {

constexpr BufferId kNone{};

size_t At(LayerId id) { return static_cast<size_t>(id.index); }

struct Needs {
  bool inputs = false, output = false, auxiliary = false, parameters = false;
};

Needs NeedsOf(LayerType type) {
  switch (type) {
    case LayerType::kConv:
    case LayerType::kFullyConnected:
      return {.inputs = true, .parameters = true};
    case LayerType::kBatchNorm:
    case LayerType::kLayerNorm:
      return {.inputs = true, .auxiliary = true, .parameters = true};
    case LayerType::kRelu:
    case LayerType::kSoftmaxLoss:
    case LayerType::kAttentionSoftmax:
      return {.output = true};
    case LayerType::kLrn:
    case LayerType::kMaxPool:
      return {.inputs = true, .output = true};
    case LayerType::kGelu:
    case LayerType::kMatmul:
    case LayerType::kEmbed:
      return {.inputs = true};
    case LayerType::kDropout:
      return {.auxiliary = true};
    case LayerType::kFlashAttention:
      return {.inputs = true, .output = true, .auxiliary = true};
    default:
      return {};
  }
}

bool WritesGradientInPlace(LayerType type) {
  return type == LayerType::kRelu || type == LayerType::kLrn || type == LayerType::kGelu ||
         type == LayerType::kDropout || type == LayerType::kAttentionSoftmax;
}

OperationType OperationType(LayerType type) {
  switch (type) {
    case LayerType::kConv:
      return OperationType::kConvolution;
    case LayerType::kBatchNorm:
    case LayerType::kLayerNorm:
      return OperationType::kNormalization;
    case LayerType::kRelu:
    case LayerType::kGelu:
      return OperationType::kActivation;
    case LayerType::kLrn:
      return OperationType::kLocalResponse;
    case LayerType::kMaxPool:
    case LayerType::kAveragePool:
      return OperationType::kPooling;
    case LayerType::kFullyConnected:
      return OperationType::kFullyConnected;
    case LayerType::kDropout:
      return OperationType::kDropout;
    case LayerType::kAdd:
    case LayerType::kConcat:
      return OperationType::kJoin;
    case LayerType::kSoftmaxLoss:
      return OperationType::kSoftmax;
    case LayerType::kEmbed:
      return OperationType::kEmbedding;
    case LayerType::kMatmul:
    case LayerType::kAttentionSoftmax:
    case LayerType::kFlashAttention:
      return OperationType::kAttention;
    case LayerType::kData:
      break;
  }
  return OperationType::kOther;
}

// Derived from the algorithms' arithmetic, not measured.
std::vector<Algorithm> AlgorithmsOf(const Layer& layer, int64_t batch_size) {
  const int64_t k = layer.shape[0], height = layer.shape[1], width = layer.shape[2];
  const int64_t c = layer.input_channels, area = layer.kernel_height * layer.kernel_width;
  std::vector<Algorithm> menu = {{"implicit_gemm", 0, 100},
                                 {"implicit_precomp_gemm", 4 * height * width * area / 8, 125},
                                 {"gemm", 4 * c * area * height * width, 110}};
  const bool square = layer.kernel_height == layer.kernel_width;
  if (layer.stride != 1 || !square || layer.kernel_height < 3) return menu;
  if (layer.kernel_height == 3) {
    const int64_t tiles = batch_size * ((height + 3) / 4) * ((width + 3) / 4);
    menu.push_back({"winograd", 16 * c * k * 4, 190});
    menu.push_back({"winograd_nonfused", 36 * 4 * (c * k + (c + k) * tiles), 260});
  }
  constexpr int64_t kTile = 32;
  const int64_t tiles = ((height + kTile - 1) / kTile) * ((width + kTile - 1) / kTile);
  menu.push_back(
      {"fft_tiling",
       8 * (kTile * (kTile / 2 + 1)) * (batch_size * c * tiles + batch_size * k * tiles + c * k),
       layer.kernel_height > 3 ? 220 : 150});
  return menu;
}

class Lowering {
 public:
  explicit Lowering(const LayerGraph& graph)
      : graph_(graph),
        output_(graph.layers().size()),
        auxiliary_(graph.layers().size()),
        parameters_(graph.layers().size()),
        optimizer_(graph.layers().size()),
        parameter_gradient_(graph.layers().size()),
        gradient_(graph.layers().size()),
        done_(graph.layers().size(), false),
        consumers_(graph.layers().size(), 0) {}

  TrainingStep Lower(UpdatePlace updates) {
    step_.profile.name = graph_.name();
    step_.profile.batch_size = graph_.batch_size();
    for (size_t i = 0; i < graph_.layers().size(); ++i) Forward({static_cast<int32_t>(i)});
    for (size_t i = graph_.layers().size(); i-- > 0;) Backward({static_cast<int32_t>(i)});
    if (updates == UpdatePlace::kAtEnd) {
      for (LayerId id : with_gradient_) AppendUpdate(id);
    } else {
      SpreadUpdates();
    }
    SetLifetimesToTouches(step_.profile);
    return std::move(step_);
  }

 private:
  struct Target {
    BufferId buffer;
    BufferId accumulated;  // kNone: overwritten
    bool passed_on = false;
  };

  BufferId NewBuffer(const std::string& name, BufferKind kind, int64_t size_bytes) {
    Buffer buffer;
    buffer.name = name;
    buffer.kind = kind;
    buffer.size_bytes = size_bytes;
    buffer.persistent = kind == BufferKind::kInput || kind == BufferKind::kParameter ||
                        kind == BufferKind::kOptimizerState;
    step_.profile.buffers.push_back(std::move(buffer));
    pending_.push_back(0);
    return {static_cast<int32_t>(step_.profile.buffers.size()) - 1};
  }

  static void Tidy(std::vector<BufferId>& ids) {
    std::erase(ids, kNone);
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  }

  void Append(const std::string& name, LayerId id, Phase phase, std::vector<BufferId> reads,
              std::vector<BufferId> writes, int64_t flops) {
    Tidy(reads);
    Tidy(writes);
    OperationWork work;
    work.flops = flops;
    for (BufferId read : reads) work.moved_bytes += step_.profile.at(read).size_bytes;
    for (BufferId written : writes) work.moved_bytes += step_.profile.at(written).size_bytes;
    const Layer& layer = graph_.at(id);
    if (layer.type == LayerType::kConv && phase != Phase::kUpdate)
      work.algorithms = AlgorithmsOf(layer, graph_.batch_size());
    Operation operation;
    operation.name = name;
    operation.type = phase == Phase::kUpdate ? OperationType::kUpdate : OperationType(layer.type);
    operation.phase = phase;
    operation.replayable = phase == Phase::kForward;
    operation.reads = std::move(reads);
    operation.writes = std::move(writes);
    step_.profile.operations.push_back(std::move(operation));
    step_.work.push_back(std::move(work));
  }

  void Forward(LayerId id) {
    const Layer& layer = graph_.at(id);
    const bool is_data = layer.type == LayerType::kData;
    output_[At(id)] = NewBuffer(layer.name, is_data ? BufferKind::kInput : BufferKind::kActivation,
                                graph_.bytes(id));
    if (is_data) return;
    std::vector<BufferId> reads;
    for (LayerId input : layer.inputs) {
      reads.push_back(output_[At(input)]);
      ++consumers_[At(input)];
    }
    if (layer.parameters > 0) {
      const int64_t size_bytes = layer.parameters * graph_.element_bytes();
      parameters_[At(id)] = NewBuffer("w." + layer.name, BufferKind::kParameter, size_bytes);
      optimizer_[At(id)] =
          NewBuffer("m." + layer.name, BufferKind::kOptimizerState, layer.parameters * 4);
    }
    if (layer.auxiliary_bytes > 0)
      auxiliary_[At(id)] =
          NewBuffer(AuxiliaryName(layer), BufferKind::kAuxiliary, layer.auxiliary_bytes);
    reads.push_back(parameters_[At(id)]);
    Append(layer.name, id, Phase::kForward, std::move(reads), {output_[At(id)], auxiliary_[At(id)]},
           layer.flops);
  }

  static std::string AuxiliaryName(const Layer& layer) {
    if (layer.type == LayerType::kDropout) return "mask." + layer.name;
    if (layer.type == LayerType::kFlashAttention) return "aux." + layer.name;
    return "stat." + layer.name;
  }

  std::vector<BufferId> Saved(LayerId id) const {
    const Layer& layer = graph_.at(id);
    const Needs needs = NeedsOf(layer.type);
    std::vector<BufferId> result;
    if (needs.inputs) {
      for (LayerId input : layer.inputs) result.push_back(output_[At(input)]);
    }
    if (needs.output) result.push_back(output_[At(id)]);
    if (needs.auxiliary) result.push_back(auxiliary_[At(id)]);
    return result;
  }

  bool IsShared(BufferId gradient, LayerId except) const {
    int32_t waiting = pending_[static_cast<size_t>(gradient.index)];
    if (gradient_[At(except)] == gradient && !done_[At(except)]) --waiting;
    return waiting > 0;
  }

  void SetGradient(LayerId id, BufferId buffer) {
    if (gradient_[At(id)] != kNone) --pending_[static_cast<size_t>(gradient_[At(id)].index)];
    gradient_[At(id)] = buffer;
    ++pending_[static_cast<size_t>(buffer.index)];
  }

  // `instead` may be passed on or overwritten.
  Target TargetOf(LayerId input, BufferId instead = kNone) {
    const Layer& layer = graph_.at(input);
    if (layer.type == LayerType::kData) return {};
    const BufferId old = gradient_[At(input)];
    if (old != kNone) {
      if (!IsShared(old, input)) return {old, old};
      SetGradient(input, NewBuffer("d2." + layer.name, BufferKind::kGradient, graph_.bytes(input)));
      return {gradient_[At(input)], old};
    }
    if (instead != kNone) {
      SetGradient(input, instead);
      return {instead, kNone, true};
    }
    SetGradient(input, NewBuffer("d." + layer.name, BufferKind::kGradient, graph_.bytes(input)));
    return {gradient_[At(input)], kNone};
  }

  BufferId NewParameterGradient(LayerId id) {
    const Layer& layer = graph_.at(id);
    with_gradient_.push_back(id);
    return parameter_gradient_[At(id)] =
               NewBuffer("g." + layer.name, BufferKind::kParameterGradient,
                         layer.parameters * graph_.element_bytes());
  }

  void Backward(LayerId id) {
    const Layer& layer = graph_.at(id);
    done_[At(id)] = true;
    const BufferId incoming = gradient_[At(id)];
    if (incoming != kNone) --pending_[static_cast<size_t>(incoming.index)];
    if (layer.type == LayerType::kData) return;
    if (layer.type != LayerType::kSoftmaxLoss && incoming == kNone)
      return;  // no gradient flows here
    switch (layer.type) {
      case LayerType::kAdd:
        return BackwardAdd(id, incoming);
      case LayerType::kConcat:
        return BackwardConcat(id, incoming);
      case LayerType::kConv:
      case LayerType::kFullyConnected:
      case LayerType::kEmbed:
        return BackwardWeighted(id, incoming);
      case LayerType::kMatmul:
        return BackwardMatmul(id, incoming);
      case LayerType::kFlashAttention:
        return BackwardFlash(id, incoming);
      default:
        return BackwardSimple(id, incoming);
    }
  }

  void BackwardAdd(LayerId id, BufferId incoming) {
    const Layer& layer = graph_.at(id);
    for (LayerId input : layer.inputs) {
      const BufferId present = gradient_[At(input)];
      if (present != kNone)
        Append("b." + layer.name, id, Phase::kBackward, {incoming, present}, {present},
               graph_.elements(id));
      else
        TargetOf(input, incoming);
    }
  }

  void BackwardConcat(LayerId id, BufferId incoming) {
    const Layer& layer = graph_.at(id);
    for (LayerId input : layer.inputs) {
      const Target to = TargetOf(input);
      Append("b." + layer.name + "." + graph_.at(input).name, id, Phase::kBackward,
             {incoming, to.accumulated}, {to.buffer}, graph_.elements(input));
    }
  }

  void BackwardWeighted(LayerId id, BufferId incoming) {
    const Layer& layer = graph_.at(id);
    std::vector<BufferId> reads = Saved(id);
    reads.push_back(incoming);
    const BufferId gradient = NewParameterGradient(id);
    const Target to = layer.type == LayerType::kEmbed ? Target{} : TargetOf(layer.inputs[0]);
    Append("bw." + layer.name, id, Phase::kBackward, reads, {gradient}, layer.flops);
    if (to.buffer == kNone) return;
    Append("bd." + layer.name, id, Phase::kBackward,
           {incoming, parameters_[At(id)], to.accumulated}, {to.buffer}, layer.flops);
  }

  void BackwardMatmul(LayerId id, BufferId incoming) {
    const Layer& layer = graph_.at(id);
    for (size_t side = 0; side < 2; ++side) {
      const Target to = TargetOf(layer.inputs[side]);
      Append("b" + std::to_string(side) + "." + layer.name, id, Phase::kBackward,
             {incoming, output_[At(layer.inputs[1 - side])], to.accumulated}, {to.buffer},
             layer.flops);
    }
  }

  void BackwardFlash(LayerId id, BufferId incoming) {
    const Layer& layer = graph_.at(id);
    std::vector<BufferId> reads = Saved(id), writes;
    reads.push_back(incoming);
    for (LayerId input : layer.inputs) {
      const Target to = TargetOf(input);
      reads.push_back(to.accumulated);
      writes.push_back(to.buffer);
    }
    Append("b." + layer.name, id, Phase::kBackward, std::move(reads), std::move(writes),
           layer.flops * 5 / 2);
  }

  void BackwardSimple(LayerId id, BufferId incoming) {
    const Layer& layer = graph_.at(id);
    const LayerId input = layer.inputs[0];
    const bool in_place = incoming != kNone && WritesGradientInPlace(layer.type) &&
                          consumers_[At(input)] == 1 && !IsShared(incoming, id);
    const Target to = TargetOf(input, in_place ? incoming : kNone);
    if (to.buffer == kNone) return;
    std::vector<BufferId> reads = Saved(id);
    reads.push_back(incoming);
    reads.push_back(to.accumulated);
    if (NeedsOf(layer.type).parameters) reads.push_back(parameters_[At(id)]);
    std::vector<BufferId> writes = {to.buffer};
    if (layer.parameters > 0) writes.push_back(NewParameterGradient(id));
    Append("b." + layer.name, id, Phase::kBackward, std::move(reads), std::move(writes),
           2 * layer.flops);
  }

  void AppendUpdate(LayerId id) {
    const BufferId parameters = parameters_[At(id)], state = optimizer_[At(id)];
    Append("u." + graph_.at(id).name, id, Phase::kUpdate,
           {parameter_gradient_[At(id)], parameters, state}, {parameters, state},
           4 * graph_.at(id).parameters);
  }

  void SpreadUpdates() {
    std::vector<Operation> operations = std::exchange(step_.profile.operations, {});
    std::vector<OperationWork> work = std::exchange(step_.work, {});
    std::vector<std::vector<LayerId>> ready(operations.size());
    for (LayerId id : with_gradient_) {
      for (size_t i = operations.size(); i-- > 0;) {
        const std::vector<BufferId>&reads = operations[i].reads, &writes = operations[i].writes;
        if (std::find(reads.begin(), reads.end(), parameters_[At(id)]) == reads.end() &&
            std::find(writes.begin(), writes.end(), parameter_gradient_[At(id)]) == writes.end())
          continue;
        ready[i].push_back(id);
        break;
      }
    }
    for (size_t i = 0; i < operations.size(); ++i) {
      step_.profile.operations.push_back(std::move(operations[i]));
      step_.work.push_back(std::move(work[i]));
      for (LayerId id : ready[i]) AppendUpdate(id);
    }
  }

  const LayerGraph& graph_;
  TrainingStep step_;
  std::vector<BufferId> output_, auxiliary_, parameters_, optimizer_, parameter_gradient_,
      gradient_;
  std::vector<bool> done_;
  std::vector<int32_t> consumers_;
  std::vector<int32_t> pending_;  // by buffer: unfinished layers with this gradient
  std::vector<LayerId> with_gradient_;
};

int64_t RooflineNs(const OperationWork& work, int32_t speed_percent, const ComputeRates& rates) {
  const int64_t arithmetic_ns =
      base::transfer_ns(work.flops, base::scale(rates.flops_per_second, speed_percent, 100));
  return std::max(arithmetic_ns,
                  base::transfer_ns(work.moved_bytes, rates.memory_bytes_per_second)) +
         rates.launch_ns;
}

}  // namespace

TrainingStep MakeTrainingStep(const LayerGraph& graph, UpdatePlace updates) {
  return Lowering(graph).Lower(updates);
}

void SetDurations(TrainingStep& step, const ComputeRates& rates) {
  for (size_t i = 0; i < step.work.size(); ++i) {
    Operation& operation = step.profile.operations[i];
    operation.duration_ns = RooflineNs(step.work[i], 100, rates);
    operation.workspaces.clear();
    for (const Algorithm& algorithm : step.work[i].algorithms) {
      operation.workspaces.push_back({algorithm.name, algorithm.workspace_bytes,
                                      RooflineNs(step.work[i], algorithm.speed_percent, rates)});
    }
  }
}

}  // namespace spillway::scheduler::networks
