#include "simulator/driver/memory/address_space.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "simulator/driver/failure.h"

namespace spillway::simulator {
namespace {

constexpr std::size_t kGranule = PhysicalMemory::kGranuleBytes;

class AddressSpaceTest : public ::testing::Test {
 protected:
  static char* At(std::uintptr_t address) { return reinterpret_cast<char*>(address); }

  PhysicalMemory physical_{8 * kGranule};
  AddressSpace addresses_;
};

TEST_F(AddressSpaceTest, FreedRangesAreReusedLowestFirst) {
  const auto first = addresses_.Reserve(kGranule, kGranule, 0);
  const auto second = addresses_.Reserve(kGranule, kGranule, 0);
  EXPECT_EQ(second, first + kGranule);

  addresses_.Free(first, kGranule);

  EXPECT_EQ(addresses_.Reserve(kGranule, kGranule, 0), first);
}

TEST_F(AddressSpaceTest, FreeHintIsUsed) {
  const auto first = addresses_.Reserve(kGranule, kGranule, 0);
  const auto hint = first + 100 * kGranule;

  EXPECT_EQ(addresses_.Reserve(kGranule, kGranule, hint), hint);
  EXPECT_NE(addresses_.Reserve(kGranule, kGranule, hint), hint);
}

TEST_F(AddressSpaceTest, TwoMappingsOfOneBlockAreTheSameBytes) {
  const auto block = physical_.Create(kGranule, Location::kDevice);
  const auto range = addresses_.Reserve(2 * kGranule, kGranule, 0);
  addresses_.Map(range, kGranule, block, Access::kReadWrite);
  addresses_.Map(range + kGranule, kGranule, block, Access::kReadWrite);

  std::strcpy(At(range), "same");

  EXPECT_STREQ(At(range + kGranule), "same");
}

// It became a thread's stack, which was gone when the address was mapped again: two fuzzed programs
// in some 2,000 crashed.
TEST_F(AddressSpaceTest, UnmappedAddressesAreNeverFreeForOthers) {
  const auto block = physical_.Create(kGranule, Location::kDevice);
  const auto range = addresses_.Reserve(kGranule, kGranule, 0);
  std::atomic<bool> ends = false;
  int taken = 0;
  std::thread other([&] {
    while (!ends) {
      void* const room = mmap(At(range), kGranule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      taken += room == At(range);
      if (room != At(range)) munmap(room, kGranule);
    }
  });
  for (int i = 0; i < 2000; ++i) {
    addresses_.Map(range, kGranule, block, Access::kReadWrite);
    *At(range) = 1;
    addresses_.Unmap(range);
  }
  ends = true;
  other.join();
  EXPECT_EQ(taken, 0);
}

TEST_F(AddressSpaceTest, BytesSurviveUnmappingWhileTheBlockIsHeld) {
  const auto block = physical_.Create(kGranule, Location::kDevice);
  const auto range = addresses_.Reserve(kGranule, kGranule, 0);
  addresses_.Map(range, kGranule, block, Access::kReadWrite);
  std::strcpy(At(range), "kept");
  addresses_.Unmap(range);

  addresses_.Map(range, kGranule, block, Access::kReadWrite);

  EXPECT_STREQ(At(range), "kept");
}

TEST_F(AddressSpaceTest, NewMemoryReadsAsZeroEvenAfterAnotherUse) {
  const auto range = addresses_.Reserve(kGranule, kGranule, 0);
  for (int use = 0; use < 2; ++use) {
    addresses_.Map(range, kGranule, physical_.Create(kGranule, Location::kDevice),
                   Access::kReadWrite);
    EXPECT_EQ(At(range)[1000], 0);
    At(range)[1000] = 1;
    addresses_.Unmap(range);
  }
}

TEST_F(AddressSpaceTest, FindsTheFirstForbiddenByte) {
  const auto range = addresses_.Reserve(3 * kGranule, kGranule, 0);
  addresses_.Map(range, kGranule, physical_.Create(kGranule, Location::kDevice),
                 Access::kReadWrite);
  addresses_.Map(range + kGranule, kGranule, physical_.Create(kGranule, Location::kDevice),
                 Access::kRead);

  EXPECT_EQ(addresses_.FirstForbidden(range, 2 * kGranule, false), 0u);
  EXPECT_EQ(addresses_.FirstForbidden(range, 2 * kGranule, true), range + kGranule);
  EXPECT_EQ(addresses_.FirstForbidden(range + 5, 3 * kGranule - 5, false), range + 2 * kGranule);
}

TEST_F(AddressSpaceTest, UnmappedAndInaccessibleMemoryFaults) {
  const auto range = addresses_.Reserve(2 * kGranule, kGranule, 0);
  addresses_.Map(range, kGranule, physical_.Create(kGranule, Location::kDevice), Access::kNone);

  EXPECT_DEATH(*At(range) = 1, "");
  EXPECT_DEATH(*At(range + kGranule) = 1, "");
}

TEST_F(AddressSpaceTest, WithheldPartsOfMappingsFaultUntilReturned) {
  const auto range = addresses_.Reserve(3 * kGranule, kGranule, 0);
  addresses_.Map(range, 2 * kGranule, physical_.Create(2 * kGranule, Location::kDevice),
                 Access::kReadWrite);
  addresses_.Map(range + 2 * kGranule, kGranule, physical_.Create(kGranule, Location::kDevice),
                 Access::kRead);

  addresses_.Withhold(range + kGranule, 2 * kGranule);

  *At(range) = 1;
  EXPECT_DEATH(*At(range + kGranule) = 1, "");
  EXPECT_DEATH(static_cast<void>(*static_cast<volatile char*>(At(range + 2 * kGranule))), "");

  addresses_.GiveBack(range + kGranule, 2 * kGranule);

  *At(range + kGranule) = 1;
  EXPECT_EQ(*At(range + 2 * kGranule), 0);
  EXPECT_DEATH(*At(range + 2 * kGranule) = 1, "");
}

TEST_F(AddressSpaceTest, HostAccessibleMemoryIsNotWithheld) {
  const auto range = addresses_.Reserve(kGranule, kGranule, 0);
  addresses_.Map(range, kGranule, physical_.Create(kGranule, Location::kHost), Access::kReadWrite);
  addresses_.SetHostAccess(range, Access::kReadWrite);

  addresses_.Withhold(range, kGranule);

  *At(range) = 1;
}

TEST(PhysicalMemoryTest, CapacityCountsHeldBlocksUntilTheyAreReleased) {
  PhysicalMemory physical(4 * kGranule);
  auto most = physical.Create(3 * kGranule, Location::kDevice);

  EXPECT_THROW(physical.Create(2 * kGranule, Location::kDevice), Failure);
  EXPECT_NO_THROW(physical.Create(100 * kGranule, Location::kHost));

  most.reset();
  EXPECT_NO_THROW(physical.Create(4 * kGranule, Location::kDevice));
}

}  // namespace
}  // namespace spillway::simulator
