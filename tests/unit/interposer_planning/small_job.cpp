#include "tests/unit/interposer_planning/small_job.h"

#include <vector>

#include "scheduler/learn/iteration_learner.h"

namespace spillway::interposer {

void SmallJob::Launch(std::uint64_t shape, std::initializer_list<RecordedTouch> touches) {
  recorder_->Enqueued(shape, {touches.begin(), touches.size()});
  recorder_->Settle();
}

void SmallJob::RunForeignKernel() { Launch(4711, {{kWeights, false}}); }

void SmallJob::RunIteration() {
  std::vector<std::uint64_t> activations;
  for (std::uint64_t layer = 0; layer < kLayers; ++layer) {
    const std::uint64_t activation = next_allocation_++;
    recorder_->Allocated(activation, kActivationBytes - unused_bytes);
    recorder_->Settle();
    const RecordedTouch made{.allocation = activation, .writes = true, .reads = false};
    if (layer == 0) {
      Launch(100, {{kWeights, false}, made});
    } else {
      Launch(100 + layer, {{kWeights, false}, {activations.back(), false}, made});
    }
    activations.push_back(activation);
  }
  for (std::uint64_t layer = kLayers; layer-- > 0;) {
    Launch(200 + layer, {{kWeights, changes_weights}, {activations[layer], true}});
    recorder_->Freed(activations[layer]);
  }
  recorder_->Synchronized();
  recorder_->Settle();
}

namespace {

using scheduler::BufferId;
using scheduler::IterationPattern;
using scheduler::JobEventKind;
using scheduler::MixToken;
using scheduler::OperationId;

void AddBuffer(std::int64_t size_bytes, bool persistent, int first, int last,
               IterationPattern* pattern) {
  pattern->buffers.push_back({.size_bytes = size_bytes, .persistent = persistent});
  scheduler::Buffer buffer;
  buffer.size_bytes = size_bytes;
  buffer.persistent = persistent;
  if (!persistent) {
    buffer.born = {first};
    buffer.dies = {last};
  }
  pattern->profile.buffers.push_back(buffer);
}

void AddOperation(std::uint64_t shape, std::vector<scheduler::PatternTouch> touches,
                  bool makes_last, IterationPattern* pattern) {
  scheduler::Operation operation;
  operation.duration_ns = kOperationNs;
  for (const scheduler::PatternTouch& touch : touches) {
    const bool makes = makes_last && touch.buffer == touches.back().buffer;
    if (!makes) operation.reads.push_back(BufferId{touch.buffer});
    if (touch.writes) operation.writes.push_back(BufferId{touch.buffer});
  }
  pattern->events.push_back(
      {.kind = JobEventKind::kOperation,
       .token = MixToken(2, shape),
       .operation = static_cast<std::int32_t>(pattern->profile.operations.size()),
       .first_touch = static_cast<std::int32_t>(pattern->touches.size()),
       .touch_count = static_cast<std::int32_t>(touches.size())});
  pattern->touches.insert(pattern->touches.end(), touches.begin(), touches.end());
  pattern->profile.operations.push_back(operation);
}

}  // namespace

IterationPattern SmallPattern() {
  IterationPattern pattern;
  AddBuffer(kWeightsBytes, true, 0, 0, &pattern);
  for (std::int32_t layer = 0; layer < kLayers; ++layer) {
    const std::int32_t activation = layer + 1;
    AddBuffer(kActivationBytes, false, layer, 2 * kLayers - 1 - layer, &pattern);
    pattern.buffers.back().born_event = static_cast<std::int32_t>(pattern.events.size());
    pattern.events.push_back({.kind = JobEventKind::kAllocate,
                              .token = MixToken(1, static_cast<std::uint64_t>(kActivationBytes)),
                              .buffer = activation});
    std::vector<scheduler::PatternTouch> touches{{0, false}};
    if (layer > 0) touches.push_back({activation - 1, false});
    touches.push_back({activation, true, false});
    AddOperation(100 + static_cast<std::uint64_t>(layer), touches, true, &pattern);
  }
  for (std::int32_t layer = kLayers; layer-- > 0;) {
    pattern.buffers[static_cast<std::size_t>(layer) + 1].dies_event =
        static_cast<std::int32_t>(pattern.events.size());
    AddOperation(200 + static_cast<std::uint64_t>(layer), {{0, true}, {layer + 1, true}}, false,
                 &pattern);
  }
  pattern.fingerprint = scheduler::FingerprintOf(pattern);
  return pattern;
}

StoredPlan SmallStoredPlan() {
  StoredPlan stored{.pattern = SmallPattern(),
                    .plan = {},
                    .budget_bytes = kPeakBytes - 1,
                    .job_budget_bytes = kPeakBytes};
  stored.plan = scheduler::PlanWithoutActions(stored.pattern.profile);
  stored.plan.strategy = "none";
  return stored;
}

}  // namespace spillway::interposer
