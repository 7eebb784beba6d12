// Workspaces of library calls leave first and without a copy, and no other byte is lost.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/job_memory.h"
#include "tests/unit/interposer/learned_iteration.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

constexpr size_t kBytes = 16 * kMiB;

// Three of the four buffers fit.
class WorkspacesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Driver().cuInit(0), CUDA_SUCCESS) << "SPILLWAY_DRIVER names the simulated driver";
    ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    MakeJob(ParkChoice::kOff);
  }
  void MakeJob(ParkChoice choice, LearnChoice learn = LearnChoice::kOff) {
    job_ = std::make_unique<JobMemory>(context_, 0, 3 * kBytes, size_t{1} << 30, choice, learn);
    for (CUdeviceptr& buffer : buffers_)
      ASSERT_EQ(job_->allocations().Allocate(kBytes, &buffer), CUDA_SUCCESS);
    workspace_ = buffers_[3];
    for (size_t i = 0; i < 3; ++i) Fill(buffers_[i], static_cast<unsigned>(100 + i));
  }
  void TearDown() override {
    Driver().cuCtxSynchronize();
    job_->ReleaseAll();
    Driver().cuStreamDestroy_v2(stream_);
    Driver().cuDevicePrimaryCtxRelease_v2(0);
  }

  void Launch(CUdeviceptr at, const Claims* claims, unsigned int word, bool fails = false) {
    Addresses addresses;
    addresses.push_back(at);
    TouchSet set;
    set.shape = MixShape(3, word);
    set.claims = claims;
    set.is_documented = claims != nullptr;
    ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kLaunches, &set),
              CUDA_SUCCESS);
    if (!fails) Driver().cuMemsetD32Async(at, word, kBytes / 4, stream_);
    set.failed = fails;
    job_->calls().End(&set, Effect::kLaunches);
  }
  void Fill(CUdeviceptr at, unsigned int word) { Launch(at, nullptr, word); }
  static Claims Working(CUdeviceptr at, size_t bytes = kBytes) {
    Claims claims;
    claims.Scratch(at, bytes);
    return claims;
  }
  void LaunchOf(Claims* call, CUdeviceptr at, unsigned int word = 7) {
    Launch(at, call, word);
    call->NoteNamed({&at, 1});
  }
  void End(const Claims& call) { job_->calls().LibraryCallEnded(call); }
  void UseAsWorkspace(CUdeviceptr at, size_t bytes = kBytes) {
    Claims call = Working(at, bytes);
    LaunchOf(&call, at);
    End(call);
  }
  // The three others take the memory.
  void Displace(CUdeviceptr at) {
    for (const CUdeviceptr buffer : buffers_) {
      if (buffer != at) Read(buffer);
    }
    Driver().cuCtxSynchronize();
  }
  std::vector<unsigned int> Read(CUdeviceptr at) {
    std::vector<unsigned int> words(kBytes / 4);
    Addresses addresses;
    addresses.push_back(at);
    TouchSet set;
    EXPECT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kReads, &set),
              CUDA_SUCCESS);
    Driver().cuMemcpyDtoHAsync_v2(words.data(), at, kBytes, stream_);
    Driver().cuStreamSynchronize(stream_);
    job_->calls().End(&set, Effect::kReads);
    return words;
  }
  void ExpectAll(CUdeviceptr at, unsigned int word) {
    const std::vector<unsigned int> words = Read(at);
    EXPECT_TRUE(
        std::all_of(words.begin(), words.end(), [word](unsigned int each) { return each == word; }))
        << "begins with " << words[0];
  }
  Counters Count() { return job_->view().Read().counters; }

  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::unique_ptr<JobMemory> job_;
  CUdeviceptr buffers_[4] = {};
  CUdeviceptr workspace_ = 0;
};

TEST_F(WorkspacesTest, IdleWorkspaceLeavesWithoutACopyAndComesBackWithout) {
  UseAsWorkspace(workspace_);
  Displace(workspace_);
  const Counters before = Count();
  EXPECT_EQ(before.workspace_dropped_bytes, kBytes);

  UseAsWorkspace(workspace_);
  Displace(workspace_);

  // Then only a buffer that gave way to it was copied: in, as its host copy was clean
  EXPECT_EQ(Count().workspace_dropped_bytes, 2 * kBytes);
  EXPECT_EQ(Count().offloaded_bytes, before.offloaded_bytes);
  EXPECT_EQ(Count().restored_bytes - before.restored_bytes, kBytes);
}

