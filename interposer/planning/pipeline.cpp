#include "interposer/planning/pipeline.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "interposer/planning/recorded_events.h"
#include "scheduler/learn/running_mean.h"
#include "scheduler/plan/presumed_reads.h"

namespace spillway::interposer {
namespace {

using scheduler::DriftVerdict;
using scheduler::IterationPattern;
using scheduler::JobEvent;

constexpr int kEventsAtOnce = 1 << 14;
// Recorded iterations of a plan. Longer ones (gradient accumulation) have then shown themselves.
constexpr std::int64_t kRecordedIterations = 24;
constexpr int kCleanIterations = 3;
// A plan's first iterations begin with memory where the previous plan left it.
constexpr int kSettlingIterations = 2;
constexpr std::int64_t kDriftPercent = 10;
constexpr std::size_t kMostKnown = 16;
constexpr std::uint64_t kLostAfterNs = 10'000'000'000;
// Unmovable memory grows during a job's first iteration: an early plan leaves this much free.
constexpr std::int64_t kEarlyReservePercent = 4;
// An iteration that fits the budget is taken for the job's own after this many events.
constexpr std::int64_t kFitsForEvents = 1 << 16;
constexpr const char* kNoBetter = "its plan was no better than none, and was dropped";
constexpr const char* kIrregular = "too many events lie outside the iteration that was found";
// An irregular job is measured again after this many iterations without an unknown event.
constexpr int kRegularIterations = 2;
// Over its own budget.
constexpr std::int64_t kBudgetSlackPercent = 5;
// A larger budget is planned for after this many iterations: lent memory may soon be revoked.
constexpr std::uint64_t kGrowthPatience = 3;

}  // namespace

Pipeline::Pipeline(PlannedJob* job, const PipelineOptions& options)
    : job_(job), recorder_(job->recorder()), options_(options) {}

std::optional<Pipeline::Request> Pipeline::Collect(std::uint64_t now_ns, bool* more) {
  may_ask_ = MayAskDriver(now_ns);
  NoteBudget();
  Drain(more);
  AdvanceMeasurement();
  Watch(now_ns);
  FollowBudget();
  FollowAwaited();
  FollowProofs();
  FollowRegularity();
  EndRecordingWhenSteady();
  if (options_.events) options_.events->Flush();
  return std::exchange(request_, std::nullopt);
}

void Pipeline::Drain(bool* more) {
  Recorder::Drained drained;
  std::vector<LiveAllocation> live;
  for (int i = 0; i < kEventsAtOnce; ++i) {
    if (recorder_.TakeRecordingStart(&live)) BeginAnew(live);
    if (!recorder_.Next(&drained)) {
      *more = false;
      return NoteDropped();
    }
    Hear(drained);
  }
  *more = true;
}

void Pipeline::NoteDropped() {
  const std::uint64_t dropped = recorder_.dropped_events();
  if (dropped != dropped_seen_ && learner_) learner_->AddGap();
  dropped_seen_ = dropped;
}

void Pipeline::BeginAnew(const std::vector<LiveAllocation>& live) {
  learner_.emplace();
  if (!live_) counts_.not_planned_because = "no iteration has come twice in a row";
  for (const LiveAllocation& allocation : live) {
    learner_->AddAlive(allocation.id, OccupiedBytes(allocation.requested_bytes),
                       allocation.requested_bytes);
    if (options_.events) options_.events->AddAlive(allocation);
  }
  if (!std::exchange(has_begun_, true)) stored_.Begin(PlansOfEarlierRuns());
}

bool Pipeline::KnowsEarlierRuns() const {
  return !options_.recalled.empty() || (options_.store && options_.store->Has(options_.job_key));
}

// Plans of the job's own store come first.
std::vector<StoredPlan> Pipeline::PlansOfEarlierRuns() const {
  std::vector<StoredPlan> plans;
  if (options_.store) plans = options_.store->Find(options_.job_key);
  plans.insert(plans.end(), options_.recalled.begin(), options_.recalled.end());
  return plans;
}

void Pipeline::Hear(const Recorder::Drained& drained) {
  const JobEvent event = EventOf(drained);
  if (options_.events) options_.events->Add(drained);
  if (scheduler::HasToken(event.kind)) ++tokens_;
  if (measurement_) measurement_->Note(event, drained.event.sample);
  if (Pattern pattern = learner_ ? learner_->Add(event) : nullptr) Learned(std::move(pattern));
  if (auto recognised = stored_.Observe(event)) Recognise(std::move(*recognised));
}

// The unmovable part of the budget is still unknown. It is assumed to be as in the earlier run.
void Pipeline::Recognise(StoredIterations::Recognised recognised) {
  auto& [stored, pattern] = recognised;
  const bool is_asked_for = stored.job_budget_bytes == least_.budget_bytes() &&
                            stored.plan.strategy == options_.strategy->name();
  if (is_asked_for) {
    verdicts_.NoteWithout(ConditionsOf(*pattern), stored.without_ns);
    if (stored.is_no_better) {
      verdicts_.NoteDropped(ConditionsOf(*pattern), 1);
      return Learned(std::move(pattern));
    }
    stored.pattern = *pattern;
    Remember(pattern, stored.plan);
    awaited_ = std::move(stored);
    FollowAwaited();
  } else {
    AskFor(least_.bytes() - least_.bytes() / 100 * kEarlyReservePercent, std::move(pattern),
           std::nullopt, true);
  }
}

void Pipeline::Learned(Pattern pattern) {
  const bool is_measured =
      measurement_ && measurement_->pattern()->fingerprint == pattern->fingerprint;
  if (IsFollowed(*pattern) || is_measured || IsPartOfFollowed(*pattern)) return;
  // A loop is learned before the stored iteration that contains it is recognised.
  if (stored_.MayContain(*pattern)) return;
  if (Fits(*pattern)) return NoteFits(std::move(pattern));
  stored_.GiveUp();
  awaited_.reset();
  const bool is_dropped = verdicts_.HasDropped(ConditionsOf(*pattern));
  if (is_dropped) counts_.not_planned_because = kNoBetter;
  // A plan for a part of the new iteration would move memory for that part alone.
  if (is_dropped || (live_ && scheduler::Contains(*pattern, live_->pattern()))) Rest(pattern);
  if (is_dropped) return;
  const auto known = known_.find(pattern->fingerprint);
  if (known == known_.end()) return Measure(std::move(pattern));
  std::vector<std::int64_t> durations_ns;
  for (const scheduler::Operation& operation : known->second.pattern->profile.operations)
    durations_ns.push_back(operation.duration_ns);
  auto timed = std::make_shared<IterationPattern>(*pattern);
  scheduler::SetDurations(timed.get(), durations_ns);
  Ask(std::move(timed), known->second.plan, ReplanReason::kDrift);
}

// Only while the job follows the plan: an evaluation begins like a training iteration.
bool Pipeline::IsPartOfFollowed(const IterationPattern& pattern) const {
  const bool is_followed =
      live_ && (clean_in_a_row_ > 0 || tokens_ - tokens_adopted_ < 2 * live_->pattern().size());
  return is_followed && scheduler::Contains(live_->pattern(), pattern);
}

bool Pipeline::Fits(const IterationPattern& pattern) {
  if (pattern.fingerprint != peak_.fingerprint)
    peak_ = {pattern.fingerprint, OccupiedPeakBytes(pattern)};
  return peak_.bytes <= least_.bytes();
}

void Pipeline::NoteFits(Pattern pattern) {
  if (!live_) counts_.not_planned_because = "what its iteration uses fits the budget";
  fits_ = std::move(pattern);
  fits_since_ = tokens_;
}

// Follows the job's events, so that a change is noticed; the reactive policy moves its memory.
void Pipeline::Rest(const Pattern& pattern) {
  const auto resting = RestingPlan(pattern, least_.bytes());
  if (!resting) return;
  former_.Forget();
  Adopt(resting);
  asked_ = AsProven(*pattern);
  asked_bytes_ = least_.bytes();
  asked_permille_ = job_->LinkPermille();
  counts_.predicted_iteration_ns = counts_.measured_iteration_ns = counts_.lower_bound_ns = 0;
}

PlanVerdicts::Conditions Pipeline::ConditionsOf(const IterationPattern& pattern) const {
  return {pattern.fingerprint, least_.budget_bytes(), job_->LinkPermille()};
}

void Pipeline::Measure(Pattern pattern) {
  is_measured_freely_ = (!live_ || IsResting()) && !job_->Parks();
  measurement_.emplace(std::move(pattern));
  if (!live_) counts_.not_planned_because = "the iteration's operations are being measured";
  recorder_.samples().Start(measurement_->SamplesWanted());
}

void Pipeline::AdvanceMeasurement() {
  if (!measurement_) return;
  const bool is_hopeless = measurement_->IsHopeless();
  if (measurement_->AllAreTaken() || is_hopeless) recorder_.samples().Stop();
  if (may_ask_) measurement_->Read(&recorder_.samples());
  const bool is_regular = measurement_->IsRegular();
  if (!is_hopeless && !(measurement_->IsDone() && is_regular)) return;
  if (!is_regular) return LeaveUnplanned();
  auto timed = std::make_shared<IterationPattern>(*measurement_->pattern());
  scheduler::SetDurations(timed.get(), measurement_->DurationsNs());
  NoteTimeBefore(*timed);
  measurement_.reset();
  recorder_.samples().Release();
  Ask(std::move(timed), std::nullopt, ReplanReason::kDrift);
}

// What was found is a loop inside an iteration that changes, or no iteration at all. A plan for it
// would move memory that the other events need.
void Pipeline::LeaveUnplanned() {
  const Pattern pattern = measurement_->pattern();
  measurement_.reset();
  recorder_.samples().Release();
  if (live_ && !IsResting()) return;
  Rest(pattern);
  is_irregular_ = true;
  counts_.not_planned_because = kIrregular;
}

void Pipeline::FollowRegularity() {
  if (!is_irregular_ || measurement_ || clean_in_a_row_ < kRegularIterations) return;
  is_irregular_ = false;
  MeasureAgain();
}

void Pipeline::MeasureAgain() {
  if (!recorder_.IsRecording()) job_->BeginRecording();
  Measure(live_->shared_pattern());
}

// With another plan, the iteration's time is only what the next plan is judged by.
void Pipeline::NoteTimeBefore(const IterationPattern& pattern) {
  before_ns_ = job_->Parks() ? 0 : measurement_->IterationNs(&recorder_.samples());
  const bool is_known = verdicts_.WithoutNs(ConditionsOf(pattern)) > 0;
  if (is_measured_freely_ && !is_known) verdicts_.NoteWithout(ConditionsOf(pattern), before_ns_);
}

Pipeline::Pattern Pipeline::AsProven(const IterationPattern& pattern) {
  auto proven = std::make_shared<IterationPattern>(pattern);
  scheduler::RefineTouches(proven.get(),
                           [this](std::uint64_t token) { return job_->RolesOf(token); });
  scheduler::SetReplayable(proven.get(),
                           [this](std::uint64_t token) { return job_->MayReplay(token); });
  counts_.effects.Note(pattern, *proven);
  scheduler::KeepOutputsAtPresumedReads(&proven->profile);
  return proven;
}

// Leaves a chunk free: the plan still serves when unmovable memory grows by one.
void Pipeline::Ask(Pattern timed, std::optional<scheduler::Plan> known, ReplanReason reason) {
  const auto rival = known ? known_.end() : known_.find(timed->fingerprint);
  AskFor(least_.bytes() - options_.device.chunk_bytes, std::move(timed), std::move(known), false);
  request_->reason = reason;
  if (rival != known_.end()) request_->rival = rival->second.plan;
}

void Pipeline::AskFor(std::int64_t budget_bytes, Pattern timed,
                      std::optional<scheduler::Plan> known, bool is_stored) {
  asked_bytes_ = std::max<std::int64_t>(budget_bytes, 1);
  asked_permille_ = job_->LinkPermille();
  asked_ = AsProven(*timed);
  request_ = Request{.asked = {.pattern = asked_,
                               .device = options_.device,
                               .budget_bytes = asked_bytes_,
                               .strategy = options_.strategy},
                     .known = std::move(known),
                     .is_stored = is_stored,
                     .elsewhere = options_.elsewhere,
                     .device_number = options_.device_number,
                     .program = options_.job_key,
                     .job_budget_bytes = least_.budget_bytes()};
}

void Pipeline::Take(const Answer& answer) {
  counts_.planning_ns += answer.planning_ns;
  const PlanAnswer& plan = answer.plan;
  if (!plan.live) return NoteRefusal(plan);
  if (IsRefused(plan)) return;
  counts_.not_planned_because = nullptr;
  if (live_) ++counts_.replans[static_cast<std::size_t>(answer.reason)];
  NoteFormer(answer);
  Follow(plan);
  const std::int64_t without_ns = verdicts_.WithoutNs(ConditionsOf(live_->pattern()));
  const std::int64_t before_ns = std::exchange(before_ns_, 0);
  if (!IsResting()) judge_.emplace(without_ns > 0 ? without_ns : before_ns);
  counts_.without_plan_iteration_ns = static_cast<std::uint64_t>(without_ns);
  if (counts_.plans_adopted++ == 0)
    counts_.planned_at_iteration =
        static_cast<std::uint64_t>(tokens_ / live_->pattern().size() + 1);
  if (answer.is_stored) ++counts_.plans_from_store;
  if (answer.is_from_elsewhere) ++counts_.plans_from_agent;
  if (options_.events) options_.events->End(live_->pattern());
  if (answer.is_new)
    Keep(live_->pattern(), plan.plan, live_->budget_bytes(), false);
  else if (options_.store)
    options_.store->NoteUse(options_.job_key, live_->pattern().fingerprint);
}

void Pipeline::Adopt(std::shared_ptr<const scheduler::LivePlan> live) {
  live_ = std::move(live);
  live_permille_ = asked_permille_;
  is_irregular_ = false;
  job_->Adopt(live_);
  fits_.reset();
  monitor_.emplace(live_->pattern().size(), live_->predicted_ns());
  judge_.reset();
  tokens_adopted_ = tokens_;
  iterations_adopted_ = static_cast<std::int64_t>(recorder_.iterations().begun());
  clean_in_a_row_ = 0;
}

void Pipeline::Follow(const PlanAnswer& plan) {
  Adopt(plan.live);
  counts_.predicted_iteration_ns = static_cast<std::uint64_t>(live_->predicted_ns());
  counts_.lower_bound_ns = static_cast<std::uint64_t>(plan.lower_bound_ns);
  counts_.measured_iteration_ns = 0;
  settling_iterations_ = kSettlingIterations;
  Remember(live_->shared_pattern(), plan.plan);
}

void Pipeline::NoteFormer(const Answer& answer) {
  former_.Forget();
  if (!IsFollowed(answer.plan.live->pattern()) || IsResting()) return;
  const auto known = known_.find(live_->pattern().fingerprint);
  if (answer.reason != ReplanReason::kDrift || live_permille_ != asked_permille_ ||
      known == known_.end())
    return;
  former_.Note({.live = live_,
                .plan = known->second.plan,
                .lower_bound_ns = static_cast<std::int64_t>(counts_.lower_bound_ns.load()),
                .status = {}},
               static_cast<std::int64_t>(counts_.measured_iteration_ns.load()));
}

// The new measurements were no better, so the next drift must last longer to be believed.
void Pipeline::GoBack(const PlanAnswer& former) {
  if (!Serves(former.live->budget_bytes()) || job_->LinkPermille() != live_permille_) return;
  drift_patience_.Double();
  Follow(former);
  asked_bytes_ = live_->budget_bytes();
  judge_.emplace(verdicts_.WithoutNs(ConditionsOf(live_->pattern())));
  Keep(live_->pattern(), former.plan, live_->budget_bytes(), false);
}

// Refuses a plan whose prediction is no better than no plan, or than a dropped plan.
bool Pipeline::IsRefused(const PlanAnswer& plan) {
  const Pattern& pattern = plan.live->shared_pattern();
  const PlanVerdicts::Conditions conditions = ConditionsOf(*pattern);
  const std::int64_t predicted_ns = plan.live->predicted_ns();
  const std::int64_t without_ns = verdicts_.WithoutNs(conditions);
  if (plan.live->action_count() == 0) return false;
  if (!verdicts_.IsWorthTrying(conditions, predicted_ns)) {
    if (!live_) Rest(pattern);
    return true;
  }
  if (without_ns == 0 || predicted_ns < without_ns) return false;
  DropPlan(pattern, predicted_ns, predicted_ns);
  return true;
}

void Pipeline::DropPlan(const Pattern& pattern, std::int64_t predicted_ns,
                        std::int64_t planned_ns) {
  const std::int64_t without_ns = verdicts_.WithoutNs(ConditionsOf(*pattern));
  verdicts_.NoteDropped(ConditionsOf(*pattern), predicted_ns);
  ++counts_.plans_dropped;
  counts_.not_planned_because = kNoBetter;
  job_->NoteDropped(planned_ns, without_ns);
  KeepVerdict(*pattern);
  Rest(pattern);
  counts_.predicted_iteration_ns = static_cast<std::uint64_t>(planned_ns);
  counts_.without_plan_iteration_ns = static_cast<std::uint64_t>(without_ns);
}

void Pipeline::KeepVerdict(const IterationPattern& pattern) {
  const auto known = known_.find(pattern.fingerprint);
  Keep(pattern,
       known != known_.end() ? known->second.plan : scheduler::PlanWithoutActions(pattern.profile),
       asked_bytes_, true);
}

void Pipeline::JudgePlan(const IterationTime& time) {
  using Answer = scheduler::PlanJudge::Answer;
  if (!judge_ || measurement_ || time.was_stopped || job_->Parks()) return;
  const Pattern pattern = live_->shared_pattern();
  const Answer answer = judge_->Add(
      {.cost = {time.duration_ns, static_cast<std::int64_t>(time.moved_bytes)},
       .is_planned = time.is_planned,
       .is_as_expected = static_cast<std::int64_t>(time.misses) * 20 <= pattern->size()});
  const std::int64_t without_ns = judge_->without().duration_ns;
  if (answer == Answer::kKeep || answer == Answer::kDrop) {
    verdicts_.NoteWithout(ConditionsOf(*pattern), without_ns);
    counts_.without_plan_iteration_ns =
        static_cast<std::uint64_t>(verdicts_.WithoutNs(ConditionsOf(*pattern)));
  }
  switch (answer) {
    case Answer::kGoOn:
      return;
    case Answer::kTryWithoutPlan:
      if (const auto resting = RestingPlan(pattern, live_->budget_bytes()))
        return job_->Adopt(resting);
      return judge_.reset();
    case Answer::kKeep:
      if (judge_->was_tried_without()) job_->Adopt(live_);
      return;
    case Answer::kDrop:
      return DropPlan(pattern, live_->predicted_ns(), judge_->planned().duration_ns);
  }
}

// Keeps the last few: a job that never repeats itself would gather plans without end.
void Pipeline::Remember(Pattern pattern, scheduler::Plan plan) {
  const std::uint64_t fingerprint = pattern->fingerprint;
  known_[fingerprint] = {std::move(pattern), std::move(plan), ++remembered_};
  if (known_.size() <= kMostKnown) return;
  known_.erase(std::min_element(
      known_.begin(), known_.end(),
      [](const auto& one, const auto& other) { return one.second.turn < other.second.turn; }));
}

void Pipeline::NoteRefusal(const PlanAnswer& answer) {
  ++(answer.is_invalid ? counts_.plans_invalid : counts_.plans_refused);
  if (!live_) counts_.not_planned_because = refusals_.insert(answer.status.text()).first->c_str();
}

void Pipeline::Keep(const IterationPattern& pattern, const scheduler::Plan& plan,
                    std::int64_t budget_bytes, bool is_no_better) {
  if (!options_.store) return;
  StoredPlan stored = {.pattern = pattern,
                       .plan = plan,
                       .budget_bytes = budget_bytes,
                       .job_budget_bytes = least_.budget_bytes(),
                       .without_ns = verdicts_.WithoutNs(ConditionsOf(pattern)),
                       .is_no_better = is_no_better};
  stored.plan.strategy = options_.strategy->name();
  options_.store->Keep(options_.job_key, stored);
}

// On a thread of the program, asking the driver costs the program time. It is done now and then.
bool Pipeline::MayAskDriver(std::uint64_t now_ns) {
  constexpr std::uint64_t kCallsPerQuestion = 16;
  return now_ns != 0 || ++calls_ % kCallsPerQuestion == 0;
}

void Pipeline::Watch(std::uint64_t now_ns) {
  while (may_ask_) {
    const std::optional<IterationTime> next = recorder_.iterations().Next();
    if (!next) break;
    if (!monitor_) continue;
    const IterationTime& time = *next;
    counts_.iterations_followed += time.is_planned;
    counts_.steps.Note(time.duration_ns);
    if (time.pattern != live_->pattern().fingerprint) continue;
    counts_.steps.NoteFollowed(*live_, time.duration_ns);
    JudgePlan(time);
    NoteAtRest(time);
    if (time.is_planned == IsResting()) continue;  // of the previous plan, or a trial without one
    clean_in_a_row_ = time.misses == 0 ? clean_in_a_row_ + 1 : 0;
    const bool settles = settling_iterations_ > 0 && settling_iterations_-- > 0;
    if (time.misses == 0 && !time.was_stopped && !settles) {
      counts_.measured_iteration_ns =
          scheduler::RunningMean(counts_.measured_iteration_ns, time.duration_ns);
      if (const auto former = former_.Judge(time.duration_ns)) GoBack(*former);
    }
    if (!time.was_stopped)
      Judge(monitor_->Add(time.duration_ns, static_cast<std::int64_t>(time.misses)));
  }
  const std::uint64_t begun = recorder_.iterations().begun();
  if (begun != begun_seen_ || last_begun_ns_ == 0 || recorder_.IsRecording())
    last_begun_ns_ = now_ns;
  begun_seen_ = begun;
  if (!monitor_ || now_ns - last_begun_ns_ <= kLostAfterNs) return;
  last_begun_ns_ = now_ns;
  Judge(DriftVerdict::kRelearn);
}

// Iterations without a plan and without samples show best what a plan has to beat. One that fits
// the budget shows nothing: it moves no memory.
void Pipeline::NoteAtRest(const IterationTime& time) {
  const bool is_settled = clean_in_a_row_ > 0;
  if (!IsResting() || time.is_planned || time.misses != 0 || time.was_stopped || !is_settled)
    return;
  if (measurement_ || job_->Parks() || Fits(live_->pattern())) return;
  const PlanVerdicts::Conditions conditions = ConditionsOf(live_->pattern());
  const auto before_ns = static_cast<std::uint64_t>(verdicts_.WithoutNs(conditions));
  verdicts_.NoteWithout(
      conditions, static_cast<std::int64_t>(scheduler::RunningMean(before_ns, time.duration_ns)));
}

void Pipeline::Judge(DriftVerdict verdict) {
  if (verdict == DriftVerdict::kReplan && !IsResting() && !measurement_ && drift_patience_.Ends() &&
      TakesAnotherTime())
    MeasureAgain();
  if (verdict != DriftVerdict::kRelearn || recorder_.IsRecording() || !relearn_patience_.Ends())
    return;
  relearn_patience_.Double();
  job_->BeginRecording();
}

// If the program's own pace bounds an iteration, no measurement makes the prediction true.
bool Pipeline::TakesAnotherTime() {
  const auto measured_ns = static_cast<std::int64_t>(counts_.measured_iteration_ns.load());
  const std::int64_t change_ns = std::abs(measured_ns - replanned_at_ns_);
  if (change_ns <= base::scale(replanned_at_ns_, kDriftPercent, 100)) return false;
  replanned_at_ns_ = measured_ns;
  return true;
}

// The end of an iteration shows in the events, or, without recording, in the job's own count.
void Pipeline::NoteBudget() {
  const std::int64_t budget_bytes = job_->BudgetBytes(), plannable_bytes = job_->PlannableBytes();
  least_.Note(budget_bytes, plannable_bytes);
  const std::uint64_t begun = recorder_.iterations().begun();
  const std::int64_t size = PatternSize();
  const bool has_ended = recorder_.IsRecording() ? size != 0 && tokens_ - iteration_tokens_ >= size
                                                 : begun != iteration_begun_;
  if (!has_ended) return;
  iteration_begun_ = begun;
  iteration_tokens_ = tokens_;
  may_be_proven_ = true;
  ++iterations_ended_;
  least_.IterationEnded();
  least_.Note(budget_bytes, plannable_bytes);
}

bool Pipeline::Serves(std::int64_t planned_bytes) const {
  // The chunk that Ask leaves free is no reason to ask again, however small the budget.
  const std::int64_t slack_bytes = std::max(base::scale(planned_bytes, kBudgetSlackPercent, 100),
                                            2 * options_.device.chunk_bytes);
  return least_.bytes() >= planned_bytes && least_.bytes() <= planned_bytes + slack_bytes;
}

void Pipeline::FollowBudget() {
  const bool same_link = job_->LinkPermille() == asked_permille_;
  const bool serves =
      (Serves(asked_bytes_) && same_link) || (IsResting() && Fits(live_->pattern()));
  if (!live_ && fits_ && !measurement_ && !Fits(*fits_)) Measure(std::exchange(fits_, nullptr));
  const bool has_only_grown = !serves && same_link && least_.bytes() >= asked_bytes_;
  if (!has_only_grown) grown_at_ = iterations_ended_;
  if (has_only_grown && iterations_ended_ - grown_at_ < kGrowthPatience) return;
  const ReplanReason reason = Serves(asked_bytes_) ? ReplanReason::kLink : ReplanReason::kBudget;
  if (live_ && !request_ && !measurement_ && !is_irregular_ && !serves)
    Ask(live_->shared_pattern(), std::nullopt, reason);
}

// Effects are found and proven one by one while events are recorded. They allow a better plan. And
// operations may be repeatable no longer: refuted, or of a program whose work others see by now.
void Pipeline::FollowProofs() {
  if (!asked_ || request_ || measurement_ || is_irregular_ || (IsResting() && Fits(*asked_)) ||
      !std::exchange(may_be_proven_, false))
    return;
  const Pattern proven = AsProven(*asked_);
  if (scheduler::ReplayableCount(*proven) != scheduler::ReplayableCount(*asked_) ||
      scheduler::KnownTouchCount(*proven) > scheduler::KnownTouchCount(*asked_))
    Ask(proven, std::nullopt, ReplanReason::kProofs);
}

// A stored plan with recomputation waits until this process has proven its operations.
void Pipeline::FollowAwaited() {
  if (!awaited_ || request_ || !IsProven(*awaited_)) return;
  const StoredPlan stored = *std::exchange(awaited_, std::nullopt);
  AskFor(stored.budget_bytes, std::make_shared<const IterationPattern>(stored.pattern), stored.plan,
         true);
}

bool Pipeline::IsProven(const StoredPlan& stored) {
  const std::vector<std::int32_t> events = scheduler::OperationEvents(stored.pattern);
  const auto again = scheduler::OperationsToRerun(stored.pattern.profile, stored.plan);
  return std::all_of(again.begin(), again.end(), [&](scheduler::OperationId operation) {
    const auto event = static_cast<std::size_t>(events[static_cast<std::size_t>(operation.index)]);
    return job_->MayReplay(stored.pattern.events[event].token);
  });
}

void Pipeline::EndRecordingWhenSteady() {
  const bool fits_for_long =
      !live_ && fits_ && !measurement_ && !request_ &&
      tokens_ - fits_since_ >= std::max(kRecordedIterations * fits_->size(), kFitsForEvents);
  if (fits_for_long) Rest(Pattern(fits_));
  if (!live_ || measurement_ || request_ || !recorder_.IsRecording()) return;
  const auto followed =
      static_cast<std::int64_t>(recorder_.iterations().begun()) - iterations_adopted_;
  if (followed < kRecordedIterations || clean_in_a_row_ < kCleanIterations) return;
  recorder_.End();
  learner_.reset();
}

}  // namespace spillway::interposer
