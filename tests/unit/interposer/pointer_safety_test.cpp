#include "interposer/execute/pointer_safety.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

TEST(PointerSafetyTest, UnprovenJobParksAndIsProvenByAFullScanOnceNoKernelIsNew) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  EXPECT_TRUE(trust.MustPark());

  EXPECT_FALSE(trust.WantsFullScan(100));
  EXPECT_FALSE(trust.WantsFullScan(120));
  EXPECT_TRUE(trust.WantsFullScan(164));
  pointer_safety.FullScanDone(164, false);

  EXPECT_TRUE(trust.IsProven());
  EXPECT_FALSE(trust.MustPark());
  EXPECT_FALSE(trust.MustStay());
}

TEST(PointerSafetyTest, NewKernelMakesAProvenJobUnproven) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  pointer_safety.FullScanDone(100, false);

  EXPECT_TRUE(trust.SomethingNew());

  EXPECT_TRUE(trust.MustPark());
  EXPECT_FALSE(trust.SomethingNew());
  EXPECT_FALSE(trust.WantsFullScan(1000));
  EXPECT_TRUE(trust.WantsFullScan(1064));
}

TEST(PointerSafetyTest, ProvenJobIsProvenAgainOnceItsNewKernelsWereLookedAt) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  pointer_safety.FullScanDone(100, false);

  EXPECT_TRUE(trust.BeginNew());
  EXPECT_FALSE(trust.BeginNew());
  EXPECT_TRUE(trust.MustPark());
  EXPECT_FALSE(trust.WantsFullScan(1000));

  EXPECT_FALSE(trust.EndNew(Finding::kNothing));
  EXPECT_TRUE(trust.MustPark());
  EXPECT_TRUE(trust.EndNew(Finding::kNothing));
  EXPECT_TRUE(trust.IsProven());
}

TEST(PointerSafetyTest, FullScanBesideALaunchThatIsNotLookedAtProvesTheJobOnlyAfterTheLook) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  pointer_safety.BeginNew();
  pointer_safety.FullScanDone(100, false);
  EXPECT_TRUE(trust.MustPark());

  EXPECT_TRUE(trust.EndNew(Finding::kNothing));

  EXPECT_TRUE(trust.IsProven());
}

TEST(PointerSafetyTest, NewKernelOfAnUnprovenJobPutsTheFullScanOff) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  EXPECT_FALSE(trust.WantsFullScan(100));
  pointer_safety.BeginNew();
  EXPECT_FALSE(trust.EndNew(Finding::kNothing));

  EXPECT_FALSE(trust.WantsFullScan(164));
  EXPECT_TRUE(trust.WantsFullScan(228));
}

TEST(PointerSafetyTest, WhatALookFindsIsForEver) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  pointer_safety.FullScanDone(100, false);
  pointer_safety.BeginNew();

  EXPECT_FALSE(trust.EndNew(Finding::kAddress));

  EXPECT_EQ(trust.opacity(), UnsafeReason::kUnexplainedAddress);
  EXPECT_FALSE(trust.WantsScans());
}

TEST(PointerSafetyTest, LookInVainTakesAFullScan) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  pointer_safety.FullScanDone(100, false);
  pointer_safety.BeginNew();

  EXPECT_FALSE(trust.EndNew(Finding::kUnknown));

  EXPECT_TRUE(trust.MustPark());
  EXPECT_FALSE(trust.WantsFullScan(1000));
  EXPECT_TRUE(trust.WantsFullScan(1064));
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

  EXPECT_EQ(trust.opacity(), UnsafeReason::kUnexplainedAddress);
  EXPECT_TRUE(trust.MustPark());
  EXPECT_FALSE(trust.MustStay());
  EXPECT_FALSE(trust.WantsFullScan(1'000'000));
}

TEST(PointerSafetyTest, ProvenJobIsLookedThroughAgainAfterAsManyLaunches) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  pointer_safety.FullScanDone(100, false);

  EXPECT_FALSE(trust.WantsFullScan(199));
  EXPECT_TRUE(trust.WantsFullScan(200));
  pointer_safety.FullScanDone(200, false);
  EXPECT_FALSE(trust.WantsFullScan(399));
}

TEST(PointerSafetyTest, WithoutParkingTheFirstEvictionAsksForAFullScanAndUnsafeJobsStay) {
  PointerSafety pointer_safety(ParkChoice::kAuto, false);
  EXPECT_FALSE(trust.MustPark());
  EXPECT_FALSE(trust.MustStay());
  EXPECT_TRUE(trust.WantsFullScan(10));

  pointer_safety.FullScanDone(10, true);

  EXPECT_TRUE(trust.MustStay());
  EXPECT_FALSE(trust.MustPark());
}

TEST(PointerSafetyTest, ParkingByChoiceNeverEnds) {
  PointerSafety pointer_safety(ParkChoice::kHost, true);

  EXPECT_TRUE(trust.MustPark());
  EXPECT_FALSE(trust.WantsFullScan(1000));
  EXPECT_FALSE(trust.WantsFullScan(100000));
}

TEST(PointerSafetyTest, ParkingByChoiceWithoutParkingMeansToStay) {
  PointerSafety pointer_safety(ParkChoice::kHost, false);

  EXPECT_TRUE(trust.MustStay());
}

TEST(PointerSafetyTest, WithParkingOffTheUserSaysItIsSafe) {
  PointerSafety pointer_safety(ParkChoice::kOff, true);
  pointer_safety.MarkUnsafe(UnsafeReason::kTooManyAddresses);

  EXPECT_FALSE(trust.MustPark());
  EXPECT_FALSE(trust.MustStay());
  EXPECT_FALSE(trust.WantsFullScan(1000));
  EXPECT_EQ(trust.opacity(), UnsafeReason::kTooManyAddresses);
  EXPECT_EQ(trust.standing(), Standing::kAssumedSafe);
}

TEST(PointerSafetyTest, StandingSaysWhatFollows) {
  PointerSafety pointer_safety(ParkChoice::kAuto, true);
  EXPECT_EQ(trust.standing(), Standing::kUnproven);
  pointer_safety.FullScanDone(64, false);
  EXPECT_EQ(trust.standing(), Standing::kProven);
  pointer_safety.MarkUnsafe(UnsafeReason::kDeviceHeap);
  EXPECT_EQ(trust.standing(), Standing::kUnsafe);
  pointer_safety.CannotPark();
  EXPECT_EQ(trust.standing(), Standing::kStays);
  EXPECT_EQ(PointerSafety(ParkChoice::kHost, true).standing(), Standing::kUnsafe);
}

}  // namespace
}  // namespace spillway::interposer
