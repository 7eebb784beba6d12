// Recomputable outputs are dropped as soon as their call has ended, over the simulated driver.
// Every reader finds the bytes, whatever became of the inputs.
#include "tests/unit/interposer/recompute_job.h"

namespace spillway::interposer {
namespace {

TEST_F(RecomputeTest, OutputIsRecomputedWhenRead) {
  Derive(1, 0);
  ASSERT_EQ(Count().recompute_drops, 1u);
  EXPECT_EQ(Count().offloaded_bytes, 0u);

  ExpectAll(1, 15);

  EXPECT_EQ(Count().recomputes, 1u);
  EXPECT_EQ(Count().recomputed_bytes, kBufferBytes);
  ExpectAll(1, 15);
  EXPECT_EQ(Count().recomputes, 1u) << "it is there";
}

TEST_F(RecomputeTest, InputMayBeOverwritten) {
  Derive(1, 0);
  ASSERT_EQ(Count().recompute_drops, 1u);
  Set(buffers_[0], 7, kWords);
  ExpectAll(0, 7);
  ExpectAll(1, 15);
}

TEST_F(RecomputeTest, InputMayBePartlyOverwritten) {
  Derive(1, 0);
  Set(buffers_[0] + kBufferBytes / 2, 7, 16);
  ExpectAll(1, 15);
}

TEST_F(RecomputeTest, InputMayBeFreed) {
  Derive(1, 0);
  ASSERT_EQ(Count().recompute_drops, 1u);
  const std::uint64_t frees = Count().frees;
  ASSERT_TRUE(job_->allocations().Free(buffers_[0]));
  EXPECT_EQ(Count().recomputes, 0u) << "the program may be about to free the output, too";
  CUdeviceptr next = 0;
  ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &next), CUDA_SUCCESS);
  EXPECT_EQ(Count().recomputes, 1u);
  EXPECT_EQ(Count().frees, frees + 1);
  Set(next, 9, kWords);
  ExpectAll(1, 15);
}

// A program decides by the free memory.
TEST_F(RecomputeTest, FreedInputCountsAsFreeMemory) {
  Derive(1, 0);
  const size_t free_bytes = job_->view().FreeBytes();

  ASSERT_TRUE(job_->allocations().Free(buffers_[0]));
  EXPECT_EQ(job_->view().FreeBytes(), free_bytes + kBufferBytes);
  ExpectAll(1, 15);
  ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &buffers_[0]), CUDA_SUCCESS);
  EXPECT_EQ(job_->view().FreeBytes(), free_bytes);
}

TEST_F(RecomputeTest, InputMayBeFreedRightBeforeTheOutputIsRead) {
  Derive(1, 0);
  Derive(2, 1);
  ASSERT_TRUE(job_->allocations().Free(buffers_[0]));
  ASSERT_TRUE(job_->allocations().Free(buffers_[1]));
  ExpectAll(2, 45);
  ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &buffers_[0]), CUDA_SUCCESS);
  Set(buffers_[0], 9, kWords);
  ExpectAll(2, 45);
}

TEST_F(RecomputeTest, OutputsFreedTogetherAreNotRecomputed) {
  // Given three dropped outputs, each made from the one before
  Derive(1, 0);
  Derive(2, 1);
  Derive(3, 2);
  const Counters before = Count();

  // When the program frees them in the order in which it made them, and continues
  for (size_t i = 0; i < 4; ++i) ASSERT_TRUE(job_->allocations().Free(buffers_[i]));
  EXPECT_EQ(Count().frees, before.frees + 4);
  EXPECT_EQ(Count().wanted_bytes, before.wanted_bytes - 4 * kBufferBytes);
  for (size_t i = 0; i < 4; ++i)
    ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &buffers_[i]), CUDA_SUCCESS);

  // Then nothing was recomputed, and the memory serves others.
  EXPECT_EQ(Count().recomputes, before.recomputes);
  Set(buffers_[0], 7, kWords);
  Derive(1, 0);
  ExpectAll(1, 21);
}

TEST_F(RecomputeTest, InputMayBeFreedInStreamOrder) {
  Derive(1, 0);
  ASSERT_TRUE(job_->allocations().FreeAsync(buffers_[0], {other_stream_, false}));
  CUdeviceptr next = 0;
  ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &next), CUDA_SUCCESS);
  Set(next, 9, kWords, other_stream_);
  ExpectAll(1, 15);
}

