// What says that a job is not idle: that it waits in a call, and that its device has something to
// do.
#include "tests/unit/interposer/recompute_job.h"

namespace spillway::interposer {
namespace {

using WorkTest = RecomputeTest;

// A job that proved its operations for longer than a second was taken for idle, and its memory lent
// to neighbours.
TEST_F(WorkTest, WhileACallIsMadeTwiceTheProgramWaitsInIt) {
  std::vector<bool> seen;
  while_it_runs = [&] {
    std::thread([&] {
      JobSnapshot now;
      if (job_->view().TryRead(&now)) seen.push_back(now.in_call);
    }).join();
  };

  Launch(Function("show"), 1, 0);

  ASSERT_EQ(Count().proved_operations, 1u);
  EXPECT_EQ(seen, std::vector<bool>{true}) << "the first time its job's lock is held";
  EXPECT_FALSE(job_->view().Read().in_call);
}

TEST_F(WorkTest, TheDeviceHasWorkUntilItIsDone) {
  ASSERT_EQ(Driver().cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_FALSE(job_->view().HasWork());

  Busy(stream_);
  Set(buffers_[0], 9, kWords);
  EXPECT_TRUE(job_->view().HasWork());

  ASSERT_EQ(Driver().cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_FALSE(job_->view().HasWork());
}

// As behind cuStreamWaitValue: only the program can end it.
TEST_F(WorkTest, WhatWaitsForTheProgramIsNoWork) {
  job_->streams().AboutToWait({stream_, false});
  volatile std::uint32_t* const word = WaitUnseen(stream_);
  Set(buffers_[0], 9, kWords);

  EXPECT_FALSE(job_->view().HasWork());

  EndWait(word, stream_);
  EXPECT_FALSE(job_->view().HasWork());
}

}  // namespace
}  // namespace spillway::interposer
