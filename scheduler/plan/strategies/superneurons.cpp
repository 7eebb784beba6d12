#include "scheduler/plan/strategies/superneurons.h"

#include <algorithm>

namespace spillway::scheduler {
namespace {

bool IsCheckpoint(OperationType type) {
  return type == OperationType::kConvolution || type == OperationType::kFullyConnected ||
         type == OperationType::kJoin || type == OperationType::kSoftmax ||
         type == OperationType::kAttention || type == OperationType::kEmbedding ||
         type == OperationType::kOther;
}

bool SpansTheTurn(const IterationProfile& profile, const IdleInterval& interval) {
  return !interval.wraps && !interval.content_dead &&
         profile.at(interval.from).phase == Phase::kForward &&
         profile.at(interval.to).phase != Phase::kForward &&
         !profile.at(interval.buffer).persistent;
}

const Operation& ProducerOf(const Workbench& bench, const IdleInterval& interval) {
  const OperationId writer =
      bench.chains().WriterBefore(interval.buffer, OperationId{interval.from.index + 1});
  return bench.profile().at(writer.index < 0 ? interval.from : writer);
}

bool IsConvolutionOutput(const Workbench& bench, const IdleInterval& interval) {
  return SpansTheTurn(bench.profile(), interval) &&
         bench.profile().at(interval.buffer).kind == BufferKind::kActivation &&
         ProducerOf(bench, interval).type == OperationType::kConvolution;
}

bool IsRecomputable(const Workbench& bench, int32_t index) {
  const IdleInterval& interval = bench.interval(index);
  return SpansTheTurn(bench.profile(), interval) &&
         !IsCheckpoint(ProducerOf(bench, interval).type) && bench.ChainNs(index) >= 0;
}

// The prefetch belongs to the backward of the preceding convolution (figure 6).
OperationId ConvolutionBefore(const Workbench& bench, const IdleInterval& interval) {
  for (int32_t i = interval.to.index - 1; i > interval.from.index; --i) {
    const Operation& operation = bench.profile().operations[static_cast<size_t>(i)];
    if (operation.phase == Phase::kForward) return {i + 1};
    if (operation.type == OperationType::kConvolution) return {i};
  }
  return {interval.from.index + 1};
}

void Swap(const Workbench& bench, Decision& decision) {
  decision.treatment = Treatment::kSwap;
  decision.prefetch_at = ConvolutionBefore(bench, bench.interval(decision.interval));
}

void MoveConvolutionOutputs(const Workbench& bench, Choices& choices) {
  for (Decision& decision : choices.decisions) {
    if (IsConvolutionOutput(bench, bench.interval(decision.interval))) Swap(bench, decision);
  }
}

enum class Recompute { kSpeed, kMemory, kCostAware };

// A minimum for every plan (l_peak of section 3.4).
int64_t LargestLayerBytes(const Workbench& bench) {
  int64_t largest_bytes = 0;
  for (const Operation& operation : bench.profile().operations) {
    int64_t sum_bytes = 0;
    for (const BufferId id : operation.reads) sum_bytes += bench.timetable().footprint_bytes(id);
    for (const BufferId id : operation.writes) {
      if (std::find(operation.reads.begin(), operation.reads.end(), id) == operation.reads.end())
        sum_bytes += bench.timetable().footprint_bytes(id);
    }
    largest_bytes = std::max(largest_bytes, sum_bytes);
  }
  return largest_bytes;
}

// The last checkpoint at or before each forward operation.
std::vector<int32_t> SegmentHeads(const IterationProfile& profile) {
  std::vector<int32_t> heads(profile.operations.size(), 0);
  int32_t head = 0;
  for (size_t i = 0; i < heads.size(); ++i) {
    if (IsCheckpoint(profile.operations[i].type)) head = static_cast<int32_t>(i);
    heads[i] = head;
  }
  return heads;
}

void RecomputeCheapLayers(const Workbench& bench, Recompute how, Choices& choices) {
  const std::vector<int32_t> heads = SegmentHeads(bench.profile());
  std::vector<int64_t> segment_bytes(heads.size(), 0);
  std::vector<int32_t> recomputed;
  const auto head_of = [&](int32_t interval) {
    const IdleInterval& it = bench.interval(interval);
    const OperationId writer =
        bench.chains().WriterBefore(it.buffer, OperationId{it.from.index + 1});
    return static_cast<size_t>(heads[static_cast<size_t>(writer.index)]);
  };
  for (int32_t i = 0; i < bench.interval_count(); ++i) {
    if (!IsRecomputable(bench, i)) continue;
    recomputed.push_back(i);
    segment_bytes[head_of(i)] += bench.footprint_bytes(i);
  }
  const int64_t largest_bytes = LargestLayerBytes(bench);
  for (const int32_t i : recomputed) {
    Decision& decision = choices.decisions[static_cast<size_t>(i)];
    decision.treatment = Treatment::kRecompute;
    decision.keep_when_rebuilt =
        how == Recompute::kSpeed ||
        (how == Recompute::kCostAware && segment_bytes[head_of(i)] <= largest_bytes);
  }
}

class TensorCache {
 public:
  TensorCache(const Workbench& bench, Choices& choices)
      : bench_(bench),
        choices_(choices),
        saved_(static_cast<size_t>(bench.timetable().operation_count()) + 1, 0) {
    for (const Decision& decision : choices.decisions) {
      if (decision.treatment != Treatment::kStay) Save(decision.interval);
    }
  }

