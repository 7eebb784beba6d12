// The table of what experiments have shown of kernels (execute/state/launch_effects.h).
#include "interposer/execute/state/launch_effects.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace spillway::interposer {
namespace {

using Effect = LaunchEffects::Effect;
using Stage = LaunchEffects::Stage;

constexpr std::uint64_t kToken = 7;

LaunchKind Kind(std::uint64_t exact, std::uint64_t token = kToken) {
  return {.token = token, .family = token + 100, .exact = exact};
}

class LaunchEffectsTest : public testing::Test {
 protected:
  // The last experiment with this exact kind has shown `stage`.
  void Show(std::uint64_t exact, Stage stage, std::initializer_list<Role> roles) {
    Effect* const effect = effects_.ForExperiment(Kind(exact));
    ASSERT_TRUE(effect);
    effect->stage = stage;
    effect->is_final = true;
    for (const Role role : roles) effect->roles.push_back({role, true});
    effects_.Learned(Kind(exact));
  }
  void Prove(std::uint64_t exact) {
    Show(exact, Stage::kProved, {Role::kOverwrites, Role::kReads});
  }
  void Refute(std::uint64_t exact) {
    Show(exact, Stage::kObserved, {Role::kOverwrites, Role::kReads});
  }
  bool Speaks(std::uint64_t exact, std::size_t named = 2) const {
    return effects_.Expected(Kind(exact), named) != nullptr;
  }

  LaunchEffects effects_;
};

TEST_F(LaunchEffectsTest, NothingIsExpectedOfAnUnseenKind) {
  EXPECT_TRUE(effects_.empty());
  EXPECT_FALSE(Speaks(1));
  EXPECT_FALSE(effects_.IsProved(kToken));
  EXPECT_TRUE(effects_.RangeRolesOf(kToken).empty());
}

TEST_F(LaunchEffectsTest, OneExperimentAtATime) {
  Effect* const effect = effects_.ForExperiment(Kind(1));
  ASSERT_TRUE(effect);
  EXPECT_EQ(effects_.ForExperiment(Kind(1)), effect);
  effect->is_under_way = true;
  EXPECT_FALSE(effects_.ForExperiment(Kind(1)));
}

TEST_F(LaunchEffectsTest, ExperimentsThatShowNothingEnd) {
  Effect* const effect = effects_.ForExperiment(Kind(1));
  effect->tries = 4;
  EXPECT_FALSE(effects_.ForExperiment(Kind(1)));
}

TEST_F(LaunchEffectsTest, AKindThatIsJudgedNeedsNoExperiment) {
  Prove(1);
  EXPECT_FALSE(effects_.ForExperiment(Kind(1)));
}

TEST_F(LaunchEffectsTest, FewExactKindsGetExperiments) {
  for (std::uint64_t exact = 1; exact <= 4; ++exact) Prove(exact);
  EXPECT_FALSE(effects_.ForExperiment(Kind(5)));
  EXPECT_TRUE(effects_.ForExperiment(Kind(6, kToken + 1)));
}

TEST_F(LaunchEffectsTest, AnExactKindSpeaksForItself) {
  Prove(1);
  EXPECT_TRUE(Speaks(1));
  EXPECT_FALSE(Speaks(2)) << "one alone says nothing of others";
  EXPECT_FALSE(Speaks(1, 3)) << "a launch that names more memory";
}

TEST_F(LaunchEffectsTest, TwoProvedKindsSpeakForOthers) {
  Prove(1);
  Prove(2);
  EXPECT_TRUE(Speaks(3));
  EXPECT_FALSE(Speaks(3, 3));
}

// An exact kind that was only observed never asked which module its function is of.
TEST_F(LaunchEffectsTest, OneKindThatMayReadConstantsSaysSoForOthers) {
  Effect* const observed = effects_.ForExperiment(Kind(1));
  observed->stage = Stage::kObserved;
  observed->roles = {};
  observed->roles.push_back({Role::kOverwrites, true});
  observed->roles.push_back({Role::kReads, true});
  effects_.Learned(Kind(1));
  Prove(2);
  Prove(3);
  effects_.Find(Kind(3))->reads_constants = true;
  effects_.Learned(Kind(3));
  EXPECT_TRUE(effects_.Expected(Kind(4), 2)->reads_constants);
}

TEST_F(LaunchEffectsTest, ARefutedKindSilencesTheOthers) {
  Prove(1);
  Prove(2);
  Refute(3);
  EXPECT_FALSE(Speaks(4));
  EXPECT_FALSE(effects_.IsProved(kToken));
  EXPECT_FALSE(effects_.ForExperiment(Kind(4))) << "nothing more is to be found out";
}

TEST_F(LaunchEffectsTest, ForgottenKindsSayNothing) {
  Prove(1);
  Prove(2);
  effects_.Forget();
  EXPECT_FALSE(Speaks(1));
  EXPECT_FALSE(Speaks(3));
  EXPECT_FALSE(effects_.IsProved(kToken));
  EXPECT_TRUE(effects_.RangeRolesOf(kToken).empty());
  EXPECT_TRUE(effects_.ForExperiment(Kind(1)));
}

// Two modules may have a kernel of one name.
TEST_F(LaunchEffectsTest, AFunctionSaysNothingOfAnotherWithItsName) {
  Prove(1);
  Prove(2);
  const LaunchKind other{.token = kToken, .family = 9, .exact = 3};
  EXPECT_FALSE(effects_.Expected(other, 3));
  ASSERT_TRUE(effects_.ForExperiment(other));
  EXPECT_FALSE(effects_.IsProved(kToken)) << "plans know the name alone";
}

TEST_F(LaunchEffectsTest, WhereKindsDifferMemoryIsReadAndWritten) {
  Show(1, Stage::kProved, {Role::kOverwrites, Role::kReads, Role::kReads});
  Show(2, Stage::kProved, {Role::kOverwrites, Role::kReadsAndWrites});
  const LearnedRoles roles = effects_.RangeRolesOf(kToken);
  ASSERT_EQ(roles.size(), 2u);
  EXPECT_EQ(roles[0].role, Role::kOverwrites);
  EXPECT_EQ(roles[1].role, Role::kReadsAndWrites);
}

TEST_F(LaunchEffectsTest, PlansKnowRangesOnly) {
  Prove(1);
  effects_.Find(Kind(1))->roles[1].is_range = false;
  effects_.Learned(Kind(1));
  EXPECT_EQ(effects_.RangeRolesOf(kToken).size(), 1u);
}

}  // namespace
}  // namespace spillway::interposer
