#include "interposer/planning/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <set>

#include "base/file.h"
#include "scheduler/plan/strategies/registry.h"
#include "scheduler/trace/event_text.h"
#include "tests/unit/interposer_planning/fake_job.h"

namespace spillway::interposer {
namespace {

// Copies take much longer than operations, so plans recompute wherever they may.
void ProveForward(FakeJob* job) {
  for (std::uint64_t layer = 0; layer < kLayers; ++layer)
    job->proven.insert(scheduler::MixToken(2, 100 + layer));
}

bool RunsAnything(const scheduler::LivePlan& plan) {
  for (std::int32_t event = 0; event < plan.pattern().size(); ++event) {
    if (plan.IsRerunLater(event)) return true;
  }
  return false;
}

// A source of plans, honest or not.
class FakeSource final : public PlanSource {
 public:
  std::vector<StoredPlan> Recall(int, std::uint64_t) override { return {}; }
  std::optional<scheduler::Plan> Make(int device, std::uint64_t program,
                                      const scheduler::PlanOrder& order) override {
    EXPECT_EQ(device, 3);
    EXPECT_EQ(program, kJob);
    orders.push_back(order);
    return make(order);
  }

  std::vector<scheduler::PlanOrder> orders;
  std::function<std::optional<scheduler::Plan>(const scheduler::PlanOrder&)> make;
};

std::optional<scheduler::Plan> MadeFor(const scheduler::PlanOrder& order) {
  return scheduler::PlanFor(
             {.pattern = std::make_shared<const scheduler::IterationPattern>(order.job.pattern),
              .device = order.device,
              .budget_bytes = order.job.budget_bytes,
              .strategy = scheduler::FindStrategy(order.job.plan.strategy)})
      .plan;
}

class PipelineTest : public ::testing::Test {
 protected:
  PipelineTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("pipeline_" + std::to_string(getpid()) + "_" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~PipelineTest() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_;
};

TEST_F(PipelineTest, EventsAreWrittenAsTextUntilTheFirstPlan) {
  const std::string path = folder_ / "events";
  EventLog events(path.c_str());
  FakeJob job(nullptr, nullptr, {}, scheduler::kDefaultStrategy, &events);

  ASSERT_GT(job.RunUntilPlanned(20), 0);
  const std::string until_planned = *base::ReadFile(path);
  job.job.RunIteration();

  EXPECT_EQ(*base::ReadFile(path), until_planned);
  const auto trace = scheduler::ReadEventText(until_planned);
  ASSERT_TRUE(trace.ok()) << trace.text();
  const scheduler::Event& weights = trace->events.front();
  EXPECT_EQ(weights.allocation, static_cast<std::int32_t>(kWeights));
  EXPECT_EQ(weights.size_bytes, kWeightsBytes);
  // Each operation of the plan's iteration is the last iteration's, with its time.
  std::vector<std::pair<std::uint64_t, std::int64_t>> planned, written;
  const scheduler::IterationPattern& pattern = job.adopted.front()->pattern();
  for (const scheduler::PatternEvent& event : pattern.events) {
    if (event.kind != scheduler::JobEventKind::kOperation) continue;
    const scheduler::OperationId operation{event.operation};
    planned.emplace_back(event.token, pattern.profile.at(operation).duration_ns);
  }
  for (const scheduler::Event& event : trace->events) {
    if (event.kind != scheduler::EventKind::kOperation) continue;
    const std::uint64_t shape =
        scheduler::ShapeOf(trace->identities[static_cast<std::size_t>(event.identity)]);
    written.emplace_back(scheduler::TokenOf(scheduler::JobEvent::Operation(shape, {})),
                         event.duration_ns);
  }
  ASSERT_GE(written.size(), 2 * planned.size());
  written.erase(written.begin(), written.end() - static_cast<std::ptrdiff_t>(planned.size()));
  EXPECT_THAT(written, ::testing::UnorderedElementsAreArray(planned));
}

// Without device events, the pipeline waits for three more iterations, and estimates.
TEST_F(PipelineTest, MemoryIsPlannedInGranulesAndCopiesByRequestedBytes) {
  // Given a job whose buffers all end 1 MiB before the end of their last granule
  FakeJob job;
  job.job.unused_bytes = 1 << 20;
  job.BeginRecording();
  ASSERT_GT(job.RunUntilPlanned(12), 0);

  // Then its plan counts the bytes that its copies move, and the walk expects allocations of whole
  // granules
  const scheduler::IterationPattern& pattern = job.adopted[0]->pattern();
  ASSERT_EQ(pattern.buffers.size(), std::size_t{kLayers + 1});
  for (std::size_t i = 0; i < pattern.buffers.size(); ++i) {
    EXPECT_EQ(pattern.buffers[i].size_bytes,
              pattern.buffers[i].persistent ? kWeightsBytes : kActivationBytes);
    EXPECT_EQ(pattern.profile.buffers[i].size_bytes, pattern.buffers[i].size_bytes - (1 << 20));
  }
}

TEST_F(PipelineTest, PlansARepeatingJob) {
  FakeJob job;

  EXPECT_NE(job.RunUntilPlanned(8), 0);

  ASSERT_EQ(job.adopted.size(), 1u);
  EXPECT_GT(job.adopted[0]->action_count(), 0);
  EXPECT_EQ(job.adopted[0]->budget_bytes(), kHalf - kChunk);
  EXPECT_EQ(job.counts().plans_adopted, 1u);
  EXPECT_EQ(job.counts().plans_invalid, 0u);
  EXPECT_GT(job.counts().predicted_iteration_ns, 0u);
  EXPECT_EQ(job.counts().not_planned_because, nullptr);
}

TEST_F(PipelineTest, IterationGetsAPlanOnceItNoLongerFitsTheBudget) {
  FakeJob job;
  job.budget_bytes = 2 * kPeakBytes;
  EXPECT_EQ(job.RunUntilPlanned(8), 0);
  EXPECT_STREQ(job.counts().not_planned_because, "what its iteration uses fits the budget");

  job.budget_bytes = kHalf;
  EXPECT_NE(job.RunUntilPlanned(8), 0);
}

TEST_F(PipelineTest, UnreachableBudgetIsReportedWithItsReason) {
  FakeJob job;
  job.budget_bytes = kActivationBytes;
  EXPECT_EQ(job.RunUntilPlanned(8), 0);
  EXPECT_THAT(job.counts().not_planned_because.load(),
              ::testing::HasSubstr("one operation touches"));
}

TEST_F(PipelineTest, JobThatNeverRepeatsGetsNoPlan) {
  FakeJob job;
  for (int i = 0; i < 50; ++i) {
    for (int foreign = 0; foreign < i; ++foreign) job.job.RunForeignKernel();
    job.recorder().Enqueued(1000 + static_cast<std::uint64_t>(i), {});
    job.recorder().Settle();
  }
  EXPECT_TRUE(job.adopted.empty());
  EXPECT_STREQ(job.counts().not_planned_because, "no iteration has come twice in a row");
}

TEST_F(PipelineTest, SecondRunIsPlannedBeforeItsSecondIteration) {
  // Given a run that left its plan in the store
  PlanStore store(folder_.string());
  FakeJob first(&store);
  ASSERT_NE(first.RunUntilPlanned(8), 0);

  FakeJob second(&store);

  // Then it has the plan by the end of its first iteration, with its own allocation of the weights
  ASSERT_EQ(second.RunUntilPlanned(1), 1);
  EXPECT_EQ(second.counts().plans_from_store, 1u);
  EXPECT_EQ(second.counts().planning_ns, 0u);
  EXPECT_EQ(second.adopted[0]->action_count(), first.adopted[0]->action_count());
  std::vector<std::uint64_t> persistent;
  for (const scheduler::PatternBuffer& buffer : second.adopted[0]->pattern().buffers) {
    if (buffer.persistent) persistent.push_back(buffer.allocation);
  }
  EXPECT_EQ(persistent, (std::vector<std::uint64_t>{kWeights}));
}

TEST_F(PipelineTest, StoredIterationIsPlannedAnewForAnotherBudget) {
  PlanStore store(folder_.string());
  FakeJob first(&store);
  ASSERT_NE(first.RunUntilPlanned(8), 0);

  FakeJob second(&store);
  second.budget_bytes = kPeakBytes;
  ASSERT_EQ(second.RunUntilPlanned(1), 1);

  EXPECT_GT(second.adopted[0]->budget_bytes(), kPeakBytes / 100 * 95);
  EXPECT_LT(second.adopted[0]->action_count(), first.adopted[0]->action_count());
}

// Regression: `run --strategy vdnn-all` left its plan to all later runs, whatever their strategy.
TEST_F(PipelineTest, StoredIterationIsPlannedAnewByAnotherStrategy) {
  PlanStore store(folder_.string());
  FakeJob first(&store, nullptr, {}, "vdnn-all");
  ASSERT_NE(first.RunUntilPlanned(8), 0);
  ASSERT_EQ(first.adopted[0]->strategy(), "vdnn-all");

  FakeJob second(&store);
  ASSERT_EQ(second.RunUntilPlanned(1), 1);
  EXPECT_EQ(second.adopted[0]->strategy(), scheduler::kDefaultStrategy);
  EXPECT_LT(second.adopted[0]->predicted_ns(), first.adopted[0]->predicted_ns());
}

TEST_F(PipelineTest, StoredPlanOfAnotherJobIsNotUsed) {
  PlanStore store(folder_.string());
  store.Keep(kJob, [] {
    StoredPlan other = SmallStoredPlan();
    for (scheduler::PatternEvent& event : other.pattern.events) event.token += 1;
    other.pattern.fingerprint = scheduler::FingerprintOf(other.pattern);
    return other;
  }());

  FakeJob job(&store);

  EXPECT_EQ(job.RunUntilPlanned(1), 0);
  EXPECT_EQ(job.counts().plans_from_store, 0u);
}

TEST_F(PipelineTest, ShrunkBudgetIsPlannedFor) {
  FakeJob job;
  ASSERT_NE(job.RunUntilPlanned(8), 0);

  job.budget_bytes = kHalf * 3 / 4;
  job.job.RunIteration();

  ASSERT_EQ(job.adopted.size(), 2u);
  EXPECT_EQ(job.adopted[1]->budget_bytes(), kHalf * 3 / 4 - kChunk);
}

TEST_F(PipelineTest, GrownBudgetIsPlannedForWhenItLasts) {
  FakeJob job;
  ASSERT_NE(job.RunUntilPlanned(8), 0);

  // Given a neighbour that lends memory and takes it back within an iteration
  for (int i = 0; i < 5; ++i) {
    job.budget_bytes = kHalf * 5 / 4;
    job.job.RunForeignKernel();
    job.job.RunIteration();
    job.budget_bytes = kHalf;
    job.job.RunForeignKernel();
  }
  EXPECT_EQ(job.adopted.size(), 1u);

  job.budget_bytes = kHalf * 5 / 4;
  for (int i = 0; i < 5; ++i) job.job.RunIteration();

  ASSERT_EQ(job.adopted.size(), 2u);
  EXPECT_EQ(job.adopted[1]->budget_bytes(), kHalf * 5 / 4 - kChunk);
}

TEST_F(PipelineTest, NewLinkShareIsPlannedForOnce) {
  FakeJob job;
  ASSERT_GT(job.RunUntilPlanned(8), 0);
  const size_t before = job.adopted.size();

  job.link_permille = 250;
  for (int i = 0; i < 3; ++i) job.job.RunIteration();

  EXPECT_EQ(job.adopted.size(), before + 1);
}

TEST_F(PipelineTest, UnreachableBudgetIsPlannedForOnce) {
  FakeJob job;
  ASSERT_NE(job.RunUntilPlanned(8), 0);

  job.budget_bytes = kActivationBytes;
  job.job.RunIteration();
  job.job.RunIteration();

  EXPECT_EQ(job.adopted.size(), 1u);
  EXPECT_EQ(job.counts().plans_refused + job.counts().plans_invalid, 1u);
}

// Unmovable memory comes and goes within each iteration.
TEST_F(PipelineTest, PlansForTheLeastBudgetOfAnIteration) {
  FakeJob job;
  const auto run_iteration = [&job] {
    job.unmovable_bytes = kHalf / 10;
    job.job.RunForeignKernel();
    job.unmovable_bytes = 0;
    job.job.RunIteration();
  };
  for (int i = 0; i < 20; ++i) run_iteration();

  ASSERT_EQ(job.adopted.size(), 1u);
  EXPECT_EQ(job.adopted[0]->budget_bytes(), kHalf - kHalf / 10 - kChunk);
}

TEST_F(PipelineTest, SmallBudgetChangesAreIgnored) {
  FakeJob job;
  ASSERT_NE(job.RunUntilPlanned(8), 0);

  job.budget_bytes += job.budget_bytes / 50;
  job.job.RunIteration();

  EXPECT_EQ(job.adopted.size(), 1u);
}

TEST_F(PipelineTest, OperationsProvenLaterAreRecomputedByTheNextPlan) {
  FakeJob job;
  job.job.changes_weights = false;
  ASSERT_NE(job.RunUntilPlanned(8), 0);
  EXPECT_FALSE(RunsAnything(*job.adopted.back()));

  ProveForward(&job);
  job.job.RunIteration();
  job.job.RunIteration();

  ASSERT_EQ(job.adopted.size(), 2u);
  EXPECT_TRUE(RunsAnything(*job.adopted[1]));
  EXPECT_LT(job.adopted[1]->predicted_ns(), job.adopted[0]->predicted_ns());
  for (int i = 0; i < 4; ++i) job.job.RunIteration();
  EXPECT_EQ(job.adopted.size(), 2u);
}

// They were refuted, or the program lets others see its work. A plan that counts on them would wait
// for the copies that it did not foresee, in each iteration.
TEST_F(PipelineTest, PlanWithoutOperationsThatAreProvenNoLonger) {
  FakeJob job;
  job.job.changes_weights = false;
  ProveForward(&job);
  ASSERT_NE(job.RunUntilPlanned(8), 0);
  ASSERT_TRUE(RunsAnything(*job.adopted.back()));
  const std::size_t plans = job.adopted.size();

  job.proven.clear();
  job.job.RunIteration();
  job.job.RunIteration();

  ASSERT_EQ(job.adopted.size(), plans + 1);
  EXPECT_FALSE(RunsAnything(*job.adopted.back()));
  for (int i = 0; i < 4; ++i) job.job.RunIteration();
  EXPECT_EQ(job.adopted.size(), plans + 1);
}

TEST_F(PipelineTest, StoredPlanWaitsUntilItsRecomputationsAreProven) {
  // Given a run that left a plan with recomputations
  PlanStore store(folder_.string());
  FakeJob first(&store);
  first.job.changes_weights = false;
  ProveForward(&first);
  ASSERT_NE(first.RunUntilPlanned(8), 0);
  ASSERT_TRUE(RunsAnything(*first.adopted[0]));

  // When the same job runs again and has proven nothing by the end of its first iteration
  FakeJob second(&store);
  second.job.changes_weights = false;
  ASSERT_EQ(second.RunUntilPlanned(1), 0);

  // Then the plan is followed as soon as the operations are proven
  second.proven = first.proven;
  ASSERT_EQ(second.RunUntilPlanned(1), 1);
  EXPECT_EQ(second.counts().plans_from_store, 1u);
  EXPECT_EQ(second.counts().planning_ns, 0u);
  EXPECT_TRUE(RunsAnything(*second.adopted[0]));
}

TEST_F(PipelineTest, StoredPlanWithUnprovenRecomputationsIsReplacedByOneWithout) {
  PlanStore store(folder_.string());
  FakeJob first(&store);
  first.job.changes_weights = false;
  ProveForward(&first);
  ASSERT_NE(first.RunUntilPlanned(8), 0);

  FakeJob second(&store);
  second.job.changes_weights = false;
  ASSERT_GT(second.RunUntilPlanned(8), 1);

  EXPECT_EQ(second.counts().plans_from_store, 0u);
  EXPECT_FALSE(RunsAnything(*second.adopted[0]));
}

TEST_F(PipelineTest, PlanMadeByTheAgentIsFollowedAndKept) {
  PlanStore store(folder_.string());
  FakeSource source;
  source.make = MadeFor;
  FakeJob job(&store, &source);

  ASSERT_NE(job.RunUntilPlanned(8), 0);

  ASSERT_EQ(source.orders.size(), 1u);
  EXPECT_EQ(source.orders[0].job.budget_bytes, kHalf - kChunk);
  EXPECT_EQ(source.orders[0].job.job_budget_bytes, kHalf);
  EXPECT_EQ(source.orders[0].device, kSmallDevice);
  EXPECT_EQ(job.counts().plans_from_agent, 1u);
  EXPECT_TRUE(store.Has(kJob));
}

// No plan, a plan beyond the budget, and a plan with unknown buffers: the job then makes its own.
TEST_F(PipelineTest, UselessRemotePlanIsReplacedByTheJobsOwn) {
  FakeJob alone;
  ASSERT_NE(alone.RunUntilPlanned(8), 0);
  const auto nothing = [](const scheduler::PlanOrder&) { return std::optional<scheduler::Plan>(); };
  const auto too_large = [](const scheduler::PlanOrder& order) {
    return std::optional(scheduler::PlanWithoutActions(order.job.pattern.profile));
  };
  const auto nonsense = [](const scheduler::PlanOrder& order) {
    scheduler::Plan plan = *MadeFor(order);
    plan.actions.push_back(
        {.kind = scheduler::ActionKind::kPrefetch, .buffer = {1 << 20}, .step = -7});
    plan.steps.resize(3);
    return std::optional(plan);
  };

  for (const auto& make :
       {decltype(FakeSource::make)(nothing), decltype(FakeSource::make)(too_large),
        decltype(FakeSource::make)(nonsense)}) {
    FakeSource source;
    source.make = make;
    FakeJob job(nullptr, &source);
    ASSERT_NE(job.RunUntilPlanned(8), 0);
    EXPECT_EQ(source.orders.size(), 1u);
    EXPECT_EQ(job.counts().plans_from_agent, 0u);
    EXPECT_EQ(job.adopted[0]->action_count(), alone.adopted[0]->action_count());
    EXPECT_EQ(job.adopted[0]->predicted_ns(), alone.adopted[0]->predicted_ns());
  }
}

TEST_F(PipelineTest, PlanKeptByTheAgentIsRecognisedInTheFirstIteration) {
  PlanStore store(folder_.string());
  FakeJob first(&store);
  ASSERT_NE(first.RunUntilPlanned(8), 0);

  FakeJob second(nullptr, nullptr, store.Find(kJob));

  ASSERT_EQ(second.RunUntilPlanned(1), 1);
  EXPECT_EQ(second.counts().plans_from_store, 1u);
}

TEST_F(PipelineTest, PlanKeptByTheAgentForAnotherJobIsForgotten) {
  StoredPlan foreign = SmallStoredPlan();
  for (scheduler::PatternEvent& event : foreign.pattern.events) event.token += 1;
  FakeJob job(nullptr, nullptr, {foreign});

  EXPECT_GT(job.RunUntilPlanned(8), 1);
  EXPECT_EQ(job.counts().plans_from_store, 0u);
}

}  // namespace
}  // namespace spillway::interposer
