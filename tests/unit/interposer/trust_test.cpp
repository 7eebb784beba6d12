#include "interposer/execute/trust.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

TEST(TrustTest, UnprovenJobParksAndIsProvenByACensusOnceNoKernelIsNew) {
  Trust trust(ParkChoice::kAuto, true);
  EXPECT_TRUE(trust.MustPark());

  EXPECT_FALSE(trust.WantsCensus(100));
  EXPECT_FALSE(trust.WantsCensus(120));
  EXPECT_TRUE(trust.WantsCensus(164));
  trust.CensusMade(164, false);

  EXPECT_TRUE(trust.IsProven());
  EXPECT_FALSE(trust.MustPark());
  EXPECT_FALSE(trust.MustStay());
}

TEST(TrustTest, NewKernelMakesAProvenJobUnproven) {
  Trust trust(ParkChoice::kAuto, true);
  trust.CensusMade(100, false);

  EXPECT_TRUE(trust.SomethingNew());

  EXPECT_TRUE(trust.MustPark());
  EXPECT_FALSE(trust.SomethingNew());
  EXPECT_FALSE(trust.WantsCensus(1000));
  EXPECT_TRUE(trust.WantsCensus(1064));
}

TEST(TrustTest, ProvenJobIsProvenAgainOnceItsNewKernelsWereLookedAt) {
  Trust trust(ParkChoice::kAuto, true);
  trust.CensusMade(100, false);

  EXPECT_TRUE(trust.BeginNew());
  EXPECT_FALSE(trust.BeginNew());
  EXPECT_TRUE(trust.MustPark());
  EXPECT_FALSE(trust.WantsCensus(1000));

  EXPECT_FALSE(trust.EndNew(Finding::kNothing));
  EXPECT_TRUE(trust.MustPark());
  EXPECT_TRUE(trust.EndNew(Finding::kNothing));
  EXPECT_TRUE(trust.IsProven());
}

TEST(TrustTest, CensusBesideALaunchThatIsNotLookedAtProvesTheJobOnlyAfterTheLook) {
  Trust trust(ParkChoice::kAuto, true);
  trust.BeginNew();
  trust.CensusMade(100, false);
  EXPECT_TRUE(trust.MustPark());

  EXPECT_TRUE(trust.EndNew(Finding::kNothing));

  EXPECT_TRUE(trust.IsProven());
}

TEST(TrustTest, NewKernelOfAnUnprovenJobPutsTheCensusOff) {
  Trust trust(ParkChoice::kAuto, true);
  EXPECT_FALSE(trust.WantsCensus(100));
  trust.BeginNew();
  EXPECT_FALSE(trust.EndNew(Finding::kNothing));

  EXPECT_FALSE(trust.WantsCensus(164));
  EXPECT_TRUE(trust.WantsCensus(228));
}

TEST(TrustTest, WhatALookFindsIsForEver) {
  Trust trust(ParkChoice::kAuto, true);
  trust.CensusMade(100, false);
  trust.BeginNew();

  EXPECT_FALSE(trust.EndNew(Finding::kAddress));

  EXPECT_EQ(trust.opacity(), Opacity::kUnexplainedAddress);
  EXPECT_FALSE(trust.WantsLooks());
}

TEST(TrustTest, LookInVainTakesACensus) {
  Trust trust(ParkChoice::kAuto, true);
  trust.CensusMade(100, false);
  trust.BeginNew();

  EXPECT_FALSE(trust.EndNew(Finding::kUnknown));

  EXPECT_TRUE(trust.MustPark());
  EXPECT_FALSE(trust.WantsCensus(1000));
  EXPECT_TRUE(trust.WantsCensus(1064));
}

TEST(TrustTest, NothingLeavesABusyDeviceUnlessTheJobIsProvenOrVouchedFor) {
  Trust can_park(ParkChoice::kAuto, true), cannot_park(ParkChoice::kAuto, false);
  EXPECT_TRUE(can_park.MustWait());
  EXPECT_TRUE(cannot_park.MustWait());
  EXPECT_TRUE(cannot_park.WantsCensus(10)) << "also when the first one waited in vain";
  EXPECT_TRUE(cannot_park.WantsCensus(11));

  can_park.CensusMade(10, false);
  cannot_park.CensusMade(11, false);

  EXPECT_FALSE(can_park.MustWait());
  EXPECT_FALSE(cannot_park.MustWait());
  EXPECT_FALSE(Trust(ParkChoice::kOff, true).MustWait());
}

TEST(TrustTest, UnexplainedAddressIsForEver) {
  Trust trust(ParkChoice::kAuto, true);
  trust.CensusMade(100, true);

  EXPECT_EQ(trust.opacity(), Opacity::kUnexplainedAddress);
  EXPECT_TRUE(trust.MustPark());
  EXPECT_FALSE(trust.MustStay());
  EXPECT_FALSE(trust.WantsCensus(1'000'000));
}

TEST(TrustTest, ProvenJobIsLookedThroughAgainAfterAsManyLaunches) {
  Trust trust(ParkChoice::kAuto, true);
  trust.CensusMade(100, false);

  EXPECT_FALSE(trust.WantsCensus(199));
  EXPECT_TRUE(trust.WantsCensus(200));
  trust.CensusMade(200, false);
  EXPECT_FALSE(trust.WantsCensus(399));
}

TEST(TrustTest, WithoutParkingTheFirstEvictionAsksForACensusAndOpaqueJobsStay) {
  Trust trust(ParkChoice::kAuto, false);
  EXPECT_FALSE(trust.MustPark());
  EXPECT_FALSE(trust.MustStay());
  EXPECT_TRUE(trust.WantsCensus(10));

  trust.CensusMade(10, true);

  EXPECT_TRUE(trust.MustStay());
  EXPECT_FALSE(trust.MustPark());
}

TEST(TrustTest, ParkingByChoiceNeverEnds) {
  Trust trust(ParkChoice::kHost, true);

  EXPECT_TRUE(trust.MustPark());
  EXPECT_FALSE(trust.WantsCensus(1000));
  EXPECT_FALSE(trust.WantsCensus(100000));
}

TEST(TrustTest, ParkingByChoiceWithoutParkingMeansToStay) {
  Trust trust(ParkChoice::kHost, false);

  EXPECT_TRUE(trust.MustStay());
}

TEST(TrustTest, WithParkingOffTheUserVouches) {
  Trust trust(ParkChoice::kOff, true);
  trust.Opaque(Opacity::kTooManyAddresses);

  EXPECT_FALSE(trust.MustPark());
  EXPECT_FALSE(trust.MustStay());
  EXPECT_FALSE(trust.WantsCensus(1000));
  EXPECT_EQ(trust.opacity(), Opacity::kTooManyAddresses);
  EXPECT_EQ(trust.standing(), Standing::kVouched);
}

TEST(TrustTest, StandingSaysWhatFollows) {
  Trust trust(ParkChoice::kAuto, true);
  EXPECT_EQ(trust.standing(), Standing::kUnproven);
  trust.CensusMade(64, false);
  EXPECT_EQ(trust.standing(), Standing::kProven);
  trust.Opaque(Opacity::kDeviceHeap);
  EXPECT_EQ(trust.standing(), Standing::kOpaque);
  trust.CannotPark();
  EXPECT_EQ(trust.standing(), Standing::kStays);
  EXPECT_EQ(Trust(ParkChoice::kHost, true).standing(), Standing::kOpaque);
}

}  // namespace
}  // namespace spillway::interposer