TEST_F(WorkspacesTest, IdleWorkspaceLeavesBeforeWhatIsUnusedForLonger) {
  UseAsWorkspace(workspace_);
  const Counters before = Count();

  for (size_t i = 0; i < 3; ++i) ExpectAll(buffers_[i], static_cast<unsigned>(100 + i));

  EXPECT_EQ(Count().offloaded_bytes, before.offloaded_bytes);
  EXPECT_EQ(Count().workspace_dropped_bytes, kBytes);
}

// Regression: a program that makes a workspace for each call had gigabytes of idle ones, by the
// figure that the agent was told.
TEST_F(WorkspacesTest, FreedWorkspaceIsNotIdle) {
  UseAsWorkspace(workspace_);
  EXPECT_EQ(job_->view().Read().idle_workspace_bytes, kBytes);

  ASSERT_TRUE(job_->allocations().Free(workspace_));

  EXPECT_EQ(job_->view().Read().idle_workspace_bytes, 0u);
}

TEST_F(WorkspacesTest, BufferThatTheProgramFilledBecomesAWorkspace) {
  UseAsWorkspace(buffers_[0]);
  Displace(buffers_[0]);
  EXPECT_EQ(Count().workspace_dropped_bytes, kBytes);
}

// It may wait for the program, and fill the buffer behind the call.
TEST_F(WorkspacesTest, UnfinishedWorkOfAnotherStreamKeepsTheBytes) {
  CUstream other = nullptr;
  ASSERT_EQ(Driver().cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  void* word = nullptr;
  ASSERT_EQ(Driver().cuMemHostAlloc(&word, 4096, 0), CUDA_SUCCESS);
  *static_cast<volatile std::uint32_t*>(word) = 0;
  using WaitValue = CUresult(CUstream, CUdeviceptr, std::uint32_t, unsigned int);
  void* const driver = dlopen(getenv("SPILLWAY_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  auto* const wait = reinterpret_cast<WaitValue*>(dlsym(driver, "cuStreamWaitValue32_v2"));
  ASSERT_EQ(wait(other, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_GEQ),
            CUDA_SUCCESS);
  std::swap(stream_, other);
  Fill(buffers_[0], 9);
  std::swap(stream_, other);

  UseAsWorkspace(buffers_[0]);
  Driver().cuStreamSynchronize(stream_);
  *static_cast<volatile std::uint32_t*>(word) = 1;
  Driver().cuStreamSynchronize(other);
  Displace(buffers_[0]);

  EXPECT_EQ(Count().workspace_dropped_bytes, 0u);
  ExpectAll(buffers_[0], 9);
  Driver().cuStreamDestroy_v2(other);
}

TEST_F(WorkspacesTest, UseForAnythingElseKeepsTheBytes) {
  UseAsWorkspace(workspace_);
  Fill(workspace_, 9);
  Displace(workspace_);
  EXPECT_EQ(Count().workspace_dropped_bytes, 0u);
  ExpectAll(workspace_, 9);
}

TEST_F(WorkspacesTest, UseForAnythingElseDuringTheCallKeepsTheBytes) {
  UseAsWorkspace(workspace_);
  Claims call = Working(workspace_);
  LaunchOf(&call, workspace_);
  Fill(workspace_, 9);
  End(call);
  Displace(workspace_);
  ExpectAll(workspace_, 9);
}

TEST_F(WorkspacesTest, BytesStayBetweenTwoLaunchesOfACall) {
  UseAsWorkspace(workspace_);
  Claims call = Working(workspace_);
  LaunchOf(&call, workspace_, 11);

  Displace(workspace_);

  ExpectAll(workspace_, 11);
}

TEST_F(WorkspacesTest, SecondLaunchOfACallBeginsNoWorkspace) {
  // Given a call whose first launch left bytes in a buffer that was then evicted
  Claims call = Working(buffers_[0]);
  LaunchOf(&call, buffers_[0], 11);
  Displace(buffers_[0]);

  Claims second = call;
  Addresses addresses;
  addresses.push_back(buffers_[0]);
  TouchSet set;
  set.claims = &second;
  ASSERT_EQ(job_->calls().Begin(&addresses, {stream_, false}, Effect::kLaunches, &set),
            CUDA_SUCCESS);
  job_->calls().End(&set, Effect::kLaunches);

  ExpectAll(buffers_[0], 11);
}

TEST_F(WorkspacesTest, PartOfAnIdleWorkspaceServes) {
  UseAsWorkspace(workspace_);
  UseAsWorkspace(workspace_, kBytes / 2);
  Displace(workspace_);
  EXPECT_EQ(Count().workspace_dropped_bytes, kBytes);
}

TEST_F(WorkspacesTest, PartOfABufferIsNoWorkspace) {
  UseAsWorkspace(workspace_, kBytes - 4);
  Displace(workspace_);
  EXPECT_EQ(Count().workspace_dropped_bytes, 0u);
  ExpectAll(workspace_, 7);
}

TEST_F(WorkspacesTest, BufferOfARefusedCallKeepsItsBytes) {
  Displace(buffers_[0]);
  Claims call = Working(buffers_[0]);
  Launch(buffers_[0], &call, 7, true);
  End(call);
  ExpectAll(buffers_[0], 100);
  Displace(buffers_[0]);
  ExpectAll(buffers_[0], 100);
}

// Stray accesses must find the same bytes there.
TEST_F(WorkspacesTest, JobThatParksCopiesItsWorkspaces) {
  job_->ReleaseAll();
  MakeJob(ParkChoice::kHost);
  UseAsWorkspace(workspace_);
  Displace(workspace_);
  EXPECT_EQ(Count().workspace_dropped_bytes, 0u);
  ExpectAll(workspace_, 7);
}

TEST_F(WorkspacesTest, FreedWorkspaceLeavesNothingBehind) {
  UseAsWorkspace(workspace_);
  ASSERT_TRUE(job_->allocations().Free(workspace_, true));
  CUdeviceptr again = 0;
  ASSERT_EQ(job_->allocations().Allocate(kBytes, &again), CUDA_SUCCESS);
  Fill(again, 5);
  for (size_t i = 0; i < 3; ++i) ExpectAll(buffers_[i], static_cast<unsigned>(100 + i));
  ExpectAll(again, 5);
  ASSERT_TRUE(job_->allocations().Free(again, true));
}

// An iteration's launches: one in a library's call with a workspace, then three others.
TEST_F(WorkspacesTest, PlannedDropAwaitsTheEndOfTheCall) {
  job_->ReleaseAll();
  MakeJob(ParkChoice::kOff, LearnChoice::kAlways);
  const auto others = [&] {
    for (unsigned i = 0; i < 3; ++i) Fill(buffers_[i], 20 + i);
  };
  for (int i = 0; i < 24; ++i) {
    UseAsWorkspace(workspace_);
    others();
  }
  const auto pattern = LearnedIteration(job_.get());
  ASSERT_TRUE(pattern);
  const std::vector<scheduler::Buffer>& known = pattern->profile.buffers;
  const auto workspace = std::find_if(known.begin(), known.end(), [](const auto& buffer) {
    return buffer.kind == scheduler::BufferKind::kWorkspace;
  });
  ASSERT_NE(workspace, known.end());
  const scheduler::BufferId id{static_cast<int32_t>(workspace - known.begin())};
  scheduler::Plan plan = scheduler::PlanWithoutActions(pattern->profile);
  for (int32_t step = 0; step < static_cast<int32_t>(plan.steps.size()); ++step) {
    if (pattern->profile.operations[static_cast<size_t>(step)].writes.front() == id)
      plan.actions.push_back({scheduler::ActionKind::kDrop, id, step, {}});
  }
  auto live = scheduler::LivePlan::Make(pattern, plan, 1'000'000, 3 * kBytes);
  ASSERT_TRUE(live);
  job_->plan().Adopt(std::make_shared<const scheduler::LivePlan>(std::move(*live)));
  for (int i = 0; i < 3; ++i) {
    UseAsWorkspace(workspace_);
    others();
  }

  Claims call = Working(workspace_);
  const Counters before = Count();
  LaunchOf(&call, workspace_);
  EXPECT_EQ(Count().planned_departures, before.planned_departures);
  End(call);

  EXPECT_EQ(Count().planned_departures, before.planned_departures + 1);
  EXPECT_EQ(Count().workspace_dropped_bytes, before.workspace_dropped_bytes + kBytes);
}

}  // namespace
}  // namespace spillway::interposer
