// The learner and the planner on what PyTorch's programs really allocate and launch. The recordings
// are made by `tools/pytorch.py --record tests/fixtures/pytorch` (that folder's README).
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "scheduler/learn/iteration_learner.h"
#include "scheduler/networks/devices.h"
#include "scheduler/plan/job_planner.h"
#include "scheduler/plan/strategies/registry.h"
#include "scheduler/trace/event_text.h"
#include "tests/support/paths.h"

namespace spillway::scheduler {
namespace {

constexpr int64_t kChunkBytes = int64_t{2} << 20;

struct Recorded {
  const char* name;
  int64_t learned_at;         // the events until the iteration is known
  int32_t size;               // of the iteration, in events
  int64_t slow_down_percent;  // at half of its peak on an h200, at most

  friend std::ostream& operator<<(std::ostream& out, const Recorded& recorded) {
    return out << recorded.name;
  }
};

EventTrace Read(const std::string& name) {
  const auto text = base::ReadFile(test::Fixture("pytorch/" + name + ".events"));
  base::Result<EventTrace> trace =
      text ? ReadEventText(*text) : base::Result<EventTrace>(text.error());
  EXPECT_TRUE(trace.ok()) << name << ": " << trace.text();
  return trace ? *std::move(trace) : EventTrace{};
}

// Borrows the touches.
JobEvent JobEventOf(const EventTrace& trace, const Event& event, std::vector<JobTouch>* touches) {
  JobEvent out;
  out.kind = static_cast<JobEventKind>(event.kind);
  out.thread = static_cast<uint32_t>(event.thread);
  out.allocation = static_cast<uint64_t>(event.allocation);
  out.content_bytes = event.size_bytes;
  out.size_bytes = (event.size_bytes + kChunkBytes - 1) / kChunkBytes * kChunkBytes;
  if (event.kind == EventKind::kOperation)
    out.shape = ShapeOf(trace.identities[static_cast<size_t>(event.identity)]);
  touches->clear();
  for (const TraceTouch& touch : event.touches)
    touches->push_back({static_cast<uint64_t>(touch.allocation), touch.writes, touch.reads});
  out.touches = *touches;
  return out;
}

struct Learned {
  std::shared_ptr<const IterationPattern> pattern;  // the first one
  int64_t at = 0;
};

Learned Learn(const EventTrace& trace) {
  IterationLearner learner;
  std::vector<JobTouch> touches;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    auto pattern = learner.Add(JobEventOf(trace, trace.events[i], &touches));
    if (pattern) return {std::move(pattern), static_cast<int64_t>(i) + 1};
  }
  return {};
}

std::shared_ptr<const IterationPattern> WithDurations(const IterationPattern& pattern,
                                                      const EventTrace& trace) {
  std::unordered_map<uint64_t, int64_t> times;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kOperation) continue;
    const uint64_t shape = ShapeOf(trace.identities[static_cast<size_t>(event.identity)]);
    times[TokenOf(JobEvent::Operation(shape, {}))] = event.duration_ns;
  }
  std::vector<int64_t> durations_ns;
  for (const PatternEvent& event : pattern.events) {
    if (event.kind == JobEventKind::kOperation) durations_ns.push_back(times[event.token]);
  }
  auto timed = std::make_shared<IterationPattern>(pattern);
  SetDurations(timed.get(), durations_ns);
  return timed;
}

class RecordedJobs : public ::testing::TestWithParam<Recorded> {};

TEST_P(RecordedJobs, TheLearnerFindsTheIteration) {
  const Learned learned = Learn(Read(GetParam().name));

  ASSERT_TRUE(learned.pattern);
  EXPECT_EQ(learned.at, GetParam().learned_at);
  EXPECT_EQ(learned.pattern->size(), GetParam().size);
}

TEST_P(RecordedJobs, ThePlannerKeepsWithinHalfOfThePeak) {
  const EventTrace trace = Read(GetParam().name);
  const Learned learned = Learn(trace);
  ASSERT_TRUE(learned.pattern);
  const auto pattern = WithDurations(*learned.pattern, trace);
  const int64_t busy_ns = BusyNs(pattern->profile);
  ASSERT_GT(busy_ns, 0);
  DeviceModel device = networks::FindDevice("h200")->model;
  device.chunk_bytes = kChunkBytes;

  // Validated and priced by PlanFor.
  const PlanAnswer answer = PlanFor({.pattern = pattern,
                                     .device = device,
                                     .budget_bytes = PeakBytes(pattern->profile) / 2,
                                     .strategy = FindStrategy(kDefaultStrategy)});

  ASSERT_TRUE(answer.live) << answer.status.text();
  EXPECT_GT(answer.live->action_count(), 0);
  EXPECT_GE(answer.live->predicted_ns(), answer.lower_bound_ns);
  EXPECT_LE(answer.live->predicted_ns() * 100 / busy_ns - 100, GetParam().slow_down_percent);
}

INSTANTIATE_TEST_SUITE_P(PyTorch, RecordedJobs,
                         ::testing::Values(Recorded{"gpt2", 1833, 382, 135},
                                           Recorded{"gpt2_accumulated", 5528, 1266, 60},
                                           Recorded{"vit_b_16", 6840, 1465, 120},
                                           Recorded{"resnet18_evaluated", 1797, 365, 285},
                                           Recorded{"resnet50", 4692, 934, 215}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace spillway::scheduler
