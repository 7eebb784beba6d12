// Launches that only seem to read memory that records need. (execute/presumed_reads.h)
#include "interposer/execute/presumed_reads.h"

#include "tests/unit/interposer/effects_job.h"

namespace spillway::interposer {
namespace {

// "sum" is known to read its input, unless it lies, and "copy" to make y = x again.
class PresumedReadsTest : public EffectsTest {
 protected:
  void SetUp() override {
    EffectsTest::SetUp();
    Settle();
    Repeat("copy", 2);
    ASSERT_EQ(RolesOf(Launch("sum", {settling_, input_})), "r");
    ASSERT_EQ(Count().proved_operations, 1u);
    job_->proofs().DropEagerly();
  }
  CUdeviceptr Dropped(const char* kernel = "copy") {
    const CUdeviceptr y = Allocated();
    const std::uint64_t before = Count().recompute_drops;
    Launch(kernel, {y, input_});
    EXPECT_EQ(Count().recompute_drops, before + 1);
    return y;
  }
  // Its record is still there.
  CUdeviceptr MadeAgain() {
    const CUdeviceptr y = Dropped();
    EXPECT_TRUE(AllAre(Read(y), 5));
    return y;
  }
  void Honest() {
    Driver().cuCtxSynchronize();
    hidden.lies = false;
  }
  // Another call ends, and all that may be dropped is.
  void DropAll() {
    const CUdeviceptr other = Allocated();
    Launch("copy", {Allocated(), other});
    Driver().cuCtxSynchronize();
    Read(other);
  }
  bool IsWrong() { return job_->view().IsWrong(); }
};

TEST_F(PresumedReadsTest, WhatIsGoneIsMadeFirst) {
  const CUdeviceptr y = Dropped();
  hidden.lies = true;
  Launch("sum", {settling_, input_});
  EXPECT_EQ(Count().recomputes, 1u);
  Honest();
  EXPECT_TRUE(AllAre(Read(y), 5));
  EXPECT_FALSE(IsWrong());
}

TEST_F(PresumedReadsTest, AReadLeavesTheRecord) {
  const CUdeviceptr y = MadeAgain();
  Launch("sum", {settling_, input_});
  DropAll();
  const Counters before = Count();
  EXPECT_TRUE(AllAre(Read(y), 5));
  EXPECT_EQ(Count().recomputes, before.recomputes + 1);
  EXPECT_FALSE(IsWrong());
}

TEST_F(PresumedReadsTest, AWriteToAnInputCostsACopy) {
  const CUdeviceptr y = MadeAgain();
  hidden.lies = true;
  Launch("sum", {settling_, input_});
  Honest();
  DropAll();
  const Counters before = Count();
  EXPECT_TRUE(AllAre(Read(y), 5));
  EXPECT_EQ(Count().recomputes, before.recomputes);
  EXPECT_GE(Count().changed_by_content_bytes, kBytes);
  EXPECT_FALSE(IsWrong());
}

TEST_F(PresumedReadsTest, AWriteToTheOutputCostsACopy) {
  const CUdeviceptr y = MadeAgain();
  hidden.lies = true;
  Launch("sum", {settling_, y});
  Honest();
  DropAll();
  std::vector<int> values = Read(y);
  EXPECT_EQ(values[7], 97);
  values[7] = 5;
  EXPECT_TRUE(AllAre(values, 5));
  EXPECT_FALSE(IsWrong());
}

TEST_F(PresumedReadsTest, OneFingerprintServesAllThatIsDropped) {
  const CUdeviceptr y = MadeAgain(), z = Allocated();
  const Counters before = Count();
  Launch("copy", {z, input_});
  EXPECT_EQ(Count().recompute_drops, before.recompute_drops + 2);
  EXPECT_EQ(Count().fingerprinted_bytes, before.fingerprinted_bytes + 3 * kBytes) << "each once";
  EXPECT_TRUE(AllAre(Read(y), 5));
  EXPECT_TRUE(AllAre(Read(z), 5));
  EXPECT_FALSE(IsWrong());
}

TEST_F(PresumedReadsTest, AFingerprintServesUntilTheNextRead) {
  const CUdeviceptr y = MadeAgain(), z = Allocated();
  Launch("copy", {z, input_});
  EXPECT_TRUE(AllAre(Read(y), 5));
  EXPECT_TRUE(AllAre(Read(z), 5));
  hidden.lies = true;
  Launch("sum", {settling_, input_});
  Honest();
  const Counters before = Count();
  DropAll();
  EXPECT_TRUE(AllAre(Read(y), 5));
  EXPECT_TRUE(AllAre(Read(z), 5));
  EXPECT_EQ(Count().recomputes, before.recomputes);
  EXPECT_GE(Count().changed_by_content_bytes, before.changed_by_content_bytes + 2 * kBytes);
  EXPECT_FALSE(IsWrong());
}

// Its own launch is a presumed read as well.
TEST_F(PresumedReadsTest, AWriteByTheRecordedLaunchCostsACopy) {
  Set(input_, 6);  // what memory without content holds by now is 5
  Repeat("writer", 2);
  Set(input_, 5);
  ASSERT_EQ(Count().proved_operations, 2u);
  hidden.lies = true;
  const CUdeviceptr y = Allocated();
  Launch("writer", {y, input_});
  Honest();
  Driver().cuCtxSynchronize();
  Read(y);
  Set(input_, 6);
  EXPECT_TRUE(AllAre(Read(y), 5));
  EXPECT_FALSE(IsWrong());
}

class InsuredDropsTest : public PresumedReadsTest {
 protected:
  void SetUp() override {
    PresumedReadsTest::SetUp();
    Set(input_, 6);
    Repeat("liar", 2);
    Set(input_, 5);
    ASSERT_EQ(Count().proved_operations, 2u);
    job_->proofs().InsureFirst(2);
  }
};

TEST_F(InsuredDropsTest, TheFirstKeepAHostCopy) {
  // A replay is judged when the next one begins.
  for (const std::uint64_t copied : {1u, 2u, 3u, 3u}) {
    const CUdeviceptr y = Dropped();
    EXPECT_TRUE(AllAre(Read(y), 5));
    Driver().cuCtxSynchronize();
    EXPECT_EQ(Count().offloaded_bytes, copied * kBytes);
    EXPECT_EQ(Count().insured_recomputes, copied);
    Free(y);
  }
  EXPECT_EQ(Count().mismatched_recomputes, 0u);
}

TEST_F(InsuredDropsTest, AMismatchCostsACopyAndRefutesTheKind) {
  const CUdeviceptr y = Dropped("liar");
  hidden.lies = true;
  EXPECT_TRUE(AllAre(Read(y), 5)) << "from its host copy";
  Honest();
  Driver().cuCtxSynchronize();
  EXPECT_FALSE(IsWrong());

  const CUdeviceptr another = Allocated();
  Launch("liar", {another, input_});
  Read(another);
  const std::uint64_t drops = Count().recompute_drops;
  Launch("liar", {Allocated(), input_});

  EXPECT_EQ(Count().mismatched_recomputes, 1u);
  EXPECT_EQ(Count().recompute_drops, drops) << "never again";
}

TEST_F(InsuredDropsTest, FreedOutputsGiveTheirCopiesBack) {
  Free(Dropped());
  const size_t pinned_bytes = job_->view().Read().pinned_bytes;
  for (int i = 0; i < 3; ++i) Free(Dropped());
  EXPECT_EQ(job_->view().Read().pinned_bytes, pinned_bytes);
}

TEST_F(InsuredDropsTest, WithoutMemoryForAReplayTheCopyServes) {
  const CUdeviceptr y = Dropped();
  const std::uint64_t recomputes = Count().recomputes;
  job_->grants().SetBudget(4 * kGranuleBytes);
  EXPECT_TRUE(AllAre(Read(y), 5));
  EXPECT_EQ(Count().recomputes, recomputes);
  EXPECT_TRUE(AllAre(Read(input_), 5));
}

// Small inputs of records are saved before the program overwrites them.
class SavedInputsTest : public EffectsTest {
 protected:
  void SetUp() override {
    EffectsTest::SetUp();
    Settle();
    before_ = Allocated(kSmallBytes);
    bias_ = Allocated(kSmallBytes);
    ASSERT_EQ(bias_, before_ + kSmallBytes);
    Set(before_, 100, kSmallBytes);
    Set(bias_, 1, kSmallBytes);
  }
  CUdeviceptr Dropped(const char* kernel, std::vector<CUdeviceptr> others) {
    CUdeviceptr y = 0;
    for (int i = 0; i < 3; ++i) {
      if (y) Free(y);
      y = Allocated();
      others[0] = y;
      if (i == 2) job_->proofs().DropEagerly();
      Launch(kernel, others);
      if (i < 2) Settle();
    }
    EXPECT_EQ(Count().recompute_drops, 1u);
    return y;
  }

