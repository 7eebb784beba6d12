// A job whose plans are made by a pipeline, and that only pretends to follow them.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "interposer/planning/pipeline.h"
#include "scheduler/plan/strategies/registry.h"
#include "tests/unit/interposer_planning/small_job.h"

namespace spillway::interposer {

inline constexpr std::int64_t kHalf = kPeakBytes / 2;
inline constexpr std::int64_t kChunk = kSmallDevice.chunk_bytes;  // memory that stays free
inline constexpr std::uint64_t kJob = 1;

// The pipeline runs in the calling thread, as with LearnChoice::kWait.
class FakeJob final : public PlannedJob, public RecordListener {
 public:
  explicit FakeJob(PlanStore* store = nullptr, PlanSource* elsewhere = nullptr,
                   std::vector<StoredPlan> recalled = {},
                   std::string_view strategy = scheduler::kDefaultStrategy,
                   EventLog* events = nullptr)
      : pipeline_(this, {.strategy = scheduler::FindStrategy(strategy),
                         .device = kSmallDevice,
                         .store = store,
                         .job_key = kJob,
                         .events = events,
                         .elsewhere = elsewhere,
                         .device_number = 3,
                         .recalled = std::move(recalled)}) {
    recorder_.Attach(this, false);
    BeginRecording();
  }

  Recorder& recorder() override { return recorder_; }
  void Adopt(std::shared_ptr<const scheduler::LivePlan> plan) override {
    adopted.push_back(std::move(plan));
  }
  void BeginRecording() override {
    ++recordings;
    recorder_.Begin({{kWeights, kWeightsBytes - job.unused_bytes}});
  }
  std::int64_t BudgetBytes() override { return budget_bytes; }
  std::int64_t PlannableBytes() override { return budget_bytes - unmovable_bytes; }
  std::int64_t LinkPermille() override { return link_permille; }
  bool MayReplay(std::uint64_t token) override { return proven.count(token) > 0; }
  void ServeEvents() override {
    bool more = true;
    while (more) {
      while (auto request = pipeline_.Collect(0, &more)) pipeline_.Take(Pipeline::Solve(*request));
    }
  }

  // The iteration after which the first plan was there; 0: none within `most`.
  int RunUntilPlanned(int most) {
    for (int iteration = 1; iteration <= most; ++iteration) {
      job.RunIteration();
      if (!adopted.empty()) return iteration;
    }
    return 0;
  }

  std::int64_t budget_bytes = kHalf;
  std::int64_t unmovable_bytes = 0;
  std::int64_t link_permille = 1000;
  int recordings = 0;
  std::set<std::uint64_t> proven;
  std::vector<std::shared_ptr<const scheduler::LivePlan>> adopted;
  const PipelineCounts& counts() const { return pipeline_.counts(); }

 private:
  Recorder recorder_{LearnChoice::kWait};
  Pipeline pipeline_;

 public:
  SmallJob job{&recorder_};
};

}  // namespace spillway::interposer
