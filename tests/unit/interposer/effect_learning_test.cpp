// What experiments show of undocumented kernels (Note [Learned effects] in
// execute/state/launch_effects.h).
#include "interposer/execute/effect_learning.h"

#include <unistd.h>

#include <optional>
#include <string_view>

#include "interposer/execute/state/unrepeated_kernels.h"
#include "interposer/ledger/visible_work.h"
#include "tests/unit/interposer/effects_job.h"

namespace spillway::interposer {
namespace {

using EffectLearningTest = EffectsTest;

TEST_F(EffectLearningTest, ObservesReadsAndFills) {
  const std::uint64_t token = Repeat("scale", 1, 2);
  EXPECT_EQ(RolesOf(token), "or");
  EXPECT_FALSE(IsProved(token)) << "one look proves nothing";
}

// Regression: another thread collected the experiment, and the launch's thread wrote where it had
// been.
TEST_F(EffectLearningTest, LaunchLetsGoOfAnExperimentThatHasEnded) {
  Launch("scale", {Allocated(), input_, 2});
  ASSERT_EQ(Count().experiments, 1u);
  EXPECT_FALSE(keeps_experiment_);
}

TEST_F(EffectLearningTest, ObservesUpdatesInPlace) {
  const CUdeviceptr y = Allocated();
  Set(y, 3);
  const std::uint64_t token = Launch("add", {y, input_});
  Settle();
  EXPECT_EQ(RolesOf(token), "ur");
  EXPECT_TRUE(AllAre(Read(y), 8)) << "it was launched once";
}

TEST_F(EffectLearningTest, ProvesByARepetition) {
  const std::uint64_t token = Repeat("scale", 2, 2);
  EXPECT_TRUE(IsProved(token));
  EXPECT_EQ(RolesOf(token), "or");
  EXPECT_EQ(Count().proved_operations, 1u);
}

// Plans count on declared reads.
TEST_F(EffectLearningTest, LearnedRolesAreNotRecordedAsDeclared) {
  const std::uint64_t token = Repeat("scale", 2, 2);
  ASSERT_EQ(RolesOf(token), "or");
  Launch("scale", {Allocated(), input_, 2});
  ASSERT_EQ(recorded_.size(), 2u);
  for (const RecordedTouch& touch : recorded_) EXPECT_TRUE(touch.writes && touch.reads);
}

// Regression: PyTorch's out-of-memory error said 234 MiB free, and bare 236 MiB.
TEST_F(EffectLearningTest, MemoryForFingerprintsIsNotShownAsUsed) {
  const CUdeviceptr y = Allocated();
  const size_t free_bytes = job_->view().FreeBytes();
  Launch("scale", {y, input_, 2});
  ASSERT_EQ(Count().experiments, 1u);
  EXPECT_EQ(job_->view().FreeBytes(), free_bytes);
}

TEST_F(EffectLearningTest, TheProgramsLaunchHasTheLastWord) {
  Repeat("scale", 1, 2);
  const CUdeviceptr y = Allocated();
  Launch("scale", {y, input_, 2});
  EXPECT_TRUE(AllAre(Read(y), 17));
  EXPECT_TRUE(AllAre(Read(input_), 5));
}

// Numbers that change with each launch, such as random offsets, make exact kinds of one kind.
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

// What the program finds after a look at the kernel, and how often the kernel ran.
class EffectLearningExcludesTest : public EffectsTest {
 protected:
  void SetUp() override {
    EffectsTest::SetUp();
    Repeat("scale", 1, 2);
    hidden.launches = 0;
  }
  void ExpectOneLaunch(CUdeviceptr y) {
    EXPECT_EQ(Driver().cuStreamSynchronize(stream_), CUDA_SUCCESS);
    EXPECT_EQ(hidden.launches, 1);
    EXPECT_TRUE(AllAre(Read(y), 17));
  }
};

TEST_F(EffectLearningExcludesTest, NothingWhenAllIsAsBefore) {
  const CUdeviceptr y = Allocated();
  Launch("scale", {y, input_, 2});
  EXPECT_TRUE(AllAre(Read(y), 17));
  EXPECT_EQ(hidden.launches, 2) << "or else the tests below show nothing";
}

TEST_F(EffectLearningExcludesTest, MemoryWithContent) {
  const CUdeviceptr y = Allocated();
  Set(y, 3);
  Launch("scale", {y, input_, 2});
  ExpectOneLaunch(y);
}

TEST_F(EffectLearningExcludesTest, MemoryThatAnOwnerHolds) {
  job_->held_ranges().Hold(1, input_, Unmovable::kTexture);
  const CUdeviceptr y = Allocated();
  Launch("scale", {y, input_, 2});
  ExpectOneLaunch(y);
  job_->held_ranges().EndHold(1);
}

TEST_F(EffectLearningExcludesTest, MemoryThatTheDriverServes) {
  void* pinned = nullptr;
  ASSERT_EQ(Driver().cuMemHostAlloc(&pinned, 4096, 0), CUDA_SUCCESS);
  const auto word = reinterpret_cast<CUdeviceptr>(pinned);
  Repeat("scale", 1, word);
  hidden.launches = 0;
  const CUdeviceptr y = Allocated();
  Launch("scale", {y, input_, word});
  EXPECT_EQ(Driver().cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(hidden.launches, 1);
  Driver().cuMemFreeHost(pinned);
}

// They print, or allocate, or change variables that nobody lists.
TEST_F(EffectLearningExcludesTest, KernelsThatMayActElsewhere) {
  Libraries::Instance().Remove(module_);
  const CUdeviceptr y = Allocated();
  Launch("scale", {y, input_, 2});
  ExpectOneLaunch(y);
}

TEST_F(EffectLearningExcludesTest, LaunchesDuringACapture) {
  CaptureBegan();
  const CUdeviceptr y = Allocated();
  Launch("scale", {y, input_, 2});
  CaptureEnded();
  ExpectOneLaunch(y);
}

// A cooperative launch, one of several in one call, or one with packed parameters.
TEST_F(EffectLearningExcludesTest, LaunchesThatHooksDoNotDescribe) {
  is_whole_ = false;
  const std::uint64_t experiments = Count().experiments;
  const CUdeviceptr y = Allocated();
  Launch("scale", {y, input_, 2});
  ExpectOneLaunch(y);
  EXPECT_EQ(Count().experiments, experiments);
}

TEST_F(EffectLearningTest, AVariableThatChangesForbidsRepetition) {
  job_->stored_addresses().RegisterGlobal(reinterpret_cast<CUdeviceptr>(&variable), sizeof variable,
                                          module_);
  const std::uint64_t token = Repeat("through_variable", 3);
  EXPECT_EQ(hidden.launches, 3);
  EXPECT_FALSE(IsProved(token));
  EXPECT_EQ(Count().proved_operations + Count().refuted_operations, 0u);
}

// The kernel decides by a counter in memory.
TEST_F(EffectLearningTest, ACounterInMemoryForbidsRepetition) {
  const CUdeviceptr counter = Allocated(kSmallBytes);
  Set(counter, 0, kSmallBytes);
  const std::uint64_t token = Repeat("unless", 2, counter);
  EXPECT_EQ(RolesOf(token), "or");
  EXPECT_FALSE(IsProved(token));
  EXPECT_EQ(Read(counter, kSmallBytes)[0], 2) << "it ran as often as the program says";
}

// The first repetition lacks the scratch memory for them.
TEST_F(EffectLearningTest, SmallOutputsAreRepeatedElsewhere) {
  Free(Allocated(kBudgetBytes));
  std::uint64_t token = 0;
  for (int i = 0; i < 3; ++i) {
    const CUdeviceptr mean = Allocated(kSmallBytes);
    token = Launch("norm", {Allocated(), input_, mean, Allocated(kSmallBytes)});
    Settle();
    EXPECT_TRUE(AllAre(Read(mean, kSmallBytes), 10));
  }
  EXPECT_TRUE(IsProved(token));
  EXPECT_EQ(hidden.launches, 4);
}

// It was observed to only read its input, and writes it when it is about to be repeated.
TEST_F(EffectLearningTest, ALaunchThatChangesItsInputIsNotRepeated) {
  Repeat("writer", 1);
  hidden.lies = true;
  hidden.launches = 0;
  const CUdeviceptr y = Allocated();
  const std::uint64_t token = Launch("writer", {y, input_});
  Settle();
  EXPECT_EQ(hidden.launches, 1);
  EXPECT_FALSE(IsProved(token));
  EXPECT_FALSE(job_->view().IsWrong());
  EXPECT_TRUE(AllAre(Read(y), 5));
}

TEST_F(EffectLearningTest, ARepetitionThatTheDriverRefusesLeavesTheBytes) {
  repeated_shared_bytes_ = 1u << 30;
  Repeat("scale", 1, 2);
  const CUdeviceptr y = Allocated();
  const std::uint64_t token = Launch("scale", {y, input_, 2});
  EXPECT_EQ(hidden.launches, 2);
  EXPECT_TRUE(AllAre(Read(y), 17));
  Settle();
  EXPECT_FALSE(IsProved(token));
  EXPECT_FALSE(job_->view().IsWrong());
}

// Other memory without content may have left by then.
TEST_F(EffectLearningTest, BehindARepetitionOnlyInputsAreLookedAt) {
  Repeat("scale", 1, 2);
  const CUdeviceptr y = Allocated();
  const std::uint64_t bytes = Count().fingerprinted_bytes;
  Launch("scale", {y, input_, 2});
  EXPECT_EQ(Count().fingerprinted_bytes - bytes, 2 * 2 * kBytes + kBytes);
}

// What nobody could see happens in the repetition alone.
TEST_F(EffectLearningTest, ARepetitionThatChangesAnInputStopsTheProgram) {
  Repeat("writes_second", 1);
  Launch("writes_second", {Allocated(), input_});
  EXPECT_TRUE(job_->view().IsWrong());
  EXPECT_EQ(job_->view().NameOfWrong(), "writes_second");
}

TEST_F(EffectLearningTest, UnlessAllowedNothingRunsTwice) {
  MakeJob(kBudgetBytes, false);
  const std::uint64_t token = Repeat("scale", 4, 2);
  EXPECT_EQ(hidden.launches, 4);
  EXPECT_FALSE(IsProved(token));
}

// A plan would wait for what never comes. In a process of its own: work stays visible.
TEST_F(EffectLearningTest, PlansDoNotCountOnRepetitionsOfVisibleWork) {
  const std::uint64_t token = Repeat("scale", 2, 2);
  ASSERT_TRUE(IsProved(token));
  EXPECT_EXIT(
      {
        VisibleWork::MakeAllWorkVisible();
        _exit(IsProved(token));
      },
      testing::ExitedWithCode(0), "");
}

// As far as one launch in eight tells.
TEST_F(EffectLearningTest, TheTimeOfFingerprintsIsMeasured) {
  EXPECT_EQ(Count().fingerprint_ns, 0u);
  Repeat("scale", 10, 2);
  const Counters counters = Count();
  const double bytes_per_ns = static_cast<double>(counters.fingerprinted_bytes) /
                              static_cast<double>(counters.fingerprint_ns);
  EXPECT_GT(bytes_per_ns, 500) << "an A100 reads 1555 bytes a nanosecond";
  EXPECT_LT(bytes_per_ns, 4000) << "events tell half microseconds";
}

struct Refutation {
  const char* kernel;
};

std::optional<UnrepeatedBecause> ReasonFor(std::string_view kernel) {
  for (std::size_t i = 0; const UnrepeatedKernel* const one = UnrepeatedKernelAt(i); ++i) {
    if (one->name == kernel) return one->because;
  }
  return std::nullopt;
}

class EffectLearningRefutesTest : public EffectsTest,
                                  public testing::WithParamInterface<Refutation> {};

TEST_P(EffectLearningRefutesTest, WhatARepetitionContradicts) {
  const std::uint64_t token = Repeat(GetParam().kernel, 3);
  EXPECT_FALSE(IsProved(token));
  EXPECT_EQ(Count().refuted_operations, 1u);
  EXPECT_EQ(ReasonFor(GetParam().kernel), UnrepeatedBecause::kMadeOtherBytes);
  job_->proofs().DropEagerly();
  Launch(GetParam().kernel, {Allocated(), input_});
  EXPECT_EQ(Count().recompute_drops, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, EffectLearningRefutesTest,
                         testing::Values(Refutation{"order"}, Refutation{"half"},
                                         Refutation{"last_old"}),
                         [](const auto& kernel) { return std::string(kernel.param.kernel); });

}  // namespace
}  // namespace spillway::interposer
