// Dropped outputs of proved kernels are made again, and compared with what was dropped
// (execute/replay_checks.h).
#include "interposer/execute/replay_checks.h"

#include <utility>

#include "tests/unit/interposer/effects_job.h"

namespace spillway::interposer {
namespace {

class CheckedReplaysTest : public EffectsTest {
 protected:
  CUdeviceptr Dropped(const char* kernel) {
    Repeat(kernel, 2);
    EXPECT_EQ(Count().proved_operations, 1u);
    job_->proofs().DropEagerly();
    const CUdeviceptr y = Allocated();
    Launch(kernel, {y, input_});
    EXPECT_EQ(Count().recompute_drops, 1u);
    return y;
  }
  bool IsWrong() { return job_->view().IsWrong(); }
};

TEST_F(CheckedReplaysTest, SameBytesAreRight) {
  const CUdeviceptr y = Dropped("liar");
  EXPECT_TRUE(AllAre(Read(y), 5));
  EXPECT_EQ(Count().checked_recomputes, 1u);
  EXPECT_FALSE(IsWrong());
}

TEST_F(CheckedReplaysTest, ReadingOldOutputIsWrong) {
  const CUdeviceptr y = Dropped("liar");
  hidden.lies = true;
  Read(y);
  EXPECT_TRUE(IsWrong());
  EXPECT_EQ(job_->view().NameOfWrong(), "liar");
}

TEST_F(CheckedReplaysTest, WritingAnInputIsWrong) {
  const CUdeviceptr y = Dropped("writer");
  hidden.lies = true;
  Read(y);
  EXPECT_TRUE(IsWrong());
}

TEST_F(CheckedReplaysTest, WritingThroughAKeptPointerIsWrong) {
  const CUdeviceptr y = Dropped("keeper");
  hidden.lies = true;
  Read(y);
  EXPECT_TRUE(IsWrong());
}

TEST_F(CheckedReplaysTest, ResultsThatVaryAreWrong) {
  const CUdeviceptr y = Dropped("varies");
  hidden.lies = true;
  Read(y);
  EXPECT_TRUE(IsWrong());
}

// A program that overwrites what it read makes the output come first.
TEST_F(CheckedReplaysTest, ReplaysBeforeAWriteAreChecked) {
  const CUdeviceptr y = Dropped("liar");
  Set(input_, 6);
  EXPECT_TRUE(AllAre(Read(y), 5));
  EXPECT_EQ(Count().checked_recomputes, 1u);
  EXPECT_FALSE(IsWrong());
}

TEST_F(CheckedReplaysTest, ChainsAreCheckedLinkByLink) {
  const CUdeviceptr y = Dropped("liar"), z = Allocated();
  Launch("liar", {z, y});
  EXPECT_TRUE(AllAre(Read(z), 5));
  EXPECT_EQ(Count().checked_recomputes, Count().recomputes);
  EXPECT_FALSE(IsWrong());
}

// A replay writes numbers beside its output elsewhere: they may be others by now.
TEST_F(CheckedReplaysTest, SmallOutputsKeepWhatCameLater) {
  const auto normalize = [&](CUdeviceptr* mean) {
    const CUdeviceptr y = Allocated(), deviation = Allocated(kSmallBytes);
    *mean = Allocated(kSmallBytes);
    Launch("norm", {y, input_, *mean, deviation});
    Settle();
    return y;
  };
  // Given a proved kernel, and the scratch memory that a first call lacked
  Free(Allocated(kBudgetBytes));
  CUdeviceptr mean = 0;
  normalize(&mean);
  normalize(&mean);
  job_->proofs().DropEagerly();
  normalize(&mean);
  const std::uint64_t drops = Count().recompute_drops;
  const CUdeviceptr y = normalize(&mean);
  ASSERT_GT(Count().recompute_drops, drops);

  Set(mean, 42, kSmallBytes);

  EXPECT_TRUE(AllAre(Read(y), 6));
  EXPECT_TRUE(AllAre(Read(mean, kSmallBytes), 42));
  EXPECT_GE(Count().checked_recomputes, 1u);
  EXPECT_FALSE(IsWrong());
}

// A kernel that overwrites all with one number, and a part with another, is one operation to plans.
// Its launches were once repeated behind the program's own ones, to find out.
TEST_F(CheckedReplaysTest, KindsThatWereRefutedWithOneNumberAreNotRepeatedWithOthers) {
  Repeat("half_at", 2, 1);
  Set(input_, 6);
  Repeat("half_at", 2, 9);
  ASSERT_EQ(Count().proved_operations, 1u);
  ASSERT_EQ(Count().refuted_operations, 1u);
  job_->proofs().DropEagerly();
  hidden.launches = 0;

  const CUdeviceptr y = Allocated();
  Launch("half_at", {y, input_, 1});

  EXPECT_TRUE(AllAre(Read(y), 6));
  EXPECT_EQ(hidden.launches, 1);
  EXPECT_EQ(Count().recompute_drops, 0u);
}

// Regression: the fingerprint's slot was given to others as soon as the record had ended. Found by
// the fuzzer.
TEST_F(CheckedReplaysTest, AReplayIsComparedAlthoughItsRecordHasEnded) {
  // Given a dropped output, and memory that has nothing to do with it
  const CUdeviceptr y = Dropped("liar"), other = Allocated(), sum = Allocated(kSmallBytes);
  Set(other, 1);
  Set(sum, 0, kSmallBytes);
  ASSERT_EQ(Driver().cuStreamSynchronize(stream_), CUDA_SUCCESS);
  CUstream other_stream = nullptr;
  ASSERT_EQ(Driver().cuStreamCreate(&other_stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);

  // When the program overwrites the output, and before the replay is over others take fingerprints
  Set(y, 6);
  std::swap(stream_, other_stream);
  Launch("sum", {sum, other});
  std::swap(stream_, other_stream);
  ASSERT_EQ(Driver().cuCtxSynchronize(), CUDA_SUCCESS);

  EXPECT_EQ(Count().checked_recomputes, 1u);
  EXPECT_FALSE(IsWrong());
  EXPECT_TRUE(AllAre(Read(y), 6));
  Driver().cuStreamDestroy_v2(other_stream);
}

// Another number may mean that a kernel overwrites less than with those that were tried.
class KindsOfOthersTest : public CheckedReplaysTest {
 protected:
  void SetUp() override {
    CheckedReplaysTest::SetUp();
    for (const unsigned int number : {1, 2}) {
      Set(input_, 10 + number);
      Repeat("half_at", 2, number);
    }
    Set(input_, 5);
    ASSERT_EQ(Count().proved_operations, 2u);
    job_->proofs().DropEagerly();
    hidden.launches = 0;
  }
  void ExpectFirstHalf(const std::vector<int>& values, int value) {
    EXPECT_EQ(std::count(values.begin(), values.begin() + kWords / 2, value),
              static_cast<std::ptrdiff_t>(kWords / 2));
  }
};

TEST_F(KindsOfOthersTest, TheRestOfMemoryWithoutContentIsMadeAgain) {
  const CUdeviceptr y = Allocated();
  Launch("half_at", {y, input_, 9});
  ASSERT_EQ(Count().recompute_drops, 1u);
  ExpectFirstHalf(Read(y), 5);
  EXPECT_FALSE(IsWrong());
}

TEST_F(KindsOfOthersTest, MemoryWithContentKeepsTheRest) {
  const CUdeviceptr y = Allocated();
  Set(y, 3);
  Launch("half_at", {y, input_, 9});
  EXPECT_EQ(Count().recompute_drops, 0u);
  const std::vector<int> values = Read(y);
  ExpectFirstHalf(values, 5);
  EXPECT_EQ(values.back(), 3);
  EXPECT_EQ(hidden.launches, 1);
}

// It stays so, whatever is right afterwards.
class ConstantsTest : public CheckedReplaysTest {
 protected:
  void SetUp() override {
    CheckedReplaysTest::SetUp();
    Libraries::Instance().Remove(module_);
    Libraries::Instance().Note(module_, DependsOn::kConstants);
    constant = 1;
  }
  // As a copy on the stream would.
  void WriteConstant(int value) {
    TouchSet set;
    set.writes_variables = true;
    Addresses none;
    ASSERT_EQ(job_->calls().Begin(&none, {stream_, false}, Effect::kMayWrite, &set), CUDA_SUCCESS);
    Driver().cuStreamSynchronize(stream_);
    constant = value;
    job_->calls().End(&set, Effect::kMayWrite);
  }
};

// Regression: one constant in a module kept all its kernels from being made again.
TEST_F(ConstantsTest, KernelsBesideConstantsAreMadeAgain) {
  const CUdeviceptr y = Dropped("plus_constant");
  EXPECT_TRUE(AllAre(Read(y), 6));
  EXPECT_EQ(Count().checked_recomputes, 1u);
  EXPECT_FALSE(IsWrong());
}

TEST_F(ConstantsTest, WhatMayReadThemIsMadeAgainBeforeTheyAreWritten) {
  const CUdeviceptr y = Dropped("plus_constant");
  WriteConstant(2);
  EXPECT_TRUE(AllAre(Read(y), 6));
  EXPECT_EQ(Count().checked_recomputes, 1u);
  EXPECT_FALSE(IsWrong());
}

TEST_F(ConstantsTest, WritingThemLeavesOtherRecordsAlone) {
  Libraries::Instance().Remove(module_);
  Libraries::Instance().Note(module_, DependsOn::kNothingElse);
  const CUdeviceptr y = Dropped("liar");
  WriteConstant(2);
  EXPECT_EQ(Count().recomputes, 0u);
  EXPECT_TRUE(AllAre(Read(y), 5));
}

TEST_F(CheckedReplaysTest, WrongIsForGood) {
  const CUdeviceptr y = Dropped("liar");
  hidden.lies = true;
  Read(y);
  hidden.lies = false;
  const CUdeviceptr other = Allocated();
  Launch("liar", {other, input_});
  Read(other);
  EXPECT_TRUE(IsWrong());
}

}  // namespace
}  // namespace spillway::interposer
