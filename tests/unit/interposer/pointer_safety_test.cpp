#include "interposer/execute/state/pointer_safety.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

TEST(PointerSafetyTest, UnprovenJobParksUntilAFullScanWithoutNewKernelsProvesIt) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  EXPECT_TRUE(pointer_safety.MustPark());

  EXPECT_FALSE(pointer_safety.WantsFullScan(100));
  EXPECT_FALSE(pointer_safety.WantsFullScan(120));
  EXPECT_TRUE(pointer_safety.WantsFullScan(164));
  pointer_safety.FullScanDone(164, false);

  EXPECT_TRUE(pointer_safety.IsProven());
  EXPECT_FALSE(pointer_safety.MustPark());
  EXPECT_FALSE(pointer_safety.MustStay());
}

TEST(PointerSafetyTest, NewKernelMakesAProvenJobUnproven) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  pointer_safety.FullScanDone(100, false);

  EXPECT_TRUE(pointer_safety.AwaitNewWork());

  EXPECT_TRUE(pointer_safety.MustPark());
  EXPECT_FALSE(pointer_safety.AwaitNewWork());
  EXPECT_FALSE(pointer_safety.WantsFullScan(1000));
  EXPECT_TRUE(pointer_safety.WantsFullScan(1064));
}

TEST(PointerSafetyTest, ProvenJobIsProvenAgainOnceItsNewKernelsAreScanned) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  pointer_safety.FullScanDone(100, false);

  EXPECT_TRUE(pointer_safety.BeginNew());
  EXPECT_FALSE(pointer_safety.BeginNew());
  EXPECT_TRUE(pointer_safety.MustPark());
  EXPECT_FALSE(pointer_safety.WantsFullScan(1000));

  EXPECT_FALSE(pointer_safety.EndNew(Finding::kNothing));
  EXPECT_TRUE(pointer_safety.MustPark());
  EXPECT_TRUE(pointer_safety.EndNew(Finding::kNothing));
  EXPECT_TRUE(pointer_safety.IsProven());
}

TEST(PointerSafetyTest, FullScanBesideAnUnscannedLaunchProvesTheJobOnlyAfterTheLaunchIsScanned) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  pointer_safety.BeginNew();
  pointer_safety.FullScanDone(100, false);
  EXPECT_TRUE(pointer_safety.MustPark());

  EXPECT_TRUE(pointer_safety.EndNew(Finding::kNothing));

  EXPECT_TRUE(pointer_safety.IsProven());
}

TEST(PointerSafetyTest, NewKernelOfAnUnprovenJobDelaysTheFullScan) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  EXPECT_FALSE(pointer_safety.WantsFullScan(100));
  pointer_safety.BeginNew();
  EXPECT_FALSE(pointer_safety.EndNew(Finding::kNothing));

  EXPECT_FALSE(pointer_safety.WantsFullScan(164));
  EXPECT_TRUE(pointer_safety.WantsFullScan(228));
}

TEST(PointerSafetyTest, AddressFoundByAPostLaunchScanIsForEver) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  pointer_safety.FullScanDone(100, false);
  pointer_safety.BeginNew();

  EXPECT_FALSE(pointer_safety.EndNew(Finding::kAddress));

  EXPECT_EQ(pointer_safety.unsafe_reason(), UnsafeReason::kUnexplainedAddress);
  EXPECT_FALSE(pointer_safety.WantsScans());
}

TEST(PointerSafetyTest, PostLaunchScanThatFailsRequiresAFullScan) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  pointer_safety.FullScanDone(100, false);
  pointer_safety.BeginNew();

  EXPECT_FALSE(pointer_safety.EndNew(Finding::kUnknown));

  EXPECT_TRUE(pointer_safety.MustPark());
  EXPECT_FALSE(pointer_safety.WantsFullScan(1000));
  EXPECT_TRUE(pointer_safety.WantsFullScan(1064));
}

TEST(PointerSafetyTest, NothingLeavesABusyDeviceUnlessTheJobIsProvenOrAssumedSafe) {
  PointerSafety can_park(ParkChoice::kAuto, true), cannot_park(ParkChoice::kAuto, false);
  EXPECT_TRUE(can_park.MustWait());
  EXPECT_TRUE(cannot_park.MustWait());
  EXPECT_TRUE(cannot_park.WantsFullScan(10)) << "also when the first one waited in vain";
  EXPECT_TRUE(cannot_park.WantsFullScan(11));

  can_park.FullScanDone(10, false);
  cannot_park.FullScanDone(11, false);

  EXPECT_FALSE(can_park.MustWait());
  EXPECT_FALSE(cannot_park.MustWait());
  EXPECT_FALSE(PointerSafety(ParkChoice::kOff, true).MustWait());
}