TEST_F(RecomputeTest, SmallInputIsWatchedToo) {
  Launch(derive_, 1, 0, added_);
  ASSERT_EQ(Count().recompute_drops, 1u);
  Set(added_, 100, kSmallWords);
  ExpectAll(1, 17);
}

TEST_F(RecomputeTest, SmallInputsAreSavedBeforeTheyChange) {
  // Given two outputs that are made with one small input, and one that is made with its later value
  Launch(derive_, 1, 0, added_);
  Launch(derive_, 2, 0, added_);
  const Counters before = Count();
  Set(added_, 100, kSmallWords);
  Launch(derive_, 3, 0, added_);
  Set(added_, 200, kSmallWords, other_stream_);
  EXPECT_EQ(Count().recomputes, before.recomputes) << "nothing is made because of that";

  ExpectAll(1, 17);
  ExpectAll(2, 17);
  ExpectAll(3, 115);
  EXPECT_EQ(Count().recomputes, before.recomputes + 3);
  for (size_t i = 0; i < kBuffers; ++i) ASSERT_TRUE(job_->allocations().Free(buffers_[i]));
  ASSERT_TRUE(job_->allocations().Free(added_));
  ASSERT_TRUE(job_->allocations().Free(clobbered_));
  EXPECT_EQ(Count().frees, Count().allocations);
}

// The kernel might still use an address that the program has freed.
TEST_F(RecomputeTest, SmallInputsNamedAfterTheirFreeAreReleased) {
  Launch(derive_, 1, 0, added_);
  ASSERT_TRUE(job_->allocations().Free(added_));
  Addresses stale;
  stale.push_back(added_);
  TouchSet set;
  ASSERT_EQ(job_->calls().Begin(&stale, {stream_, false}, Effect::kLaunches, &set), CUDA_SUCCESS);
  job_->calls().End(&set, Effect::kLaunches);

  ExpectAll(1, 17);
  for (CUdeviceptr buffer : buffers_) ASSERT_TRUE(job_->allocations().Free(buffer));
  ASSERT_TRUE(job_->allocations().Free(clobbered_));
  EXPECT_EQ(Count().frees, Count().allocations);
}

TEST_F(RecomputeTest, SavedInputsStayWithinAPartOfTheBudget) {
  // Given that part, a granule, and outputs with small inputs of which two fit
  ASSERT_LT(job_->grants().budget_bytes() / 16, kGranuleBytes);
  ASSERT_EQ(job_->allocations().Allocate(kGranuleBytes / 5 * 2, &added_), CUDA_SUCCESS);
  for (size_t i = 1; i < kBuffers; ++i) {
    Set(added_, static_cast<unsigned int>(i), kSmallWords);
    Launch(derive_, i, 0, added_);
  }
  Set(added_, 100, kSmallWords);
  EXPECT_EQ(Count().recomputes, kBuffers - 1 - 2) << "the others are made before";
  for (size_t i = 1; i < kBuffers; ++i) ExpectAll(i, 15 + static_cast<int>(i));
}

TEST_F(RecomputeTest, SmallInputsMayBeFreed) {
  Launch(derive_, 1, 0, added_);
  ASSERT_TRUE(job_->allocations().Free(added_));
  EXPECT_EQ(Count().recomputes, 0u) << "a block of a slab can wait";
  CUdeviceptr next = 0;
  ASSERT_EQ(job_->allocations().Allocate(kSmallWords * 4, &next), CUDA_SUCCESS);
  Set(next, 100, kSmallWords);
  ExpectAll(1, 17);
}

TEST_F(RecomputeTest, ClobberedMemoryIsWrittenOnce) {
  // Given a job that has memory for clobbered outputs since the first call that needs some
  Launch(derive_, 1, 0, added_, clobbered_);
  ASSERT_EQ(Count().recompute_drops, 0u);

  Launch(derive_, 1, 0, added_, clobbered_);
  ASSERT_EQ(Count().recompute_drops, 1u);
  ExpectAll(1, 17);

  EXPECT_EQ(Count().recomputes, 1u);
  EXPECT_EQ(Read(clobbered_, 1)[0], 2);
}

