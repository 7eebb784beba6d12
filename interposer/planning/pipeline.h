// From a job's events to its plan: learns the iteration, measures it, asks for a plan, hands it to
// the job, and checks that it keeps fitting.
//
// The planner thread calls it for one job, with its lock held and the job's context current:
//     request = pipeline.Collect(now);
//     answer = Solve(*request);            without the lock: planning takes time
//     pipeline.Take(answer);               and so on, while there is a request
// Invariants
//  1. A plan is handed over only if the validator and the cost model accept it for the budget.
//  2. Recording ends when a plan was followed for a while, and resumes when it no longer fits.
//  3. Operations run again only if this process proved them before the plan was made or accepted.
//  4. A plan is followed only while it is better than none (plan_judge.h). Otherwise it is refused
//     by its prediction, or dropped later. An iteration that fits the budget gets no plan, nor does
//     one that leaves out many of the job's events.
//  5. Without times (`now` stands still) the pipeline depends on the events alone.
// Never: waits for the device.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "interposer/planning/duration_measurement.h"
#include "interposer/planning/former_plan.h"
#include "interposer/planning/known_effects.h"
#include "interposer/planning/least_budget.h"
#include "interposer/planning/plan_making.h"
#include "interposer/planning/plan_source.h"
#include "interposer/planning/plan_store.h"
#include "interposer/planning/plan_verdicts.h"
#include "interposer/planning/planned_job.h"
#include "interposer/planning/step_counts.h"
#include "interposer/planning/stored_iterations.h"
#include "interposer/record/event_log.h"
#include "protocol/message.h"
#include "scheduler/learn/drift_monitor.h"
#include "scheduler/learn/iteration_learner.h"
#include "scheduler/learn/patience.h"
#include "scheduler/learn/plan_judge.h"
#include "scheduler/plan/job_planner.h"

namespace spillway::interposer {

using scheduler::StoredPlan;

struct PipelineCounts {
  std::atomic<std::uint64_t> iterations_followed{0};  // of the adopted plans
  std::atomic<std::uint64_t> plans_adopted{0};
  std::atomic<std::uint64_t> plans_from_store{0};  // of plans_adopted
  std::atomic<std::uint64_t> plans_from_agent{0};  // of plans_adopted: made or kept by the agent
  std::atomic<std::uint64_t> plans_refused{0};
  std::atomic<std::uint64_t> plans_invalid{0};
  std::atomic<std::uint64_t> plans_dropped{0};
  std::atomic<std::uint64_t> planned_at_iteration{0};  // counted by events; 0: no plan yet
  std::atomic<std::uint64_t> planning_ns{0};
  std::atomic<std::uint64_t> predicted_iteration_ns{0};     // of the plan that is followed
  std::atomic<std::uint64_t> lower_bound_ns{0};             // no plan's iteration is shorter
  std::atomic<std::uint64_t> measured_iteration_ns{0};      // a running mean over its iterations
  std::atomic<std::uint64_t> without_plan_iteration_ns{0};  // by the reactive policy; 0: unknown
  std::array<std::atomic<std::uint64_t>, protocol::kReplanReasonNames.size()>
      replans{};  // plans that replaced others
  StepCounts steps;
  KnownEffects effects;
  std::atomic<const char*> not_planned_because{
      "nothing has been recorded: all that it wants fits"};  // null: it has a plan
};

struct PipelineOptions {
  const scheduler::Strategy* strategy = nullptr;
  scheduler::DeviceModel device;
  PlanStore* store = nullptr;  // may be null
  std::uint64_t job_key = 0;
  EventLog* events = nullptr;
  PlanSource* elsewhere = nullptr;  // null: plans are made here
  int device_number = 0;            // the device's number for `elsewhere`
  std::vector<StoredPlan> recalled = {};
};

class Pipeline {
 public:
  Pipeline(PlannedJob* job, const PipelineOptions& options);

  using Request = PlanningRequest;
  using Answer = PlanningAnswer;

  // `more`: there is more to do at once.
  std::optional<Request> Collect(std::uint64_t now_ns, bool* more);
  static Answer Solve(const Request& request) { return MakeOrTakePlan(request); }
  void Take(const Answer& answer);

  // Whether a plan of an earlier run may be recognised from the first event on.
  bool KnowsEarlierRuns() const;
  bool IsRecording() const { return recorder_.IsRecording(); }
  const PipelineCounts& counts() const { return counts_; }

 private:
  using Pattern = std::shared_ptr<const scheduler::IterationPattern>;
  struct Known {
    Pattern pattern;  // with durations
    scheduler::Plan plan;
    std::uint64_t turn = 0;
  };

