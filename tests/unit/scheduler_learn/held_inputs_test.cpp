#include "scheduler/plan/held_inputs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/units.h"
#include "scheduler/plan/job_planner.h"
#include "scheduler/plan/strategies/registry.h"
#include "tests/unit/scheduler/make_profile.h"

namespace spillway::scheduler {
namespace {

using testing::MakeOperation;
using testing::Persistent;
using testing::ProfileOf;
using testing::Temporary;

constexpr int64_t kMs = 1'000'000;

// A weight gradient (100 MiB) is made from an input (2 MiB), which is freed at once. It waits for
// the update while other layers need all memory.
IterationProfile Training(int64_t input_bytes) {
  return ProfileOf(
      {Persistent("weights", 100 * base::kMebibyte), Temporary("input", input_bytes),
       Temporary("gradient", 100 * base::kMebibyte), Temporary("large", 200 * base::kMebibyte)},
      {MakeOperation("forward", 10 * kMs, {0}, {1}, false),
       MakeOperation("backward", 1 * kMs, {1}, {2}), MakeOperation("others", 2 * kMs, {}, {3}),
       MakeOperation("others", 2 * kMs, {3}, {3}), MakeOperation("update", 1 * kMs, {0, 2}, {0})});
}

std::shared_ptr<IterationPattern> PatternOf(const IterationProfile& profile) {
  auto pattern = std::make_shared<IterationPattern>();
  pattern->profile = profile;
  pattern->profile.operations[1].replayable = true;
  pattern->buffers.resize(profile.buffers.size());
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    PatternEvent event;
    event.token = i;
    event.operation = static_cast<int32_t>(i);
    pattern->events.push_back(event);
  }
  return pattern;
}

constexpr DeviceModel kDevice{.to_host_bytes_per_second = 10'000'000'000,
                              .to_device_bytes_per_second = 10'000'000'000,
                              .to_host_both_bytes_per_second = 10'000'000'000,
                              .to_device_both_bytes_per_second = 10'000'000'000,
                              .chunk_bytes = 2 * base::kMebibyte};

TEST(HeldInputsTest, LargeBufferIsRecomputedFromASmallFreedInput) {
  // Given a budget too small for the gradient while others run, and a link too slow to swap it
  const auto pattern = PatternOf(Training(2 * base::kMebibyte));
  const PlanRequest request{pattern, kDevice, 310 * base::kMebibyte, FindStrategy("spillway")};

  const PlanAnswer answer = PlanFor(request);

  ASSERT_TRUE(answer.live) << answer.status.text();
  EXPECT_TRUE(ReliesOnHeldInputs(pattern->profile, answer.plan));
  EXPECT_EQ(answer.live->predicted_ns(), 17 * kMs);
  EXPECT_LE(answer.lower_bound_ns, answer.live->predicted_ns());
  // And a stored plan is accepted again.
  EXPECT_TRUE(Accept(request, answer.plan).live);
}

TEST(HeldInputsTest, LargeInputIsNotHeld) {
  const auto lives_until = [](int64_t input_bytes) {
    const auto pattern = PatternOf(Training(input_bytes));
    const auto held =
        WithInputsHeld({.profile = &pattern->profile, .device = kDevice, .is_live = true});
    return held ? held->buffers[1].dies.index : -1;
  };
  EXPECT_EQ(lives_until(25 * base::kMebibyte), 4);
  EXPECT_EQ(lives_until(25 * base::kMebibyte + 1), -1);
}

// The scores are as large as the probabilities made from them, and freed at once. The probabilities
// wait while other layers need all memory.
IterationProfile Attention(bool scores_can_be_made_again = true) {
  return ProfileOf(
      {Persistent("keys", 100 * base::kMebibyte), Temporary("scores", 100 * base::kMebibyte),
       Temporary("probabilities", 100 * base::kMebibyte), Temporary("large", 200 * base::kMebibyte),
       Temporary("gradient", 1 * base::kMebibyte)},
      {MakeOperation("multiply", 1 * kMs, {0}, {1}, scores_can_be_made_again),
       MakeOperation("softmax", 1 * kMs, {1}, {2}), MakeOperation("others", 2 * kMs, {}, {3}),
       MakeOperation("others", 2 * kMs, {3}, {3}),
       MakeOperation("backward", 10 * kMs, {0, 2}, {4})});
}

int32_t DeathOfHeldScores(const std::shared_ptr<IterationPattern>& pattern) {
  const auto held =
      WithInputsHeld({.profile = &pattern->profile, .device = kDevice, .is_live = true});
  return held ? held->buffers[1].dies.index : -1;
}

TEST(HeldInputsTest, OnlyTheAddressOfARecomputableInputIsHeld) {
  EXPECT_EQ(DeathOfHeldScores(PatternOf(Attention())), 4);
  EXPECT_EQ(DeathOfHeldScores(PatternOf(Attention(false))), -1)
      << "its bytes would cost as much as they save";
}

TEST(HeldInputsTest, AnInputWhoseOwnInputChangesIsNotHeld) {
  IterationProfile profile = Attention();
  profile.operations[2].writes.push_back({0});
  EXPECT_EQ(DeathOfHeldScores(PatternOf(profile)), -1);
}

TEST(HeldInputsTest, AttentionIsRecomputedInAChain) {
  const auto pattern = PatternOf(Attention());
  const PlanRequest request{pattern, kDevice, 310 * base::kMebibyte, FindStrategy("spillway")};

  const PlanAnswer answer = PlanFor(request);

  ASSERT_TRUE(answer.live) << answer.status.text();
  EXPECT_TRUE(ReliesOnHeldInputs(pattern->profile, answer.plan));
  EXPECT_EQ(answer.live->predicted_ns(), 18 * kMs);
  EXPECT_TRUE(Accept(request, answer.plan).live);
}

// A plan that only moved a held input behind its free was checked against the profile without it,
// and refused as a defect of the strategy.
TEST(HeldInputsTest, APlanThatMovesAnInputBehindItsFreeReliesOnIt) {
  const IterationProfile profile = Training(2 * base::kMebibyte);
  Plan plan = PlanWithoutActions(profile);
  EXPECT_FALSE(ReliesOnHeldInputs(profile, plan));
  // The input is freed after operation 1.
  plan.actions = {{ActionKind::kDrop, {1}, 1}};
  EXPECT_TRUE(ReliesOnHeldInputs(profile, plan));
  plan.actions = {{ActionKind::kOffload, {1}, 0}};
  EXPECT_FALSE(ReliesOnHeldInputs(profile, plan));
}

}  // namespace
}  // namespace spillway::scheduler