  void Fill() {
    int64_t saved_bytes = 0;
    std::vector<int32_t> idle;  // movable intervals, by their buffers' last touch
    const std::vector<std::vector<int32_t>> opening = IntervalsByBegin();
    for (int32_t now = 0; now < bench_.timetable().operation_count(); ++now) {
      saved_bytes += saved_[static_cast<size_t>(now)];
      std::erase_if(idle, [&](int32_t i) { return bench_.interval(i).to.index <= now; });
      for (const int32_t i : opening[static_cast<size_t>(now)]) idle.push_back(i);
      int64_t load_bytes = bench_.timetable().load_bytes()[static_cast<size_t>(now)] - saved_bytes;
      while (load_bytes > bench_.problem().budget_bytes && !idle.empty()) {
        const int32_t victim = idle.front();
        idle.erase(idle.begin());
        Swap(bench_, choices_.decisions[static_cast<size_t>(victim)]);
        load_bytes -= bench_.footprint_bytes(victim);
        saved_bytes += bench_.footprint_bytes(victim);
        saved_[static_cast<size_t>(bench_.interval(victim).to.index)] -=
            bench_.footprint_bytes(victim);
      }
    }
  }

 private:
  void Save(int32_t interval) {
    const int64_t size_bytes = bench_.footprint_bytes(interval);
    saved_[static_cast<size_t>(Timetable::BeginOf(bench_.interval(interval)))] += size_bytes;
    saved_[static_cast<size_t>(bench_.interval(interval).to.index)] -= size_bytes;
  }

  std::vector<std::vector<int32_t>> IntervalsByBegin() const {
    std::vector<std::vector<int32_t>> opening(saved_.size());
    for (int32_t i = 0; i < bench_.interval_count(); ++i) {
      const IdleInterval& interval = bench_.interval(i);
      if (interval.wraps ||
          choices_.decisions[static_cast<size_t>(i)].treatment != Treatment::kStay)
        continue;
      opening[static_cast<size_t>(Timetable::BeginOf(interval))].push_back(i);
    }
    return opening;
  }

  const Workbench& bench_;
  Choices& choices_;
  std::vector<int64_t> saved_;  // by operation: the change in evicted bytes at its start
};

struct Parts {
  bool offloads = false;
  bool caches = false;
  bool recomputes = false;
  Recompute how = Recompute::kCostAware;
};

class SuperNeuronsStrategy : public ChoosingStrategy {
 public:
  SuperNeuronsStrategy(std::string_view name, std::string_view summary, Parts parts)
      : ChoosingStrategy(name, summary), parts_(parts) {}

  std::optional<Choices> Choose(Workbench& bench) const override {
    Choices choices = bench.NoChoices();
    if (parts_.recomputes) RecomputeCheapLayers(bench, parts_.how, choices);
    if (parts_.offloads) MoveConvolutionOutputs(bench, choices);
    if (parts_.caches) TensorCache(bench, choices).Fill();
    choices.workspaces = WorkspacesThatFit(bench, choices);
    return choices;
  }

 private:
  const Parts parts_;
};

}  // namespace

const ChoosingStrategy& SuperNeuronsLiveness() {
  static const auto& strategy = *new SuperNeuronsStrategy(
      "superneurons-liveness", "SuperNeurons: nothing moves (PPoPP 2018, 3.2)", {});
  return strategy;
}

const ChoosingStrategy& SuperNeuronsOffload() {
  static const auto& strategy = *new SuperNeuronsStrategy(
      "superneurons-offload", "SuperNeurons: convolutions' outputs move (PPoPP 2018, 3.3)",
      {.offloads = true});
  return strategy;
}

const ChoosingStrategy& SuperNeuronsCache() {
  static const auto& strategy = *new SuperNeuronsStrategy(
      "superneurons-cache", "SuperNeurons: what does not fit moves, least recently used first",
      {.caches = true});
  return strategy;
}

const ChoosingStrategy& SuperNeuronsSpeed() {
  static const auto& strategy =
      *new SuperNeuronsStrategy("superneurons-speed", "SuperNeurons: speed-centric recomputation",
                                {.recomputes = true, .how = Recompute::kSpeed});
  return strategy;
}

const ChoosingStrategy& SuperNeuronsMemory() {
  static const auto& strategy =
      *new SuperNeuronsStrategy("superneurons-memory", "SuperNeurons: memory-centric recomputation",
                                {.recomputes = true, .how = Recompute::kMemory});
  return strategy;
}

const ChoosingStrategy& SuperNeuronsCostAware() {
  static const auto& strategy = *new SuperNeuronsStrategy(
      "superneurons-cost-aware", "SuperNeurons: cost-aware recomputation (PPoPP 2018, 3.4)",
      {.recomputes = true});
  return strategy;
}

const ChoosingStrategy& SuperNeurons() {
  static const auto& strategy =
      *new SuperNeuronsStrategy("superneurons", "SuperNeurons: cache and cost-aware recomputation",
                                {.caches = true, .recomputes = true});
  return strategy;
}

}  // namespace spillway::scheduler
