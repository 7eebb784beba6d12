#include "interposer/lease/host_slabs.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

using protocol::SlabName;

constexpr size_t kSlab = 64;

std::vector<HostSlab> Some(std::initializer_list<uint64_t> names) {
  std::vector<HostSlab> slabs;
  for (const uint64_t name : names) slabs.push_back({SlabName{name}, kSlab, {}});
  return slabs;
}

TEST(HostSlabsTest, RequestsMissingMemoryInWholeSlabs) {
  HostSlabs slabs;
  slabs.SetGoal(0, 200);
  EXPECT_EQ(slabs.MissingBytes(0), 200u) << "how large a slab is, is not known yet";

  slabs.Deliver(0, Some({1}));

  EXPECT_EQ(slabs.MissingBytes(0), 2 * kSlab);
  EXPECT_EQ(slabs.MissingBytes(1), 0u);
}

// A region is mapped in one way.
TEST(HostSlabsTest, SlabsOfOneRegionAreOfOneKind) {
  HostSlabs slabs;
  slabs.SetGoal(0, 3 * kSlab);
  slabs.Deliver(0, Some({1, 2}));
  std::vector<HostSlab> drivers = Some({3});
  drivers[0].is_drivers = true;
  slabs.Deliver(0, std::move(drivers));
  EXPECT_FALSE(slabs.Have(0, 3 * kSlab));
  EXPECT_TRUE(slabs.Take(0, 3 * kSlab, 3 * kSlab).empty());

  const std::vector<HostSlab> two = slabs.Take(0, 2 * kSlab, 3 * kSlab);

  ASSERT_EQ(two.size(), 2u);
  EXPECT_FALSE(two[0].is_drivers || two[1].is_drivers);
  EXPECT_EQ(slabs.Take(0, kSlab, kSlab).at(0).name, SlabName{3});
}

TEST(HostSlabsTest, AheadItTakesARegionOrOnceAllHasComeTheRest) {
  HostSlabs slabs;
  EXPECT_TRUE(slabs.TakeAhead(0, 2 * kSlab).empty());
  slabs.SetGoal(0, 5 * kSlab + 1);
  slabs.Deliver(0, Some({1}));
  EXPECT_TRUE(slabs.TakeAhead(0, 2 * kSlab).empty()) << "more is to come";
  slabs.Deliver(0, Some({2, 3, 4}));
  EXPECT_EQ(slabs.TakeAhead(0, 2 * kSlab).size(), 2u);
  EXPECT_EQ(slabs.TakeAhead(0, 2 * kSlab).size(), 2u);
  slabs.Deliver(0, Some({5}));

  EXPECT_EQ(slabs.TakeAhead(0, 2 * kSlab).size(), 1u);
  EXPECT_TRUE(slabs.TakeAhead(0, 2 * kSlab).empty());
}

TEST(HostSlabsTest, AheadItTakesSlabsOfOneKind) {
  HostSlabs slabs;
  slabs.SetGoal(0, 3 * kSlab);
  slabs.Deliver(0, Some({1, 2}));
  std::vector<HostSlab> drivers = Some({3});
  drivers[0].is_drivers = true;
  slabs.Deliver(0, std::move(drivers));

  EXPECT_EQ(slabs.TakeAhead(0, 3 * kSlab).size(), 2u);
  EXPECT_EQ(slabs.TakeAhead(0, 3 * kSlab).size(), 1u);
}

TEST(HostSlabsTest, SurplusSlabsAreReturned) {
  HostSlabs slabs;
  slabs.SetGoal(0, 2 * kSlab);
  slabs.Deliver(0, Some({1, 2, 3}));
  EXPECT_EQ(slabs.TakeReturned(), std::vector{SlabName{3}});

  slabs.SetGoal(0, kSlab);

  EXPECT_EQ(slabs.TakeReturned(), std::vector{SlabName{2}});
  EXPECT_TRUE(slabs.TakeReturned().empty()) << "said once";
  EXPECT_EQ(slabs.Held(), std::vector{SlabName{1}});
}

TEST(HostSlabsTest, TakenSlabIsHeldUntilReturned) {
  HostSlabs slabs;
  slabs.SetGoal(0, 2 * kSlab);
  slabs.Deliver(0, Some({1, 2}));

  EXPECT_EQ(slabs.Take(0, 2 * kSlab, 2 * kSlab).size(), 2u);
  slabs.SetGoal(0, 0);
  EXPECT_EQ(slabs.Held().size(), 2u);
  EXPECT_TRUE(slabs.TakeReturned().empty());

  slabs.Return(0, {SlabName{1}});
  EXPECT_EQ(slabs.Held(), std::vector{SlabName{2}});
  EXPECT_EQ(slabs.TakeReturned(), std::vector{SlabName{1}});
}

TEST(HostSlabsTest, GivesAllSlabsOfABufferOrNone) {
  HostSlabs slabs;
  slabs.SetGoal(0, 3 * kSlab);
  slabs.Deliver(0, Some({1, 2}));

  EXPECT_TRUE(slabs.Take(0, 2 * kSlab + 1, 10 * kSlab).empty());
  EXPECT_TRUE(slabs.Take(0, kSlab + 1, kSlab).empty()) << "beyond the limit";
  EXPECT_EQ(slabs.Take(0, kSlab + 1, 2 * kSlab).size(), 2u);
}

TEST(HostSlabsTest, SlabsOfANewSizeAreReturnedWhileOldOnesAreHeld) {
  HostSlabs slabs;
  slabs.SetGoal(0, 10 * kSlab);
  slabs.Deliver(0, Some({1}));
  std::vector<HostSlab> larger = Some({2});
  larger[0].bytes = 2 * kSlab;

  slabs.Deliver(0, std::move(larger));

  EXPECT_EQ(slabs.TakeReturned(), std::vector{SlabName{2}});
  EXPECT_EQ(slabs.Held(), std::vector{SlabName{1}});
}

}  // namespace
}  // namespace spillway::interposer
