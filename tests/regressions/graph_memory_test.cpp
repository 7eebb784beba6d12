// Two things were not counted: a graph's allocation nodes while the program had no other
// allocation, and what a launch leaves allocated once the executable is gone.
#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

class GraphMemoryTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    Start();
    ASSERT_EQ(cuGraphCreate(&graph_, 0), CUDA_SUCCESS);
  }
  void TearDown() override { EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB); }

  enum class Ends : bool { kFreed, kLeft };
  // Its memory is freed or left.
  CUresult Instantiate(size_t bytes, CUgraphExec* out, Ends ends = Ends::kFreed) {
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = {};
    alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
    alloc.bytesize = bytes;
    CUgraphNode first = nullptr, last = nullptr;
    EXPECT_EQ(cuGraphAddMemAllocNode(&first, graph_, nullptr, 0, &alloc), CUDA_SUCCESS);
    left_ = alloc.dptr;
    if (ends == Ends::kFreed) {
      EXPECT_EQ(cuGraphAddMemFreeNode(&last, graph_, &first, 1, left_), CUDA_SUCCESS);
    }
    return cuGraphInstantiate(out, graph_, 0);
  }

  static size_t FreeBytes() {
    size_t free = 0, total = 0;
    EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    return free;
  }

  CUgraph graph_ = nullptr;
  CUdeviceptr left_ = 0;
};

TEST_F(GraphMemoryTest, FirstAllocationOfAProgramCountsAgainstTheBudget) {
  CUgraphExec executable = nullptr;
  EXPECT_EQ(Instantiate(96 * kMiB, &executable), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(GraphMemoryTest, OtherMemoryMakesRoomForAGraphThatCameFirst) {
  CUgraphExec executable = nullptr;
  ASSERT_EQ(Instantiate(40 * kMiB, &executable), CUDA_SUCCESS);
  const CUdeviceptr a = Filled(16 * kMiB, 1), b = Filled(16 * kMiB, 2);

  ASSERT_EQ(cuGraphLaunch(executable, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  std::uint32_t words[2] = {};
  EXPECT_EQ(cuMemcpyDtoH(&words[0], a, 4), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH(&words[1], b, 4), CUDA_SUCCESS);
  EXPECT_EQ(words[0], 1u);
  EXPECT_EQ(words[1], 2u);
}

TEST_F(GraphMemoryTest, WhatALaunchLeavesCountsUntilItIsFreed) {
  CUgraphExec executable = nullptr;
  ASSERT_EQ(Instantiate(40 * kMiB, &executable, Ends::kLeft), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(executable, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphExecDestroy(executable), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphDestroy(graph_), CUDA_SUCCESS);
  const size_t free_bytes = FreeBytes();
  std::vector<CUdeviceptr> others;  // together more than the rest of the budget
  for (int i = 0; i < 3; ++i) others.push_back(Filled(16 * kMiB, 1));
  for (const CUdeviceptr other : others) ASSERT_EQ(cuMemFree(other), CUDA_SUCCESS);

  ASSERT_EQ(cuMemFree(left_), CUDA_SUCCESS);
  EXPECT_GT(FreeBytes(), free_bytes + 16 * kMiB);
}

TEST_F(GraphMemoryTest, ALaunchUnderWayCountsUntilItIsComplete) {
  CUgraphExec executable = nullptr;
  ASSERT_EQ(Instantiate(40 * kMiB, &executable), CUDA_SUCCESS);
  const CUdeviceptr busy = Filled(16 * kMiB, 1);
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(cuMemsetD8Async(busy, 1, 16 * kMiB, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(executable, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphExecDestroy(executable), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) Filled(16 * kMiB, 1);
}

}  // namespace
}  // namespace spillway::regressions
