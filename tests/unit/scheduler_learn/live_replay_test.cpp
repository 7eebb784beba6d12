// Plans with recomputations, walked by a small and obvious executor. At each operation all its
// inputs must be resident, with the bytes of a run in which nothing moves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/held_inputs.h"
#include "scheduler/plan/live_plan.h"
#include "scheduler/plan/plan_validator.h"
#include "scheduler/plan/strategies/registry.h"
#include "tests/unit/scheduler/random_problem.h"

namespace spillway::scheduler {
namespace {

using testing::Dice;

// Forward layers mostly use the previous one only; some change in place. Each gradient uses the
// previous one and some activations. Weights change at the end. Some buffers are freed after their
// last use with a delay, and some never, as in programs that allocate everything once.
IterationProfile RandomTraining(Dice& dice) {
  const auto layers = static_cast<int32_t>(dice.Roll(3, 12));
  std::vector<Buffer> buffers = {testing::Persistent("weights", dice.Roll(1, 60))};
  std::vector<Operation> operations;
  const auto add = [&](std::vector<int32_t> reads, int32_t writes) {
    Operation& it = operations.emplace_back();
    it.name = "o" + std::to_string(operations.size());
    it.duration_ns = dice.Roll(1, 30);
    for (const int32_t read : reads) it.reads.push_back({read});
    it.writes.push_back({writes});
  };
  const auto new_buffer = [&] {
    const bool persistent = dice.Chance(15);
    const std::string name = "b" + std::to_string(buffers.size());
    buffers.push_back(persistent ? testing::Persistent(name, dice.Roll(20, 200), BufferKind::kOther)
                                 : testing::Temporary(name, dice.Roll(20, 200)));
    return static_cast<int32_t>(buffers.size()) - 1;
  };
  std::vector<int32_t> activations;
  for (int32_t layer = 0; layer < layers; ++layer) {
    std::vector<int32_t> reads;
    if (dice.Chance(40)) reads.push_back(0);
    if (layer > 0) reads.push_back(activations.back());
    activations.push_back(new_buffer());
    add(reads, activations.back());
    if (dice.Chance(15)) add({activations.back()}, activations.back());
  }
  int32_t gradient = new_buffer();
  add({activations.back()}, gradient);
  for (int32_t layer = layers; layer-- > 0;) {
    std::vector<int32_t> reads = {gradient};
    if (dice.Chance(70)) reads.push_back(activations[static_cast<size_t>(layer)]);
    if (layer > 0 && dice.Chance(60)) reads.push_back(activations[static_cast<size_t>(layer) - 1]);
    gradient = new_buffer();
    add(reads, gradient);
  }
  add({0, gradient}, 0);
  IterationProfile profile;
  profile.name = "training";
  profile.buffers = std::move(buffers);
  profile.operations = std::move(operations);
  SetLifetimesToTouches(profile);
  const auto last = static_cast<int32_t>(profile.operations.size()) - 1;
  for (Buffer& buffer : profile.buffers) {
    if (!buffer.persistent && dice.Chance(30))
      buffer.dies.index = std::min(last, buffer.dies.index + static_cast<int32_t>(dice.Roll(1, 6)));
  }
  return profile;
}

// As the learner would return it: one event per operation. Some operations do not declare that they
// overwrite their outputs.
std::shared_ptr<IterationPattern> PatternOf(const IterationProfile& profile, Dice& dice) {
  auto pattern = std::make_shared<IterationPattern>();
  pattern->profile = profile;
  pattern->buffers.resize(profile.buffers.size());
  std::set<BufferId> has_content;
  for (size_t i = 0; i < profile.buffers.size(); ++i) {
    if (profile.buffers[i].persistent) has_content.insert({static_cast<int32_t>(i)});
  }
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    Operation& operation = pattern->profile.operations[i];
    PatternEvent event;
    event.operation = static_cast<int32_t>(i);
    event.token = i;
    event.first_touch = static_cast<int32_t>(pattern->touches.size());
    const BufferId written = operation.writes[0];
    const bool says = dice.Chance(85);
    bool in_place = false;
    for (const BufferId read : operation.reads) {
      in_place = in_place || read == written;
      if (read != written) pattern->touches.push_back({read.index, false, true});
    }
    pattern->touches.push_back({written.index, true, in_place || !says});
    event.touch_count = static_cast<int32_t>(pattern->touches.size()) - event.first_touch;
    operation.reads.clear();
    operation.writes.clear();
    for (const PatternTouch& touch : pattern->TouchesOf(event))
      AddTouch(operation, {touch.buffer}, touch.reads, touch.writes,
               has_content.count({touch.buffer}) > 0);
    has_content.insert(written);
    pattern->events.push_back(event);
  }
  const std::set<uint64_t> unproven = {static_cast<uint64_t>(dice.Roll(0, 30)),
                                       static_cast<uint64_t>(dice.Roll(0, 30))};
  SetReplayable(pattern.get(), [&](uint64_t token) { return unproven.count(token) == 0; });
  return pattern;
}

// Contents are numbers: an operation's output depends on the operation and its inputs.
class ModelExecutor {
 public:
  explicit ModelExecutor(const LivePlan& plan) : ModelExecutor(plan, plan.pattern().profile) {}
  // `held`: the profile with the lifetimes that the job's own frees get.
  ModelExecutor(const LivePlan& plan, const IterationProfile& held)
      : plan_(plan), profile_(held), places_(profile_.buffers.size()) {
    for (Place& place : places_) place.truth = place.device = ++next_content_;
  }

