#include "interposer/driver/chunk.h"
#include "interposer/ledger/pools.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

CUmemoryPool Handle(std::uintptr_t number) { return reinterpret_cast<CUmemoryPool>(number); }

PoolFigures Read(Pools& pools, CUmemoryPool pool) {
  const std::optional<PoolFigures> figures = pools.Read(pool);
  EXPECT_TRUE(figures);
  return figures.value_or(PoolFigures{});
}

TEST(MemoryPoolsTest, OnlyPlainPoolsOfADeviceAreServed) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  EXPECT_EQ(ServiceOf(properties), PoolService::kServed);
  CUmemPoolProps exported = properties, host = properties, capped = properties,
                 managed = properties;
  exported.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  host.location.type = CU_MEM_LOCATION_TYPE_HOST;
  capped.maxSize = 1 << 30;
  managed.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
  EXPECT_EQ(ServiceOf(exported), PoolService::kExported);
  EXPECT_EQ(ServiceOf(host), PoolService::kHost);
  EXPECT_EQ(ServiceOf(capped), PoolService::kCapped);
  EXPECT_EQ(ServiceOf(managed), PoolService::kManaged);
}

TEST(MemoryPoolsTest, StatisticsFollowAllocationsAndFrees) {
  Pools pools;
  pools.Add(Handle(1), 0, PoolService::kServed);
  pools.Allocated(Handle(1), 0x100, 3 * kMiB);
  pools.Allocated(Handle(1), 0x200, 100);
  EXPECT_EQ(Read(pools, Handle(1)).used_bytes, 4 * kMiB + 512);
  EXPECT_EQ(Read(pools, Handle(1)).reserved_bytes, 6 * kMiB);
  pools.Freed(0x100);
  pools.Freed(0x100);  // unknown by now
  EXPECT_EQ(Read(pools, Handle(1)).used_bytes, 512u);
  EXPECT_EQ(Read(pools, Handle(1)).used_high_bytes, 4 * kMiB + 512);
  EXPECT_EQ(Read(pools, Handle(1)).reserved_bytes, 6 * kMiB);
}

TEST(MemoryPoolsTest, SynchronizingKeepsMemoryUpToTheThreshold) {
  Pools pools;
  pools.Add(Handle(1), 0, PoolService::kServed);
  pools.Allocated(Handle(1), 0x100, 8 * kMiB);
  int asked = 0;
  const auto threshold = [&](CUmemoryPool) {
    ++asked;
    return 2 * kMiB;
  };
  pools.Waited(threshold);
  EXPECT_EQ(asked, 0);  // nothing to release
  pools.Freed(0x100);
  pools.Waited(threshold);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(Read(pools, Handle(1)).reserved_bytes, 2 * kMiB);
  EXPECT_EQ(Read(pools, Handle(1)).reserved_high_bytes, 8 * kMiB);
  pools.ResetReservedHigh(Handle(1));
  EXPECT_EQ(Read(pools, Handle(1)).reserved_high_bytes, 2 * kMiB);
}

TEST(MemoryPoolsTest, ReusedPoolHandleStartsFresh) {
  Pools pools;
  pools.Add(Handle(1), 0, PoolService::kServed);
  pools.Allocated(Handle(1), 0x100, 8 * kMiB);
  pools.Destroyed(Handle(1));
  pools.Add(Handle(1), 0, PoolService::kServed);
  EXPECT_EQ(Read(pools, Handle(1)).used_bytes, 0u);
  pools.Freed(0x100);
  EXPECT_EQ(Read(pools, Handle(1)).used_bytes, 0u);
}

TEST(MemoryPoolsTest, DriverServedPoolMayKeepFreedMemory) {
  Pools pools;
  EXPECT_TRUE(pools.Drivers().empty());
  pools.Add(Handle(2), 0, PoolService::kExported);
  pools.Allocated(Handle(2), 0x100, 8 * kMiB);
  EXPECT_EQ(Read(pools, Handle(2)).used_bytes, 0u);  // the driver's own statistics count
  EXPECT_EQ(pools.Drivers(), std::vector<CUmemoryPool>{Handle(2)});
  EXPECT_EQ(pools.PoolOf(0x100), Handle(2));
  EXPECT_EQ(pools.PoolOf(0x300), nullptr);
  EXPECT_EQ(pools.Freed(0x100), Handle(2));
  pools.Allocated(Handle(2), 0x200, 8 * kMiB);
  pools.Destroyed(Handle(2));
  EXPECT_EQ(pools.Freed(0x200), nullptr);
}

TEST(MemoryPoolsTest, CurrentPoolIsForgottenWhenOneIsSetOrDestroyed) {
  Pools pools;
  pools.Add(Handle(1), 3, PoolService::kServed);
  pools.SetCurrent(3, Handle(1));
  EXPECT_EQ(pools.Current(3), Handle(1));
  EXPECT_EQ(pools.Current(2), nullptr);
  pools.Destroyed(Handle(1));
  EXPECT_EQ(pools.Current(3), nullptr);
}

}  // namespace
}  // namespace spillway::interposer