TEST(PointerSafetyTest, UnexplainedAddressIsForEver) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  pointer_safety.FullScanDone(100, true);

  EXPECT_EQ(pointer_safety.unsafe_reason(), UnsafeReason::kUnexplainedAddress);
  EXPECT_TRUE(pointer_safety.MustPark());
  EXPECT_FALSE(pointer_safety.MustStay());
  EXPECT_FALSE(pointer_safety.WantsFullScan(1'000'000));
}

TEST(PointerSafetyTest, ProvenJobIsFullyScannedAgainAfterAsManyLaunches) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  pointer_safety.FullScanDone(100, false);

  EXPECT_FALSE(pointer_safety.WantsFullScan(199));
  EXPECT_TRUE(pointer_safety.WantsFullScan(200));
  pointer_safety.FullScanDone(200, false);
  EXPECT_FALSE(pointer_safety.WantsFullScan(399));
}

TEST(PointerSafetyTest, WithoutParkingTheFirstEvictionTriggersAFullScanAndUnsafeJobsStayResident) {
  PointerSafety pointer_safety(ParkChoice::kAuto, false);
  EXPECT_FALSE(pointer_safety.MustPark());
  EXPECT_FALSE(pointer_safety.MustStay());
  EXPECT_TRUE(pointer_safety.WantsFullScan(10));

  pointer_safety.FullScanDone(10, true);

  EXPECT_TRUE(pointer_safety.MustStay());
  EXPECT_FALSE(pointer_safety.MustPark());
}

TEST(PointerSafetyTest, ForcedParkingNeverEnds) {
  PointerSafety pointer_safety(ParkChoice::kHost, true);

  EXPECT_TRUE(pointer_safety.MustPark());
  EXPECT_FALSE(pointer_safety.WantsFullScan(1000));
  EXPECT_FALSE(pointer_safety.WantsFullScan(100000));
}

TEST(PointerSafetyTest, ForcedParkingWithoutParkingSupportEvictsNothing) {
  PointerSafety pointer_safety(ParkChoice::kHost, false);

  EXPECT_TRUE(pointer_safety.MustStay());
}

TEST(PointerSafetyTest, ParkingOffMeansAssumedSafe) {
  PointerSafety pointer_safety(ParkChoice::kOff, true);
  pointer_safety.MarkUnsafe(UnsafeReason::kTooManyAddresses);

  EXPECT_FALSE(pointer_safety.MustPark());
  EXPECT_FALSE(pointer_safety.MustStay());
  EXPECT_FALSE(pointer_safety.WantsFullScan(1000));
  EXPECT_EQ(pointer_safety.unsafe_reason(), UnsafeReason::kTooManyAddresses);
  EXPECT_EQ(pointer_safety.standing(), Standing::kAssumedSafe);
}

TEST(PointerSafetyTest, StandingImpliesItsConsequences) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  EXPECT_EQ(pointer_safety.standing(), Standing::kUnproven);
  pointer_safety.FullScanDone(64, false);
  EXPECT_EQ(pointer_safety.standing(), Standing::kProven);
  pointer_safety.MarkUnsafe(UnsafeReason::kDeviceHeap);
  EXPECT_EQ(pointer_safety.standing(), Standing::kUnsafe);
  pointer_safety.CannotPark();
  EXPECT_EQ(pointer_safety.standing(), Standing::kStays);
  EXPECT_EQ(PointerSafety(ParkChoice::kHost, true).standing(), Standing::kUnsafe);
}

// Regression: an arena was made while another thread scanned.
TEST(PointerSafetyTest, AFullScanDoesNotProveAJobThatBecameUnsafeMeanwhile) {
  PointerSafety safety(ParkChoice::kAuto, true);
  safety.MarkUnsafe(UnsafeReason::kArena);
  safety.FullScanDone(1, false);
  EXPECT_FALSE(safety.IsProven());
  EXPECT_TRUE(safety.MustPark());
  safety.CannotPark();
  EXPECT_TRUE(safety.MustPark()) << "its parts stay mapped";
}

}  // namespace
}  // namespace spillway::interposer
