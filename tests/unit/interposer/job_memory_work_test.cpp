// The signs that a job is not idle: it waits in a call, or its device has work.
#include "tests/unit/interposer/recompute_job.h"

namespace spillway::interposer {
namespace {

using WorkTest = RecomputeTest;

// Regression: a job that proved operations for over a second counted as idle, and its memory was
// lent.
TEST_F(WorkTest, ProvingAnOperationCountsAsACallInProgress) {
  std::vector<bool> seen;
  while_it_runs = [&] {
    std::thread([&] {
      if (const auto now = job_->view().TryRead()) seen.push_back(now->in_call);
    }).join();
  };

  Launch(Function("show"), 1, 0);

  ASSERT_EQ(Count().proved_operations, 1u);
  EXPECT_EQ(seen, std::vector<bool>{true}) << "the first time its job's lock is held";
  EXPECT_FALSE(job_->view().Read().in_call);
}

TEST_F(WorkTest, DeviceHasWorkUntilTheWorkIsComplete) {
  ASSERT_EQ(Driver().cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_FALSE(job_->view().HasWork());

  Busy(stream_);
  Set(buffers_[0], 9, kWords);
  EXPECT_TRUE(job_->view().HasWork());

  ASSERT_EQ(Driver().cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_FALSE(job_->view().HasWork());
}

// As behind cuStreamWaitValue: only the program can end the wait.
TEST_F(WorkTest, StreamThatWaitsForTheProgramIsNoWork) {
  job_->streams().AboutToWait({stream_, false});
  volatile std::uint32_t* const word = WaitWithoutHook(stream_);
  Set(buffers_[0], 9, kWords);

  EXPECT_FALSE(job_->view().HasWork());

  EndWait(word, stream_);
  EXPECT_FALSE(job_->view().HasWork());
}

}  // namespace
}  // namespace spillway::interposer
