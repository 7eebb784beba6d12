// The free memory that a program is told, in mebibytes, of a budget of 64.
#include "interposer/execute/free_memory.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

constexpr std::size_t kFreeMiB = std::size_t{1} << 20;

// `most`: the total that can be granted.
std::size_t Free(std::size_t used, std::size_t most) {
  const std::size_t rest = most - std::min(most, used);
  return FreeMemoryOf({.budget_bytes = 64 * kFreeMiB,
                       .used_bytes = used * kFreeMiB,
                       .most_bytes = most * kFreeMiB,
                       .largest_bytes = rest * kFreeMiB});
}

TEST(FreeMemoryTest, IsExactUpToHalfOfTheBudget) {
  EXPECT_EQ(Free(0, 1024), 64 * kFreeMiB);
  EXPECT_EQ(Free(1, 1024), 63 * kFreeMiB);
  EXPECT_EQ(Free(32, 1024), 32 * kFreeMiB);
}

TEST(FreeMemoryTest, FallsBeyondHalfInProportionToGrantableMemory) {
  EXPECT_EQ(Free(48, 64 + 32),
            24 * kFreeMiB);  // three quarters of the 64 after the first half
  EXPECT_EQ(Free(64, 64 + 32), 16 * kFreeMiB);
  EXPECT_EQ(Free(80, 64 + 32), 8 * kFreeMiB);
  EXPECT_EQ(Free(96, 64 + 32), 0u);
}

TEST(FreeMemoryTest, IsTheRestOfTheBudgetWhereNoMoreCanBeGranted) {
  EXPECT_EQ(Free(48, 64), 16 * kFreeMiB);
  EXPECT_EQ(Free(64, 64), 0u);
  EXPECT_EQ(Free(70, 64), 0u);
  EXPECT_EQ(Free(48, 20), 16 * kFreeMiB);
}

TEST(FreeMemoryTest, NeverExceedsTheLargestGrantableAllocation) {
  const GivenMemory given = {.budget_bytes = 64 * kFreeMiB,
                             .used_bytes = 64 * kFreeMiB,
                             .most_bytes = 1024 * kFreeMiB,
                             .largest_bytes = 10 * kFreeMiB};
  EXPECT_EQ(FreeMemoryOf(given), 10 * kFreeMiB);
}

// PyTorch's expandable segments are such memory. Its out-of-memory error said that 127 MiB were
// free when it could not get 64.
TEST(FreeMemoryTest, IsExactForMemoryThatCannotMove) {
  const auto free = [](std::size_t unmovable, std::size_t movable) {
    return FreeMemoryOf({.budget_bytes = 64 * kFreeMiB,
                         .used_bytes = (unmovable + movable) * kFreeMiB,
                         .unmovable_bytes = unmovable * kFreeMiB,
                         .most_bytes = 1024 * kFreeMiB,
                         .largest_bytes = 64 * kFreeMiB}) /
           kFreeMiB;
  };
  EXPECT_EQ(free(55, 0), 9u);
  EXPECT_EQ(free(64, 0), 0u);
  EXPECT_EQ(free(66, 0), 0u);
  EXPECT_EQ(free(40, 12), 12u);  // half of what can move is used
  EXPECT_EQ(free(40, 24), 11u);  // more can be kept on the host
}

TEST(FreeMemoryTest, EachAllocationLowersItToZero) {
  for (const std::size_t most : {64, 65, 100, 200, 4096, 1 << 20}) {
    for (std::size_t used = 0; used < most; ++used) {
      ASSERT_LT(Free(used + 1, most), Free(used, most)) << used << " of " << most;
      ASSERT_LE(Free(used, most), (most - used) * kFreeMiB) << used << " of " << most;
    }
    EXPECT_EQ(Free(most, most), 0u);
  }
}

TEST(FreeMemoryTest, HoldsForTheLargestDevicesAndHosts) {
  const GivenMemory given = {.budget_bytes = std::size_t{288} << 30,
                             .used_bytes = std::size_t{300} << 30,
                             .most_bytes = std::size_t{1} << 50,
                             .largest_bytes = std::size_t{1} << 48};
  EXPECT_GT(FreeMemoryOf(given), std::size_t{143} << 30);
  EXPECT_LE(FreeMemoryOf(given), std::size_t{144} << 30);
}

}  // namespace
}  // namespace spillway::interposer