// A convolution's workspace often is: it lies in a slab.
TEST_F(RecomputeTest, ClobberedMemoryMayBeTheLargestSmallAllocation) {
  clobbered_bytes_ = kSmallBytes - 512;
  ASSERT_EQ(job_->allocations().Allocate(clobbered_bytes_, &clobbered_), CUDA_SUCCESS);
  Launch(derive_, 1, 0, added_, clobbered_);
  Launch(derive_, 1, 0, added_, clobbered_);
  ASSERT_EQ(Count().recompute_drops, 1u);
  ASSERT_TRUE(job_->allocations().Free(clobbered_));

  ExpectAll(1, 17);

  EXPECT_EQ(Count().recomputes, 1u);
}

TEST_F(RecomputeTest, NumberThatLooksLikeAClobberedAddressIsNotRedirected) {
  // Given an operation that was proved with a number that is no address
  const CUfunction derive_by = Function("derive_by");
  Launch(derive_by, 1, 0, 4, clobbered_);
  Launch(derive_by, 1, 0, 4, clobbered_);
  ASSERT_EQ(Count().recompute_drops, 1u);

  // When the same operation gets a number that could be an address in its clobbered memory
  const CUdeviceptr number = clobbered_ + 16;
  Launch(derive_by, 2, 0, number, clobbered_);

  ExpectAll(2, 15 + static_cast<int>(number % 1000));
  ExpectAll(1, 19);
}

TEST_F(RecomputeTest, ChainIsRecomputedFromItsBeginning) {
  Derive(1, 0);
  Derive(2, 1);
  Derive(3, 2);
  const std::uint64_t before = Count().recomputes;

  ExpectAll(3, 5 * 27);

  EXPECT_EQ(Count().recomputes - before, 3u);
  Set(buffers_[0], 7, kWords);
  ExpectAll(1, 15);
  ExpectAll(2, 45);
}

TEST_F(RecomputeTest, FreedOutputsReleaseTheirInputs) {
  Derive(1, 0);
  ASSERT_TRUE(job_->allocations().Free(buffers_[1]));
  Set(buffers_[0], 7, kWords);
  EXPECT_EQ(Count().recomputes, 0u);
  ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &buffers_[1]), CUDA_SUCCESS);
  Set(buffers_[1], 8, kWords);
  ExpectAll(1, 8);
}

TEST_F(RecomputeTest, DroppedOutputThatIsOverwrittenHasTheNewBytes) {
  Derive(1, 0);
  Set(buffers_[1], 8, kWords);
  Derive(2, 0);
  Set(buffers_[0], 7, kWords);
  ExpectAll(1, 8);
  ExpectAll(2, 15);
}

TEST_F(RecomputeTest, RecomputedOutputIsNotDroppedByAnOldRecord) {
  Derive(1, 0);
  Set(buffers_[0], 7, kWords);
  Derive(2, 0);
  ExpectAll(1, 15);
  ExpectAll(2, 21);
}

TEST_F(RecomputeTest, AnotherStreamFindsTheBytes) {
  Busy(stream_);
  Derive(1, 0);
  ExpectAll(1, 15, other_stream_);
}

TEST_F(RecomputeTest, WriterOnAnotherStreamWaitsForTheRecomputation) {
  Derive(1, 0);
  ASSERT_EQ(Count().recompute_drops, 1u);
  Busy(stream_);
  Addresses addresses;
  addresses.push_back(buffers_[1]);
  TouchSet set;
  ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kReads, &set), CUDA_SUCCESS);
  job_->calls().End(&set, Effect::kReads);
  ASSERT_EQ(Count().recomputes, 1u);

  Set(buffers_[0], 7, kWords, other_stream_);

  ExpectAll(1, 15);
}

TEST_F(RecomputeTest, ReaderOnAnotherStreamWaitsForTheRecomputation) {
  Derive(1, 0);
  Busy(stream_);
  Addresses addresses;
  addresses.push_back(buffers_[1]);
  TouchSet set;
  ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kReads, &set), CUDA_SUCCESS);
  job_->calls().End(&set, Effect::kReads);
  ASSERT_EQ(Count().recomputes, 1u);

  addresses.push_back(buffers_[3]);
  TouchSet copies;
  ASSERT_EQ(job_->calls().Begin(&addresses, {other_stream_, false}, Effect::kMayWrite, &copies),
            CUDA_SUCCESS);
  Driver().cuMemcpyDtoDAsync_v2(buffers_[3], buffers_[1], kBufferBytes, other_stream_);
  job_->calls().End(&copies, Effect::kMayWrite);

  ExpectAll(3, 15, other_stream_);
}