  void Drain(bool* more);
  void BeginAnew(const std::vector<LiveAllocation>& live);
  std::vector<StoredPlan> PlansOfEarlierRuns() const;
  void NoteDropped();
  void Hear(const Recorder::Drained& drained);
  void Recognise(StoredIterations::Recognised recognised);
  bool Serves(std::int64_t planned_bytes) const;
  std::int64_t PatternSize() const {
    return measurement_ ? measurement_->pattern()->size() : live_ ? live_->pattern().size() : 0;
  }
  void Learned(Pattern pattern);
  // With the same memory: the program may have allocated it anew.
  bool IsFollowed(const scheduler::IterationPattern& pattern) const {
    return live_ && live_->pattern().fingerprint == pattern.fingerprint &&
           live_->pattern().buffers == pattern.buffers;
  }
  bool IsPartOfFollowed(const scheduler::IterationPattern& pattern) const;
  bool Fits(const scheduler::IterationPattern& pattern);
  void NoteFits(Pattern pattern);
  bool IsResting() const { return live_ && live_->action_count() == 0; }
  void Rest(const Pattern& pattern);
  PlanVerdicts::Conditions ConditionsOf(const scheduler::IterationPattern& pattern) const;
  bool IsRefused(const PlanAnswer& plan);
  void NoteTimeBefore(const scheduler::IterationPattern& pattern);
  void JudgePlan(const IterationTime& time);
  void Adopt(std::shared_ptr<const scheduler::LivePlan> live);
  void Follow(const PlanAnswer& plan);
  void NoteFormer(const Answer& answer);
  void GoBack(const PlanAnswer& former);
  void DropPlan(const Pattern& pattern, std::int64_t predicted_ns, std::int64_t planned_ns);
  void KeepVerdict(const scheduler::IterationPattern& pattern);
  void Measure(Pattern pattern);
  void MeasureAgain();
  void AdvanceMeasurement();
  void LeaveUnplanned();
  void FollowRegularity();
  void NoteBudget();
  Pattern AsProven(const scheduler::IterationPattern& pattern);
  void Ask(Pattern timed, std::optional<scheduler::Plan> known, ReplanReason reason);
  void AskFor(std::int64_t budget_bytes, Pattern timed, std::optional<scheduler::Plan> known,
              bool is_stored);
  bool MayAskDriver(std::uint64_t now_ns);
  void Watch(std::uint64_t now_ns);
  void NoteAtRest(const IterationTime& time);
  void Judge(scheduler::DriftVerdict verdict);
  bool TakesAnotherTime();
  void FollowBudget();
  void FollowAwaited();
  bool IsProven(const StoredPlan& stored);
  void FollowProofs();
  void EndRecordingWhenSteady();
  void Remember(Pattern pattern, scheduler::Plan plan);
  void NoteRefusal(const PlanAnswer& answer);
  void Keep(const scheduler::IterationPattern& pattern, const scheduler::Plan& plan,
            std::int64_t budget_bytes, bool is_no_better);

  PlannedJob* const job_;
  Recorder& recorder_;
  const PipelineOptions options_;
  PipelineCounts counts_;
  std::optional<scheduler::IterationLearner> learner_;
  StoredIterations stored_;
  std::optional<StoredPlan> awaited_;  // recognised; waits until all that it runs again is proven
  std::map<std::uint64_t, Known> known_;
  std::uint64_t remembered_ = 0;
  std::optional<DurationMeasurement> measurement_;
  std::optional<Request> request_;
  std::shared_ptr<const scheduler::LivePlan> live_;
  std::optional<scheduler::DriftMonitor> monitor_;
  std::optional<scheduler::PlanJudge> judge_;
  FormerPlan former_;
  std::int64_t before_ns_ = 0;  // the iteration's time just before the next plan; 0: unknown
  PlanVerdicts verdicts_;
  struct OccupiedPeak {
    decltype(scheduler::IterationPattern::fingerprint) fingerprint = 0;
    std::int64_t bytes = 0;
  };
  OccupiedPeak peak_;
  Pattern fits_;  // learned last; needs no plan for this budget
  std::int64_t fits_since_ = 0;
  std::uint64_t calls_ = 0;
  bool may_ask_ = false;
  bool is_measured_freely_ = false;  // no plan moves memory during measurement_
  bool is_irregular_ = false;        // live_ rests because many events are not of its pattern
  LeastBudget least_;
  std::int64_t iteration_tokens_ = 0;  // tokens_ when least_ last ended an iteration
  std::uint64_t iteration_begun_ = 0;  // iterations begun at that moment
  std::uint64_t iterations_ended_ = 0;
  std::uint64_t grown_at_ = 0;  // iterations_ended_ when the budget last fitted the plan's
  std::int64_t asked_bytes_ = 0;
  std::int64_t asked_permille_ = 0;
  std::int64_t live_permille_ = 0;  // that live_ was asked for
  Pattern asked_;
  bool may_be_proven_ = false;  // an iteration ended since proofs were checked
  std::uint64_t dropped_seen_ = 0;
  bool has_begun_ = false;
  std::int64_t tokens_ = 0;  // events that count, since recording first began
  std::int64_t tokens_adopted_ = 0;
  std::int64_t iterations_adopted_ = 0;
  int clean_in_a_row_ = 0;
  int settling_iterations_ = 0;       // still to come, of the plan adopted last
  std::int64_t replanned_at_ns_ = 0;  // an iteration's duration at the last re-measurement
  scheduler::Patience drift_patience_, relearn_patience_;
  std::set<std::string> refusals_;  // texts that not_planned_because points to
  std::uint64_t begun_seen_ = 0;
  std::uint64_t last_begun_ns_ = 0;
};

}  // namespace spillway::interposer
