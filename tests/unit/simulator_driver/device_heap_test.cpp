#include "simulator/driver/memory/device_heap.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "simulator/driver/failure.h"
#include "tests/unit/simulator_driver/units.h"

namespace spillway::simulator {
namespace {

class DeviceHeapTest : public ::testing::Test {
 protected:
  PhysicalMemory physical_{256 * kMebibyte};
  AddressSpace addresses_;
  DeviceHeap heap_{physical_, addresses_, Location::kDevice};
};

TEST_F(DeviceHeapTest, TenThousandTinyAllocationsFitInAFewSlabs) {
  std::set<std::uintptr_t> bases;
  for (int i = 0; i < 10'000; ++i) {
    const auto base = heap_.Allocate(100);
    EXPECT_EQ(base % 512, 0u);
    bases.insert(base);
  }

  EXPECT_EQ(bases.size(), 10'000u);
  EXPECT_EQ(heap_.physical_bytes(), 6 * kMebibyte);  // 4096 slots of 512 bytes in each 2 MiB slab
}

TEST_F(DeviceHeapTest, LargeAllocationsAreWholeGranulesWithAGapBetween) {
  const auto first = heap_.Allocate(3 * kMebibyte);
  const auto second = heap_.Allocate(1 * kMebibyte);

  EXPECT_EQ(first % (2 * kMebibyte), 0u);
  EXPECT_EQ(heap_.physical_bytes(), 6 * kMebibyte);
  EXPECT_NE(addresses_.FirstForbidden(first, 4 * kMebibyte + 1, true), 0u);
  EXPECT_NE(first + 4 * kMebibyte, second);
}

TEST_F(DeviceHeapTest, AnEmptiedHeapHoldsNothing) {
  std::vector<std::uintptr_t> bases;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{700}, 5 * kMebibyte, kMebibyte - 1}) {
    bases.push_back(heap_.Allocate(bytes));
  }

  for (const auto base : bases) heap_.Free(base);

  EXPECT_EQ(heap_.physical_bytes(), 0u);
  EXPECT_EQ(physical_.free_bytes(), physical_.capacity_bytes());
}

TEST_F(DeviceHeapTest, FreedNeighboursInASlabJoin) {
  const auto first = heap_.Allocate(512 * 1000);
  const auto second = heap_.Allocate(512 * 1000);
  heap_.Allocate(512);
  heap_.Free(first);
  heap_.Free(second);

  EXPECT_EQ(heap_.Allocate(512 * 2000), first);
}

TEST_F(DeviceHeapTest, FullDeviceIsOutOfMemoryAndLosesNothing) {
  heap_.Allocate(200 * kMebibyte);
  const auto free_bytes = physical_.free_bytes();

  EXPECT_THROW(heap_.Allocate(100 * kMebibyte), Failure);

  EXPECT_EQ(physical_.free_bytes(), free_bytes);
}

}  // namespace
}  // namespace spillway::simulator