  CUdeviceptr before_ = 0, bias_ = 0;
};

TEST_F(SavedInputsTest, OldBytesServeReplays) {
  const CUdeviceptr y = Dropped("biased", {0, input_, bias_});
  Set(bias_, 2, kSmallBytes);
  EXPECT_EQ(Count().recomputes, 0u) << "or else nothing was saved";
  EXPECT_TRUE(AllAre(Read(y), 6));
  EXPECT_FALSE(job_->view().IsWrong());
}

// The copy gets a block whose former content has a fingerprint.
TEST_F(SavedInputsTest, CopiesInheritNoFingerprint) {
  Free(Dropped("biased", {0, input_, before_}));
  Free(before_);
  while (Allocated(kSmallBytes) != before_) continue;  // the others of its slab are in use now
  Free(before_);
  const CUdeviceptr y = Allocated();
  Launch("biased", {y, input_, bias_});
  Set(bias_, 2, kSmallBytes);
  EXPECT_EQ(Count().recomputes, 0u);
  EXPECT_TRUE(AllAre(Read(y), 6));
  EXPECT_FALSE(job_->view().IsWrong());
}

// Then the launch would read the saved copy's neighbour.
TEST_F(SavedInputsTest, WhatMayBeAnotherBlocksEndIsNotReplaced) {
  const CUdeviceptr y = Dropped("biased_before", {0, input_, before_, bias_});
  Set(bias_, 2, kSmallBytes);
  EXPECT_EQ(Count().recomputes, 1u);
  EXPECT_TRUE(AllAre(Read(y), 205));
  EXPECT_FALSE(job_->view().IsWrong());
}

}  // namespace
}  // namespace spillway::interposer