  void RunIterations(int count) {
    for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
      for (int32_t event = 0; event < plan_.pattern().size(); ++event) RunEvent(event);
    }
  }

  int64_t reruns() const { return reruns_; }
  int64_t temporaries() const { return temporaries_; }
  int64_t dropped_for_good() const { return dropped_for_good_; }

 private:
  using Content = uint64_t;
  static constexpr Content kNone = 0;
  struct RecomputeRecord {
    int32_t event = -1;  // none
    std::vector<Content> read;
    bool is_alive = false;
  };
  struct Place {
    Content truth = kNone;  // the content if nothing moved
    Content device = kNone, host = kNone;
    RecomputeRecord record;
    bool is_dropped() const { return device == kNone && host != truth; }
  };

  Place& at(int32_t buffer) { return places_[static_cast<size_t>(buffer)]; }
  Place& at(BufferId buffer) { return at(buffer.index); }
  const Operation& OperationAt(int32_t event) const {
    return profile_.operations[static_cast<size_t>(event)];
  }

  void RunEvent(int32_t event) {
    SCOPED_TRACE(::testing::Message() << "event " << event);
    for (const LiveAction& action : plan_.Before(event)) Before(action);
    Operate(event);
    Free(event);
    for (const LiveAction& action : plan_.After(event)) After(action);
  }

  void Before(const LiveAction& action) {
    Place& it = at(action.buffer);
    if (action.kind == LiveActionKind::kPrefetch) {
      if (it.device == kNone) it.device = it.host;
    } else if (action.kind == LiveActionKind::kRecompute) {
      RunAgain(action.buffer);
    } else {
      Drop(action);
      ++temporaries_;
    }
  }

  void After(const LiveAction& action) {
    if (action.kind == LiveActionKind::kDrop) return Drop(action);
    ASSERT_EQ(action.kind, LiveActionKind::kOffload);
    Place& it = at(action.buffer);
    if (it.device != kNone) it.host = it.device;
    it.device = kNone;
  }

  void Drop(const LiveAction& action) {
    ASSERT_EQ(action.kind, LiveActionKind::kDrop);
    Place& it = at(action.buffer);
    ASSERT_TRUE(it.record.is_alive || it.host == it.truth)
        << "b" << action.buffer << " is dropped for good";
    it.device = kNone;
  }

  void RunAgain(int32_t buffer) {
    Place& it = at(buffer);
    ASSERT_TRUE(it.record.is_alive) << "nothing makes b" << buffer;
    const Operation& operation = OperationAt(it.record.event);
    for (size_t i = 0; i < operation.reads.size(); ++i)
      ASSERT_EQ(at(operation.reads[i]).device, it.record.read[i]) << "to make b" << buffer;
    it.device = Made(it.record.event, it.record.read);
    ++reruns_;
  }

  void Operate(int32_t event) {
    const Operation& operation = OperationAt(event);
    std::vector<Content> read;
    for (const BufferId id : operation.reads) {
      ASSERT_EQ(at(id).device, at(id).truth) << operation.name << " reads b" << id.index;
      read.push_back(at(id).device);
    }
    for (const BufferId id : operation.writes) {
      Place& it = at(id);
      const Content made = Made(event, read);
      Changed(id);
      it = {.truth = made, .device = made, .host = kNone, .record = {}};
      if (plan_.IsRerunLater(event)) it.record = {event, read, true};
    }
  }

