// The free memory read 0 once the budget was used up, while further allocations were still granted
// (docs/decisions/0010-what-free-memory-means.md).
#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

class FreeMemoryTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    SetSize("SPILLWAY_HOST_LIMIT", 256 * kMiB);
  }
  static size_t Free() {
    size_t free_bytes = 0, total_bytes = 0;
    EXPECT_EQ(cuMemGetInfo(&free_bytes, &total_bytes), CUDA_SUCCESS);
    EXPECT_LE(free_bytes, total_bytes);
    return free_bytes;
  }
  static size_t Total() {
    size_t free_bytes = 0, total_bytes = 0;
    EXPECT_EQ(cuMemGetInfo(&free_bytes, &total_bytes), CUDA_SUCCESS);
    return total_bytes;
  }
};

TEST_F(FreeMemoryTest, ProgramThatQueriesBeforeEachAllocationContinues) {
  Start();
  for (int i = 0; i < 16; ++i) {
    ASSERT_GE(Free(), 8 * kMiB) << "it gives up with " << i << " buffers";
    Filled(8 * kMiB, 1);
  }
}

TEST_F(FreeMemoryTest, FreeMemoryIsGrantedWhateverTheSizes) {
  for (const size_t first : {2, 20, 48, 64}) {
    SCOPED_TRACE(first);
    Start();
    std::vector<CUdeviceptr> all = {Allocated(first * kMiB)};
    for (size_t free_bytes = Free(); free_bytes >= 2 * kMiB; free_bytes = Free()) {
      CUdeviceptr next = 0;
      ASSERT_EQ(cuMemAlloc(&next, free_bytes), CUDA_SUCCESS) << all.size() << ": " << free_bytes;
      all.push_back(next);
      ASSERT_LT(Free(), free_bytes);
      ASSERT_LT(all.size(), 400u);
    }
    for (const CUdeviceptr address : all) EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
  }
}

TEST_F(FreeMemoryTest, ProgramThatTakesAllFreeMemoryTerminates) {
  Start();
  size_t count = 0;
  for (CUdeviceptr next = 0; Free() > 4 * kMiB; ++count)
    ASSERT_EQ(cuMemAlloc(&next, 4 * kMiB), CUDA_SUCCESS) << count;
  EXPECT_GT(count, 64u / 4);
  EXPECT_LE(count, (64u + 256) / 4);
}

TEST_F(FreeMemoryTest, IsZeroExactlyWhereNothingMoreIsGranted) {
  Start();
  for (CUdeviceptr next = 0;;) {
    const size_t free_bytes = Free();
    const CUresult result = cuMemAlloc(&next, 2 * kMiB);
    ASSERT_EQ(result == CUDA_SUCCESS, free_bytes > 0) << free_bytes;
    if (result != CUDA_SUCCESS) break;
  }
}

// Frameworks take all free memory, or a share of it: it must fit the device.
TEST_F(FreeMemoryTest, InitialFreeMemoryIsTheBudget) {
  Start();
  EXPECT_EQ(Free(), 64 * kMiB);
  Filled(20 * kMiB, 1);
  EXPECT_EQ(Free(), 44 * kMiB) << "exact, as long as no more than half is used";
}

TEST_F(FreeMemoryTest, WithoutEvictionsItIsTheRestOfTheBudget) {
  setenv("SPILLWAY_PARK", "host", 1);
  setenv("SPILLWAY_SIM_HOST_NUMA", "0", 1);
  Start();
  Filled(40 * kMiB, 1);
  EXPECT_EQ(Free(), 24 * kMiB);
}

void Nothing(const simulator::LaunchShape&, void* const*) {}
SPILLWAY_ONE_KERNEL(kNothingImage, "nothing", Nothing, nullptr, 0, nullptr);

// Frameworks query it once.
TEST_F(FreeMemoryTest, DeviceKeepsItsSizeWhenTheBudgetChanges) {
  const std::string changes = "2:" + std::to_string(32 * kMiB) + ",3:" + std::to_string(128 * kMiB);
  setenv("SPILLWAY_BUDGET_SCHEDULE", changes.c_str(), 1);
  Start();
  const CUfunction nothing = Kernel(&kNothingImage, "nothing");
  Filled(8 * kMiB, 1);
  ASSERT_EQ(Launch(nothing, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Total(), 64 * kMiB);
  EXPECT_EQ(Free(), 56 * kMiB);

  ASSERT_EQ(Launch(nothing, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Total(), 64 * kMiB);
  EXPECT_EQ(Free(), 24 * kMiB) << "as if others used the rest";

  ASSERT_EQ(Launch(nothing, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Total(), 64 * kMiB);
  EXPECT_EQ(Free(), 64 * kMiB);
  size_t device_bytes = 0;
  EXPECT_EQ(cuDeviceTotalMem(&device_bytes, device_), CUDA_SUCCESS);
  EXPECT_EQ(device_bytes, 64 * kMiB);
}

TEST_F(FreeMemoryTest, WithoutABudgetItIsTheDevicesFigure) {
  unsetenv("SPILLWAY_BUDGET");
  SetSize("SPILLWAY_SIM_CAPACITY", 256 * kMiB);
  Start();
  const size_t at_first = Free();
  const CUdeviceptr first = Filled(160 * kMiB, 1);
  EXPECT_EQ(Free(), at_first - 160 * kMiB);
  Filled(80 * kMiB, 1);
  EXPECT_EQ(Free(), at_first - 240 * kMiB);
  ASSERT_EQ(cuMemFree(first), CUDA_SUCCESS);
  EXPECT_EQ(Free(), at_first - 80 * kMiB);
  EXPECT_EQ(Total(), 256 * kMiB);
}

}  // namespace
}  // namespace spillway::regressions
