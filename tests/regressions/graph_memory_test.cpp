// A graph's allocation nodes were not counted while the program had made no other allocation.
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

  // An executable graph that allocates memory and frees it.
  CUresult Instantiate(size_t bytes, CUgraphExec* out) {
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = {};
    alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
    alloc.bytesize = bytes;
    CUgraphNode first = nullptr, last = nullptr;
    EXPECT_EQ(cuGraphAddMemAllocNode(&first, graph_, nullptr, 0, &alloc), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphAddMemFreeNode(&last, graph_, &first, 1, alloc.dptr), CUDA_SUCCESS);
    return cuGraphInstantiate(out, graph_, 0);
  }

  CUgraph graph_ = nullptr;
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

}  // namespace
}  // namespace spillway::regressions
