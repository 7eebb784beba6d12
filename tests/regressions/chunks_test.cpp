// The driver calls of a steady iteration: chunks were cut and created anew in every round, for
// good.
#include <numeric>

#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

struct Calls {
  unsigned long long creates, releases, maps, set_accesses, unmaps;
};

Calls CallsSoFar() {
  return {Statistics("vmm_creates"), Statistics("vmm_releases"), Statistics("vmm_maps"),
          Statistics("vmm_set_accesses"), Statistics("vmm_unmaps")};
}

// A forward pass keeps its outputs, beside a workspace; a backward pass makes a gradient for each
// and frees both. In MiB.
constexpr size_t kMade[] = {26, 50, 12, 14, 6, 98, 50, 22, 10, 38, 18, 34};
constexpr size_t kWorkspace = 30;
constexpr int kCounted = 3;  // iterations
constexpr size_t kPeak =
    std::accumulate(std::begin(kMade), std::end(kMade), size_t{0}) + kWorkspace;

class ChunksTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    setenv("SPILLWAY_SIM_COMPUTE", "tags", 1);
  }

  static void Iterate() {
    std::vector<CUdeviceptr> made;
    for (size_t size : kMade) {
      const CUdeviceptr workspace = Filled(kWorkspace * kMiB, 1);
      made.push_back(Filled(size * kMiB, static_cast<unsigned int>(size)));
      EXPECT_EQ(cuMemFree(workspace), CUDA_SUCCESS);
    }
    CUdeviceptr gradient = Filled(2 * kMiB, 3);
    for (size_t i = std::size(kMade); i-- > 0;) {
      EXPECT_EQ(cuMemcpyDtoDAsync(made[i], gradient, 2 * kMiB, nullptr), CUDA_SUCCESS);
      EXPECT_EQ(cuMemFree(made[i]), CUDA_SUCCESS);
      EXPECT_EQ(cuMemFree(gradient), CUDA_SUCCESS);
      gradient = Filled(kMade[i] * kMiB / 4 * 3, 4);
    }
    EXPECT_EQ(cuMemFree(gradient), CUDA_SUCCESS);
  }

  static Calls CallsOfSteadyIterations(int settling) {
    for (int i = 0; i < settling; ++i) Iterate();
    const Calls before = CallsSoFar();
    for (int i = 0; i < kCounted; ++i) Iterate();
    const Calls after = CallsSoFar();
    return {after.creates - before.creates, after.releases - before.releases,
            after.maps - before.maps, after.set_accesses - before.set_accesses,
            after.unmaps - before.unmaps};
  }
};

// Chunks of 32 MiB were released, and granules created for the ends of ranges. Then granules served
// where large chunks were short, so the next iteration had to cut again. That took about a hundred
// creations and a third of the time of each iteration. Later chunks still passed from size to size,
// which took 55 mapping calls an iteration.
TEST_F(ChunksTest, TightBudgetIsNotCutAnewInEachIteration) {
  SetSize("SPILLWAY_BUDGET", kPeak * kMiB);
  Start();

  const Calls calls = CallsOfSteadyIterations(13);

  EXPECT_EQ(calls.creates, 0u);
  EXPECT_EQ(calls.releases, 0u);
  EXPECT_EQ(calls.maps + calls.set_accesses + calls.unmaps, 0u) << "mappings outlive their memory";
  EXPECT_LE(Statistics("vmm_creates"), kPeak / 4) << "more chunks than of 8 MiB and granules";
  EXPECT_EQ(Statistics("d2h_bytes"), 0u);
  EXPECT_LE(Statistics("device_bytes_peak"), kPeak * kMiB + 2 * kMiB);
}

// The next iteration reuses ranges of equal sizes as they are.
TEST_F(ChunksTest, BudgetForAllSizesNeedsNoMappingCalls) {
  SetSize("SPILLWAY_BUDGET", 2 * kPeak * kMiB);
  Start();

  const Calls calls = CallsOfSteadyIterations(2);

  EXPECT_EQ(calls.creates + calls.releases + calls.maps + calls.set_accesses + calls.unmaps, 0u);
}

// While memory moves, ranges came to be mapped with ever smaller chunks: each is given access and
// unmapped by itself, which costs as much as creating and releasing a large one (docs/gpu). Some
// 120 were mapped in each iteration.
TEST_F(ChunksTest, RangesThatMoveAreMappedWithFewChunks) {
  SetSize("SPILLWAY_BUDGET", kPeak * kMiB * 6 / 10);
  Start();

  const Calls calls = CallsOfSteadyIterations(9);

  EXPECT_LE(calls.maps, kCounted * 70u) << "some 64 while layouts are tried, fewer later";
  EXPECT_LE(calls.creates, kCounted * 30u) << "a hundred in each iteration, once";
  EXPECT_LE(calls.releases, kCounted * 30u);
  EXPECT_GT(Statistics("d2h_bytes"), 0u);
}

// Every try to take memory retired all idle freed memory, and then waited for more.
TEST_F(ChunksTest, FreedMemoryThatWouldNotBeEnoughKeepsItsMapping) {
  setenv("SPILLWAY_PARK", "off", 1);
  Start();
  Filled(48 * kMiB, 1);
  const CUdeviceptr freed = Filled(8 * kMiB, 2);
  ASSERT_EQ(cuMemFree(freed), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);

  Filled(32 * kMiB, 3);

  EXPECT_EQ(Statistics("vmm_unmaps"), 1u) << "of the evicted one";
  EXPECT_EQ(Allocated(8 * kMiB), freed);
}

// In chunks of 8 MiB it took 3.5 s: a chunk costs 0.2 ms to create.
TEST_F(ChunksTest, WholeDeviceIsAllocatedInLessThanASecond) {
  constexpr size_t kGiB = 1024 * kMiB;
  setenv("SPILLWAY_SIM_PROFILE", "h200", 1);
  unsetenv("SPILLWAY_BUDGET");
  Start();
  const auto nanoseconds_for = [](size_t count, size_t bytes) {
    const unsigned long long begin_ns = Statistics("simulated_ns");
    std::vector<CUdeviceptr> made;
    for (size_t i = 0; i < count; ++i) made.push_back(Allocated(bytes));
    const unsigned long long end_ns = Statistics("simulated_ns");
    for (const CUdeviceptr address : made) EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
    return end_ns - begin_ns;
  };

  EXPECT_LT(nanoseconds_for(1, 138 * kGiB), 200'000'000u);
  EXPECT_LT(nanoseconds_for(138, kGiB), 200'000'000u);
  EXPECT_LT(nanoseconds_for(138 * 16, 64 * kMiB), 1'000'000'000u);
}

}  // namespace
}  // namespace spillway::regressions