  // Its dependants can no longer be recomputed, so those that are dropped would have to be
  // recomputed now.
  void Changed(BufferId id) {
    for (Place& place : places_) {
      if (!place.record.is_alive) continue;
      const std::vector<BufferId>& reads = OperationAt(place.record.event).reads;
      if (std::find(reads.begin(), reads.end(), id) == reads.end()) continue;
      ASSERT_FALSE(place.is_dropped()) << "an input changes while what is made of it is dropped";
      place.record.is_alive = false;
    }
  }

  // The order of frees at one event does not matter: deferred frees wait for each other.
  void Free(int32_t event) {
    std::vector<BufferId> freed;
    for (size_t i = 0; i < profile_.buffers.size(); ++i) {
      const Buffer& buffer = profile_.buffers[i];
      if (!buffer.persistent && buffer.dies.index == event)
        freed.push_back({static_cast<int32_t>(i)});
    }
    for (const BufferId id : freed) {
      dropped_for_good_ += at(id).is_dropped() && at(id).truth != kNone;
      at(id) = {};
    }
    for (const BufferId id : freed) Changed(id);
  }

  static Content Made(int32_t event, const std::vector<Content>& read) {
    Content content = static_cast<Content>(event) + 1'000'000;
    for (const Content input : read) content = MixToken(content, input);
    return content;
  }

  const LivePlan& plan_;
  const IterationProfile& profile_;
  std::vector<Place> places_;
  Content next_content_ = 0;
  int64_t reruns_ = 0, temporaries_ = 0, dropped_for_good_ = 0;
};

Problem RandomLiveProblem(Dice& dice, const IterationProfile& profile) {
  Problem problem = testing::RandomProblem(dice, profile);
  problem.is_live = true;
  problem.min_movable_bytes = 1;
  problem.budget_bytes = PeakBytes(profile) * dice.Roll(35, 90) / 100;
  problem.node_limit = 40;
  return problem;
}

// Temporaries that the program frees at once, and from which a plan makes something again.
TEST(LiveReplayTest, HeldInputsAreThereForReruns) {
  int64_t holding = 0, reruns = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Dice dice(seed);
    const IterationProfile profile = RandomTraining(dice);
    const auto pattern = PatternOf(profile, dice);
    Problem problem = RandomLiveProblem(dice, pattern->profile);
    const std::optional<IterationProfile> held = WithInputsHeld(problem);
    if (!held) continue;
    problem.profile = &*held;
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const StrategyOutcome outcome = FindStrategy("spillway")->MakeRunnablePlan(problem);
    if (!outcome.plan || !ReliesOnHeldInputs(pattern->profile, *outcome.plan)) continue;
    const auto offence = ValidatePlan(problem, *outcome.plan);
    ASSERT_FALSE(offence) << offence->what;
    const auto live = LivePlan::Make(pattern, *outcome.plan, 1, problem.budget_bytes);
    ASSERT_TRUE(live);
    ModelExecutor executor(*live, *held);
    executor.RunIterations(3);
    ++holding;
    reruns += executor.reruns();
    if (HasFailure()) return;
  }
  EXPECT_GT(holding, 10);
  EXPECT_GT(reruns, 100);
}

TEST(LiveReplayTest, EveryPlanKeepsTheRightBytesAtEveryOperation) {
  int64_t reruns = 0, temporaries = 0, dropped_for_good = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Dice dice(seed);
    const IterationProfile profile = RandomTraining(dice);
    const auto pattern = PatternOf(profile, dice);
    ASSERT_EQ(CheckProfile(pattern->profile).text(), "") << "seed " << seed;
    const Problem problem = RandomLiveProblem(dice, pattern->profile);
    for (const Strategy* strategy : AllStrategies()) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << strategy->name());
      const StrategyOutcome outcome = strategy->MakeRunnablePlan(problem);
      if (!outcome.plan) continue;
      const auto offence = ValidatePlan(problem, *outcome.plan);
      ASSERT_FALSE(offence) << offence->what;
      const auto live = LivePlan::Make(pattern, *outcome.plan, 1, problem.budget_bytes);
      ASSERT_TRUE(live);
      ModelExecutor executor(*live);
      executor.RunIterations(3);
      reruns += executor.reruns();
      temporaries += executor.temporaries();
      dropped_for_good += executor.dropped_for_good();
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(reruns, 1'000);
  EXPECT_GT(temporaries, 20);
  EXPECT_GT(dropped_for_good, 100);
}

}  // namespace
}  // namespace spillway::scheduler