TEST_F(RecomputeTest, NondeterministicOutputIsNotDropped) {
  const CUfunction count = Function("count");
  times_counted = 0;
  Launch(count, 1, 0);
  EXPECT_EQ(Count().refuted_operations, 1u);
  ExpectAll(1, 6);
  Launch(count, 1, 0);
  EXPECT_EQ(Count().recompute_drops, 0u);
  ExpectAll(1, 5 + 3);  // it ran for the first call and for its proof
}

TEST_F(RecomputeTest, CallWithSeveralLaunchesIsNotRecomputed) {
  Launch(derive_, 1, 0, 0, 0, 2);
  EXPECT_EQ(Count().recompute_drops, 0u);
  ExpectAll(1, 15);
}

TEST_F(RecomputeTest, EvictedInputsAreRestoredForARecomputation) {
  Derive(1, 0);
  ASSERT_EQ(Count().recompute_drops, 1u);
  job_->grants().SetBudget(3 * kBufferBytes);
  for (const size_t i : {2, 3, 4}) Set(buffers_[i], static_cast<unsigned int>(i), kWords);
  Driver().cuCtxSynchronize();
  ASSERT_TRUE(job_->view().IsEvicted(buffers_[0]));

  ExpectAll(1, 15);

  ExpectAll(0, 5);
  for (const size_t i : {2, 3, 4}) ExpectAll(i, static_cast<int>(i));
}

TEST_F(RecomputeTest, WithoutMemoryTheCallIsRefusedAndTheBytesAreRecomputedLater) {
  Derive(1, 0);
  ASSERT_EQ(Count().recompute_drops, 1u);
  job_->grants().SetBudget(kBufferBytes + kGranuleBytes);  // and a slab
  Addresses addresses;
  addresses.push_back(buffers_[0]);
  TouchSet set;
  EXPECT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kMayWrite, &set),
            CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_TRUE(job_->allocations().Free(buffers_[0])) << "it stays until it is not needed any more";

  job_->grants().SetBudget(3 * kBufferBytes);

  ExpectAll(1, 15);
}

// Libraries set a kernel's largest shared memory before each launch to the launch's own need.
TEST_F(RecomputeTest, RecomputationGetsItsSharedMemoryAfterASmallerLaunch) {
  const auto allow = [this](int bytes) {
    ASSERT_EQ(OfDriver<decltype(cuFuncSetAttribute)>("cuFuncSetAttribute")(
                  derive_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes),
              CUDA_SUCCESS);
  };
  shared_bytes_ = 96 << 10;
  allow(96 << 10);
  Derive(1, 0);
  ASSERT_EQ(Count().recompute_drops, 1u);
  allow(64 << 10);
  ExpectAll(1, 15);
}

TEST_F(RecomputeTest, OutputsAreRecomputedBeforeTheirKernelsAreUnloaded) {
  Derive(1, 0);
  Derive(2, 1);
  const std::uint64_t before = Count().recomputes;
  EXPECT_TRUE(job_->replays().EndRecords());
  EXPECT_EQ(Count().recomputes - before, 2u);
  Set(buffers_[0], 7, kWords);
  EXPECT_EQ(Count().recomputes - before, 2u);
  ExpectAll(1, 15);
  ExpectAll(2, 45);
}

TEST_F(RecomputeTest, WhileAStreamCapturesNothingIsDropped) {
  Derive(1, 0);
  CaptureBegan();
  ASSERT_TRUE(job_->replays().EndRecords());
  Derive(2, 0);
  EXPECT_EQ(Count().recompute_drops, 1u);
  CaptureEnded();
  ExpectAll(1, 15);
  ExpectAll(2, 15);
}

TEST_F(RecomputeTest, ConcurrentReadersAndWritersFindTheirBytes) {
  for (int round = 0; round < 20; ++round) {
    Set(buffers_[0], static_cast<unsigned int>(round), kWords);
    Driver().cuStreamSynchronize(stream_);
    Derive(1, 0);
    Driver().cuStreamSynchronize(stream_);
    std::thread writer([&] {
      Driver().cuCtxSetCurrent(context_);
      Set(buffers_[0], 1000, kWords, other_stream_);
    });
    ExpectAll(1, 3 * round);
    writer.join();
    ExpectAll(1, 3 * round);
    ExpectAll(0, 1000, other_stream_);
  }
}

}  // namespace
}  // namespace spillway::interposer
