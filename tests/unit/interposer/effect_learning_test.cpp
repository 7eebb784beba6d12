// What experiments show of undocumented kernels, and which launches they leave alone.
// (Note [Learned effects] in execute/state/launch_effects.h)
#include "interposer/execute/effect_learning.h"

#include "tests/unit/interposer/effects_job.h"

namespace spillway::interposer {
namespace {

using EffectLearningTest = EffectsTest;

TEST_F(EffectLearningTest, ObservesReadsAndFills) {
  const std::uint64_t token = Repeat("scale", 1, 2);
  EXPECT_EQ(RolesOf(token), "or");
  EXPECT_FALSE(IsProved(token)) << "one look proves nothing";
}

TEST_F(EffectLearningTest, ObservesUpdatesInPlace) {
  const CUdeviceptr y = Allocated();
  Set(y, 3);
  const std::uint64_t token = Launch("add", {y, input_});
  Settle();
  EXPECT_EQ(RolesOf(token), "ur");
  EXPECT_EQ(hidden.runs, 0);
  EXPECT_TRUE(AllAre(Read(y), 8)) << "it was launched once";
}

TEST_F(EffectLearningTest, ProvesByARepetition) {
  const std::uint64_t token = Repeat("scale", 2, 2);
  EXPECT_TRUE(IsProved(token));
  EXPECT_EQ(RolesOf(token), "or");
  EXPECT_EQ(Count().proved_operations, 1u);
}

TEST_F(EffectLearningTest, TheProgramsLaunchHasTheLastWord) {
  Repeat("scale", 1, 2);
  const CUdeviceptr y = Allocated();
  Launch("scale", {y, input_, 2});
  EXPECT_TRUE(AllAre(Read(y), 17));
  EXPECT_TRUE(AllAre(Read(input_), 5));
}

// A number that changes with each launch, such as a random offset, makes exact kinds of one kind.
TEST_F(EffectLearningTest, TwoProvedKindsSpeakForOthers) {
  for (CUdeviceptr number = 1; number <= 2; ++number) Repeat("scale", 2, number);
  ASSERT_EQ(Count().proved_operations, 2u);
  job_->proofs().DropEagerly();

  const CUdeviceptr y = Allocated();
  const std::uint64_t token = Launch("scale", {y, input_, 77});

  EXPECT_TRUE(IsProved(token));
  EXPECT_EQ(Count().recompute_drops, 1u);
  EXPECT_TRUE(AllAre(Read(y), 3 * 5 + 77));
}

TEST_F(EffectLearningTest, OneProvedKindDoesNotSpeakForOthers) {
  Repeat("scale", 2, 1);
  job_->proofs().DropEagerly();
  Launch("scale", {Allocated(), input_, 77});
  EXPECT_EQ(Count().recompute_drops, 0u);
}

struct Refutation {
  const char* kernel;
  const char* roles;
};
class EffectLearningRefutesTest : public EffectsTest,
                                  public testing::WithParamInterface<Refutation> {};

TEST_P(EffectLearningRefutesTest, WhatARepetitionContradicts) {
  const std::uint64_t token = Repeat(GetParam().kernel, 3);
  EXPECT_FALSE(IsProved(token));
  EXPECT_EQ(Count().refuted_operations, 1u);
  job_->proofs().DropEagerly();
  Launch(GetParam().kernel, {Allocated(), input_});
  EXPECT_EQ(Count().recompute_drops, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, EffectLearningRefutesTest,
                         testing::Values(Refutation{"order", "or"}, Refutation{"half", "or"},
                                         Refutation{"last_old", "or"}),
                         [](const auto& kernel) { return std::string(kernel.param.kernel); });

}  // namespace
}  // namespace spillway::interposer
