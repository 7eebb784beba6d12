// What could make recomputed bytes wrong, or delay a program: unseen waits, foreign memory, faults.
#include <atomic>

#include "base/pause.h"
#include "tests/unit/interposer/recompute_job.h"

namespace spillway::interposer {
namespace {

class RecomputeHazardsTest : public RecomputeTest {
 protected:
  // Freed memory waits for the waiting stream, as with the bare driver.
  void MakeLargerJob() {
    job_->ReleaseAll();
    MakeJob(ParkChoice::kOff, 4 * kBuffers * kBufferBytes);
  }
  static CUstream NewStream() {
    CUstream stream = nullptr;
    EXPECT_EQ(Driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return stream;
  }
  void Clobber(size_t bytes) {
    clobbered_bytes_ = bytes;
    ASSERT_EQ(job_->allocations().Allocate(bytes, &clobbered_), CUDA_SUCCESS);
    Set(clobbered_, 0, bytes / 4);
  }
  // Drops two outputs, buffers 1 and 3, that only freed memory can recompute. Buffer 1 also needs
  // buffer 4.
  void DropTwoAndFreeTheirInputs() {
    is_free_memory_used_ = false;
    Set(buffers_[4], 2, kWords);
    Set(buffers_[2], 6, kWords);
    Launch(derive_, 1, 0, buffers_[4]);
    Derive(3, 2);
    ASSERT_EQ(Count().recompute_drops, 2u);
    for (const size_t input : {0, 2}) ASSERT_TRUE(job_->allocations().Free(buffers_[input]));
  }
  // Does what the hook of that call does.
  void Await(CUstream stream) {
    const std::vector<Use> covered = job_->streams().IssuedOn({stream, false});
    ASSERT_EQ(Driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
    ProgramStreams::Completed(covered);
  }
  // Work behind the wait may write an input after the call was made.
  void ExpectPendingWritePreventsRecord(CUstream waiting) {
    volatile std::uint32_t* const word = WaitWithoutHook(waiting);
    Set(added_, 9, kSmallWords, waiting);

    Launch(derive_, 1, 0, added_);

    EXPECT_EQ(Count().recompute_drops, 0u);
    EndWait(word, waiting);
    ExpectAll(1, 17);
  }
};

// Outputs are compared and restored piece by piece.
TEST_F(RecomputeHazardsTest, DifferenceInTheLastWordRefutesAnOperation) {
  times_counted = 0;
  Launch(Function("count_last"), 1, 0);

  EXPECT_EQ(Count().refuted_operations, 1u);
  EXPECT_EQ(times_counted, 2);
  const std::vector<int> values = Read(buffers_[1]);
  EXPECT_EQ(values[0], 5);
  EXPECT_EQ(values.back(), 1);
}

TEST_F(RecomputeHazardsTest, ProofPinsMemoryForOnePieceOnly) {
  Derive(1, 0);

  EXPECT_EQ(Count().proved_operations, 1u);
  EXPECT_LT(job_->view().Read().pinned_peak_bytes, kBufferBytes);
}

TEST_F(RecomputeHazardsTest, DeferredFreeHappensOnce) {
  Derive(1, 0);
  job_->grants().SetBudget(kBufferBytes + kGranuleBytes);
  ASSERT_TRUE(job_->allocations().Free(buffers_[0]));

  EXPECT_FALSE(job_->allocations().Free(buffers_[0])) << "the driver says what it is";
  EXPECT_FALSE(job_->allocations().FreeAsync(buffers_[0], {stream_, false}));

  job_->grants().SetBudget(3 * kBufferBytes);
  ExpectAll(1, 15);
}

// Regression: the call's record relied on an input that was still to be written.
TEST_F(RecomputeHazardsTest, WriteEnqueuedBeforeTheCallMayRunAfterIt) {
  CUstream waiting = NewStream();
  volatile std::uint32_t* const word = WaitWithoutHook(waiting);
  Set(buffers_[0], 9, kWords, waiting);

  Derive(1, 0);

  EXPECT_EQ(Count().recompute_drops, 0u);
  EndWait(word, waiting);
  ExpectAll(1, 15);
  ExpectAll(0, 9);
}

TEST_F(RecomputeHazardsTest, WorkOnOtherRangesDoesNotPreventARecord) {
  MakeLargerJob();
  CUstream waiting = NewStream();
  volatile std::uint32_t* const word = WaitWithoutHook(waiting);
  Set(buffers_[3], 9, kWords, waiting);

  Derive(1, 0);

  EXPECT_EQ(Count().recompute_drops, 1u);
  ExpectAll(1, 15);
  EndWait(word, waiting);
}

// Regression: the same for memory in a shared slab (a bias, a scale).
TEST_F(RecomputeHazardsTest, WriteOfSmallMemoryEnqueuedBeforeTheCallMayRunAfterIt) {
  ExpectPendingWritePreventsRecord(NewStream());
}

// The write begins without the lock.
TEST_F(RecomputeHazardsTest, LockFreeWriteOfSmallMemoryPreventsARecord) {
  CUstream waiting = NewStream();
  Set(added_, 2, kSmallWords, waiting);

  ExpectPendingWritePreventsRecord(waiting);
}

TEST_F(RecomputeHazardsTest, WriteBySomeOfThreeStreamsPreventsARecord) {
  CUstream waiting = NewStream();
  for (CUstream stream : {NewStream(), NewStream()}) {
    Set(added_, 2, kSmallWords, stream);
    ASSERT_EQ(Driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  }

  ExpectPendingWritePreventsRecord(waiting);
}

TEST_F(RecomputeHazardsTest, WorkOnOtherSmallMemoryDoesNotPreventARecord) {
  MakeLargerJob();
  CUstream waiting = NewStream();
  volatile std::uint32_t* const word = WaitWithoutHook(waiting);
  Set(clobbered_, 9, kSmallWords, waiting);

  Launch(derive_, 1, 0, added_);

  EXPECT_EQ(Count().recompute_drops, 1u);
  ExpectAll(1, 17);
  EndWait(word, waiting);
}

// The stream now does other work.
TEST_F(RecomputeHazardsTest, FormerWriterOfSmallMemoryDoesNotPreventARecord) {
  MakeLargerJob();
  CUstream waiting = NewStream();
  Set(added_, 2, kSmallWords, waiting);
  Await(waiting);
  Launch(derive_, 1, 0, added_);
  ASSERT_EQ(Count().recompute_drops, 1u);
  volatile std::uint32_t* const word = WaitWithoutHook(waiting);
  Set(buffers_[3], 9, kWords, waiting);

  Launch(derive_, 2, 0, added_);

  EXPECT_EQ(Count().recompute_drops, 2u);
  ExpectAll(2, 17);
  EndWait(word, waiting);
}

// Regression: the recomputation ran behind the write that required it. A reader on another stream
// waited for what the program did only after the read.
TEST_F(RecomputeHazardsTest, WaitingWriterDelaysNoReader) {
  MakeLargerJob();
  CUstream waiting = NewStream();
  Derive(1, 0);
  ASSERT_EQ(Count().recompute_drops, 1u);
  volatile std::uint32_t* const word = WaitWithoutHook(waiting);
  Set(buffers_[0], 9, kWords, waiting);

  ExpectAll(1, 15, other_stream_);

  EndWait(word, waiting);
  ExpectAll(0, 9);
}

// Scratch memory takes part of the budget, and stays when the budget shrinks.
TEST_F(RecomputeHazardsTest, ScratchMemoryAlwaysCountsAgainstTheBudget) {
  MakeLargerJob();
  Clobber(4 * kMiB);
  Launch(derive_, 1, 0, added_, clobbered_);
  Launch(derive_, 1, 0, added_, clobbered_);
  ASSERT_EQ(Count().recompute_drops, 1u);
  EXPECT_LE(job_->view().Read().held_peak_bytes, job_->grants().budget_bytes());

  job_->grants().SetBudget(5 * kBufferBytes);
  EXPECT_LE(job_->view().Read().held_bytes, 5 * kBufferBytes);
  for (const size_t to : {2, 3, 4}) {
    Launch(derive_, to, 0, added_, clobbered_);
    ExpectAll(to, 17);
    EXPECT_LE(job_->view().Read().held_bytes, 5 * kBufferBytes);
  }
  ExpectAll(1, 17);
  EXPECT_EQ(Read(clobbered_, 1)[0], 5) << "only the program's own launches write there";
}

TEST_F(RecomputeHazardsTest, CallWithAWorkspaceBeyondScratchMemoryGetsNoRecord) {
  MakeLargerJob();
  Clobber(6 * kMiB);
  for (int i = 0; i < 3; ++i) Launch(derive_, 1, 0, added_, clobbered_);

  EXPECT_EQ(Count().recompute_drops, 0u);
  EXPECT_EQ(Count().proved_operations, 0u);
  ExpectAll(1, 17);
}

// Driver-served memory is not watched: any call may write what such a launch reads.
TEST_F(RecomputeHazardsTest, LaunchThatReachesForeignMemoryIsNotRecomputed) {
  CUdeviceptr others = 0;
  ASSERT_EQ(Driver().cuMemAlloc_v2(&others, kSmallWords * 4), CUDA_SUCCESS);
  ASSERT_EQ(Driver().cuMemsetD32Async(others, 2, kSmallWords, stream_), CUDA_SUCCESS);
  is_claimed_ = false;

  Launch(derive_, 1, 0, others);

  EXPECT_EQ(Count().recompute_drops, 0u);
  ASSERT_EQ(Driver().cuMemsetD32Async(others, 7, kSmallWords, stream_), CUDA_SUCCESS);
  ExpectAll(1, 17);
  Driver().cuMemFree_v2(others);
}

// Such a call reaches its inputs in another way, so its bytes there may change unseen.
TEST_F(RecomputeHazardsTest, CallThatNamesLessThanItsClaimsIsNotRecomputed) {
  claimed_besides_ = added_;
  Derive(1, 0);
  EXPECT_EQ(Count().recompute_drops, 0u);
  claimed_besides_ = buffers_[3];
  Derive(2, 0);
  EXPECT_EQ(Count().recompute_drops, 0u);
}

// Regression: driver-served memory took the space of an output whose input the program had freed.
TEST_F(RecomputeHazardsTest, DriverServedMemoryLeavesSpaceToRecomputeFromFreedInputs) {
  // Given a job without host memory for a buffer. The driver may serve as much as is free without
  // the input
  job_->ReleaseAll();
  const size_t budget_bytes = (kBuffers + 3) * kBufferBytes + 2 * kGranuleBytes;
  MakeJob(ParkChoice::kOff, budget_bytes, kGranuleBytes);
  Derive(1, 0);
  ASSERT_EQ(Count().recompute_drops, 1u);
  ASSERT_TRUE(job_->allocations().Free(buffers_[0]));

  ASSERT_TRUE(job_->charges().Charge(job_->view().FreeBytes(), Unmovable::kDriverServed));
  ExpectAll(1, 15);
}

// Regression: a later free's memory was returned only once there was memory for the first.
TEST_F(RecomputeHazardsTest, FreeCompletesBehindOneThatCannot) {
  // Given two outputs that only freed memory can recompute, and a budget too small for the first
  // with all its inputs
  ASSERT_NO_FATAL_FAILURE(DropTwoAndFreeTheirInputs());
  const Counters before = Count();
  job_->grants().SetBudget(2 * kBufferBytes + kGranuleBytes);

  CUdeviceptr other = 0;
  ASSERT_EQ(job_->allocations().Allocate(kBufferBytes, &other), CUDA_SUCCESS);

  EXPECT_EQ(Count().recomputes - before.recomputes, 1u);
  EXPECT_EQ(Count().frees - before.frees, 1u);
  job_->grants().SetBudget((kBuffers + 1) * kBufferBytes);
  ExpectAll(1, 17);
  ExpectAll(3, 18);
}

// Regression: each free waited for another thread's call. An allocation took ten seconds for each.
TEST_F(RecomputeHazardsTest, CallInProgressIsAwaitedOnceForAllFrees) {
  // Given the same, and a call that lasts until the first free has been waited for
  ASSERT_NO_FATAL_FAILURE(DropTwoAndFreeTheirInputs());
  const Counters before = Count();
  job_->grants().SetBudget(2 * kBufferBytes + kGranuleBytes);
  std::atomic<bool> goes_on{false};
  std::thread other([&] {
    Addresses addresses;
    addresses.push_back(added_);
    TouchSet call;
    EXPECT_EQ(job_->calls().Begin(&addresses, {other_stream_, false}, Effect::kMayWrite, &call),
              CUDA_SUCCESS);
    goes_on = true;
    base::Pause(2'000'000'000);
    job_->calls().End(&call, Effect::kMayWrite);
  });
  while (!goes_on) base::YieldToOthers();

  CUdeviceptr others[2] = {};
  EXPECT_EQ(job_->allocations().Allocate(kBufferBytes, &others[0]), CUDA_SUCCESS);
  other.join();

  // Then the second is left to an allocation that no call delays
  EXPECT_EQ(Count().recomputes, before.recomputes);
  EXPECT_EQ(job_->allocations().Allocate(kBufferBytes, &others[1]), CUDA_SUCCESS);
  EXPECT_EQ(Count().recomputes - before.recomputes, 1u);
  job_->grants().SetBudget((kBuffers + 1) * kBufferBytes);
  ExpectAll(1, 17);
  ExpectAll(3, 18);
}

// The driver has encoded the address, so the launch cannot be redirected.
TEST_F(RecomputeHazardsTest, SmallInputInATensorMapIsNotSaved) {
  std::fill(std::begin(map_.opaque), std::end(map_.opaque), 0x5b11u);
  NoteTensorMap(map_, added_);
  Launch(Function("derive_mapped"), 1, 0, added_);
  ASSERT_EQ(Count().recompute_drops, 1u);

  Set(added_, 100, kSmallWords);
  ExpectAll(1, 17);
}

// A launch accepts a library's kernel as a function; the driver's functions for functions do not.
TEST_F(RecomputeHazardsTest, RecomputedLibraryKernelGetsItsSharedMemory) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  ASSERT_EQ(OfDriver<decltype(cuLibraryLoadData)>("cuLibraryLoadData")(
                &library, &kImage, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(
      OfDriver<decltype(cuLibraryGetKernel)>("cuLibraryGetKernel")(&kernel, library, "derive"),
      CUDA_SUCCESS);
  const auto allow = [kernel](int bytes) {
    ASSERT_EQ(OfDriver<decltype(cuKernelSetAttribute)>("cuKernelSetAttribute")(
                  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes, kernel, 0),
              CUDA_SUCCESS);
  };
  derive_ = reinterpret_cast<CUfunction>(kernel);
  shared_bytes_ = 96 << 10;
  allow(96 << 10);
  Derive(1, 0);
  ASSERT_EQ(Count().recompute_drops, 1u);
  allow(64 << 10);

  ExpectAll(1, 15);
}

// Regression: such a program then got success for unloading a module.
TEST_F(RecomputeHazardsTest, FaultedContextRecomputesNothing) {
  Derive(1, 0);
  ASSERT_EQ(Count().recompute_drops, 1u);
  CUdeviceptr nowhere = 4096;
  void* parameters[] = {&nowhere, &nowhere};
  ASSERT_EQ(Driver().cuLaunchKernel(Function("count"), 1, 1, 1, 1, 1, 1, 0, other_stream_,
                                    parameters, nullptr),
            CUDA_SUCCESS);
  ASSERT_EQ(Driver().cuStreamSynchronize(other_stream_), CUDA_ERROR_ILLEGAL_ADDRESS);

  EXPECT_TRUE(job_->replays().EndRecords());
  EXPECT_EQ(OfDriver<decltype(cuDevicePrimaryCtxReset)>("cuDevicePrimaryCtxReset_v2")(0),
            CUDA_SUCCESS);
}

}  // namespace
}  // namespace spillway::interposer
