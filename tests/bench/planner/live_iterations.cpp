#include "tests/bench/planner/live_iterations.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "scheduler/learn/iteration_learner.h"
#include "scheduler/networks/catalog.h"
#include "scheduler/networks/devices.h"
#include "scheduler/networks/training_step.h"
#include "scheduler/plan/presumed_reads.h"
#include "scheduler/trace/event_text.h"
#include "tests/support/paths.h"

namespace spillway::papers {

using namespace scheduler;

namespace {

constexpr int64_t kChunkBytes = int64_t{2} << 20;
constexpr int32_t kFlopsPercent = 75, kMemoryPercent = 80;  // as in profiles.cpp

// A pattern with an event for each operation. The planner reads no more of one.
std::shared_ptr<const IterationPattern> PatternOf(IterationProfile profile) {
  auto pattern = std::make_shared<IterationPattern>();
  pattern->buffers.resize(profile.buffers.size());
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    PatternEvent event;
    event.token = i;
    event.operation = static_cast<int32_t>(i);
    pattern->events.push_back(event);
  }
  pattern->profile = std::move(profile);
  return pattern;
}

bool ChangesInPlace(const Operation& operation) {
  return std::any_of(operation.writes.begin(), operation.writes.end(), [&](BufferId id) {
    return std::find(operation.reads.begin(), operation.reads.end(), id) != operation.reads.end();
  });
}

std::shared_ptr<const IterationPattern> AsKnownByExperiment(const networks::LayerGraph& graph) {
  networks::TrainingStep step = networks::MakeTrainingStep(graph, networks::UpdatePlace::kAtEnd);
  networks::SetDurations(
      step, networks::EffectiveRates(*networks::FindDevice("h200"), kFlopsPercent, kMemoryPercent));
  IterationProfile profile = std::move(step.profile);
  for (Buffer& buffer : profile.buffers) buffer.kind = BufferKind::kOther;
  for (Operation& operation : profile.operations) {
    operation.type = OperationType::kOther;
    operation.phase = Phase::kForward;
    operation.workspaces.clear();
    operation.replayable = operation.writes.size() == 1 && !ChangesInPlace(operation);
    operation.presumed_reads.clear();
    for (const BufferId id : operation.reads) {
      const auto& writes = operation.writes;
      if (std::find(writes.begin(), writes.end(), id) == writes.end())
        operation.presumed_reads.push_back(id);
    }
  }
  KeepOutputsAtPresumedReads(&profile);
  return PatternOf(std::move(profile));
}

// The graph of the fewest layers with at least so many operations in a training step.
template <class MakeGraph>
LiveIteration Deep(int64_t operations, int first, int step, MakeGraph make) {
  int layers = first;
  const auto count = [&](int of) {
    return static_cast<int64_t>(networks::MakeTrainingStep(make(of), networks::UpdatePlace::kAtEnd)
                                    .profile.operations.size());
  };
  const int64_t base = count(first), more = count(first + step) - base;
  layers += static_cast<int>((std::max<int64_t>(0, operations - base) + more - 1) / more) * step;
  const networks::LayerGraph graph = make(layers);
  return {graph.name(), AsKnownByExperiment(graph)};
}

[[noreturn]] void Stop(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

EventTrace ReadRecording(const std::string& name) {
  const auto text = base::ReadFile(test::Fixture("pytorch/" + name + ".events"));
  if (!text) Stop("no recording " + name);
  base::Result<EventTrace> trace = ReadEventText(*text);
  if (!trace) Stop(trace.text());
  return *std::move(trace);
}

uint64_t ShapeIn(const EventTrace& trace, const Event& event) {
  return ShapeOf(trace.identities[static_cast<size_t>(event.identity)]);
}

std::shared_ptr<const IterationPattern> LearnedFrom(const EventTrace& trace) {
  IterationLearner learner;
  std::vector<JobTouch> touches;
  for (const Event& event : trace.events) {
    JobEvent out;
    out.kind = static_cast<JobEventKind>(event.kind);
    out.thread = static_cast<uint32_t>(event.thread);
    out.allocation = static_cast<uint64_t>(event.allocation);
    out.content_bytes = event.size_bytes;
    out.size_bytes = (event.size_bytes + kChunkBytes - 1) / kChunkBytes * kChunkBytes;
    if (event.kind == EventKind::kOperation) out.shape = ShapeIn(trace, event);
    touches.clear();
    for (const TraceTouch& touch : event.touches)
      touches.push_back({static_cast<uint64_t>(touch.allocation), touch.writes, touch.reads});
    out.touches = touches;
    if (auto pattern = learner.Add(out)) return pattern;
  }
  Stop("the recording has no iteration");
}

IterationProfile WithDurations(const IterationPattern& pattern, const EventTrace& trace) {
  std::unordered_map<uint64_t, int64_t> times;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kOperation)
      times[TokenOf(JobEvent::Operation(ShapeIn(trace, event), {}))] = event.duration_ns;
  }
  IterationProfile profile = pattern.profile;
  for (const PatternEvent& event : pattern.events) {
    if (event.kind == JobEventKind::kOperation)
      profile.operations[static_cast<size_t>(event.operation)].duration_ns = times[event.token];
  }
  return profile;
}

// Persistent buffers are shared; all others are new each time.
IterationProfile Repeated(const IterationProfile& once, int64_t times) {
  IterationProfile all;
  all.name = once.name;
  std::vector<BufferId> now(once.buffers.size());
  for (int64_t time = 0; time < times; ++time) {
    const auto first = static_cast<int32_t>(all.operations.size());
    for (size_t i = 0; i < once.buffers.size(); ++i) {
      if (time > 0 && once.buffers[i].persistent) continue;
      now[i] = {static_cast<int32_t>(all.buffers.size())};
      Buffer buffer = once.buffers[i];
      buffer.handed_on = false;
      if (!buffer.persistent) {
        buffer.born.index += first;
        buffer.dies.index += first;
      }
      all.buffers.push_back(std::move(buffer));
    }
    for (Operation operation : once.operations) {
      for (auto* ids : {&operation.reads, &operation.writes, &operation.presumed_reads}) {
        for (BufferId& id : *ids) id = now[static_cast<size_t>(id.index)];
      }
      all.operations.push_back(std::move(operation));
    }
  }
  return all;
}

}  // namespace

LiveIteration DeepGpt2(int64_t operations) {
  return Deep(operations, 2, 1, [](int layers) {
    return networks::Transformer({.name = "gpt2_" + std::to_string(layers),
                                  .layers = layers,
                                  .vocabulary = 50257,
                                  .norm_first = true},
                                 4, 512);
  });
}

LiveIteration DeepResNet(int64_t operations) {
  return Deep(operations, 2, 1, [](int blocks) {
    return networks::Resnet({{6, 32, blocks, 6}, true}, 16);
  });
}

LiveIteration RecordedPyTorch(const std::string& name, int64_t operations) {
  const EventTrace trace = ReadRecording(name);
  const IterationProfile once = WithDurations(*LearnedFrom(trace), trace);
  const auto size = static_cast<int64_t>(once.operations.size());
  const int64_t times = std::max<int64_t>(1, (operations + size / 2) / size);
  return {name + " x" + std::to_string(times), PatternOf(Repeated(once, times))};
}

}  // namespace spillway::papers
