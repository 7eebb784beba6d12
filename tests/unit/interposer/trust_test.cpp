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
