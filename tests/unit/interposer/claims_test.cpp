// What a call promises about its memory, and the roles of allocations in its launches.
#include "interposer/ledger/claims.h"

#include <gtest/gtest.h>

#include <vector>

namespace spillway::interposer {
namespace {

constexpr CUdeviceptr kBase = 0x10'0000;
constexpr size_t kBytes = 0x1000;

Allocation Memory(CUdeviceptr base = kBase) {
  return {.base = base, .size_bytes = 0x2000, .requested_bytes = kBytes};
}
Role RoleOf(const Claims& claims, std::vector<CUdeviceptr> named) {
  return claims.RoleOf(Memory(), named);
}

TEST(ClaimsTest, WithoutClaimsTheRoleIsUnknown) {
  EXPECT_EQ(RoleOf(Claims(), {kBase}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, InputIsRead) {
  Claims claims;
  claims.Reads(kBase + 16, 64);
  EXPECT_EQ(RoleOf(claims, {kBase + 16}), Role::kReads);
  EXPECT_EQ(RoleOf(claims, {kBase + 79}), Role::kReads);
}

TEST(ClaimsTest, LaunchThatNamesMoreThanTheInputMayWriteIt) {
  // Given an input at the front of an allocation, and a launch that also names its end, such as the
  // library's own workspace
  Claims claims;
  claims.Reads(kBase, 64);
  EXPECT_EQ(RoleOf(claims, {kBase, kBase + 64}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, OutputThatCoversTheAllocationOverwritesIt) {
  Claims claims;
  claims.Overwrites(kBase, kBytes);
  claims.Reads(kBase + 0x10'0000, 64);
  EXPECT_EQ(RoleOf(claims, {kBase, kBase + 0x10'0000}), Role::kOverwrites);
}

TEST(ClaimsTest, OutputInALargerAllocationKeepsTheRest) {
  Claims front, back;
  front.Overwrites(kBase, kBytes - 1);
  back.Overwrites(kBase + 1, kBytes - 1);
  EXPECT_EQ(RoleOf(front, {kBase}), Role::kReadsAndWrites);
  EXPECT_EQ(RoleOf(back, {kBase + 1}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, InPlaceOutputIsReadAndWritten) {
  Claims claims;
  claims.Reads(kBase, kBytes);
  claims.Overwrites(kBase, kBytes);
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, InputBesideUnknownMemoryMayBeWritten) {
  Claims claims;
  claims.Reads(kBase, 64);
  claims.Touches(kBase + 512);
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, OutputOfAnEarlierLaunchIsReadByTheNext) {
  // Given a call whose first launch names the output
  Claims claims;
  claims.Overwrites(kBase, kBytes);
  const std::vector<CUdeviceptr> named{kBase + 8};
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kOverwrites);
  claims.NoteNamed(named);

  // Then its second launch may add to the first one's output
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, EarlierReachOfTheCallCounts) {
  Claims claims;
  claims.Overwrites(kBase, kBytes);
  claims.NoteAnything();
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, NullAndEmptyClaimsAreIgnored) {
  Claims claims;
  claims.Reads(0, 64);
  claims.Overwrites(kBase, 0);
  EXPECT_TRUE(claims.empty());
}

TEST(ClaimsTest, CopiesReadTheirSourceAndOverwriteTheirDestination) {
  Claims claims;
  Transfers transfers;
  transfers.push_back(
      {.source = Transfer::Source::kDevice, .to = kBase, .from = 0x50'0000, .width_bytes = kBytes});
  AddClaims(transfers, &claims);

  const std::vector<CUdeviceptr> named{kBase, 0x50'0000};
  EXPECT_EQ(claims.RoleOf(Memory(), named), Role::kOverwrites);
  EXPECT_EQ(claims.RoleOf(Memory(0x50'0000), named), Role::kReads);
}

TEST(ClaimsTest, CopyWithinAnAllocationReadsAndWritesIt) {
  Claims claims;
  Transfers transfers;
  transfers.push_back(
      {.source = Transfer::Source::kDevice, .to = kBase, .from = kBase + 64, .width_bytes = 64});
  AddClaims(transfers, &claims);
  EXPECT_EQ(RoleOf(claims, {kBase, kBase + 64}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, RowsOverwriteOnlyWithoutGaps) {
  Claims close, apart;
  Transfers rows, spaced;
  rows.push_back({.to = kBase, .width_bytes = 64, .rows = kBytes / 64, .to_pitch_bytes = 64});
  spaced.push_back({.to = kBase, .width_bytes = 60, .rows = kBytes / 64, .to_pitch_bytes = 64});
  AddClaims(rows, &close);
  AddClaims(spaced, &apart);
  EXPECT_EQ(RoleOf(close, {kBase}), Role::kOverwrites);
  EXPECT_EQ(RoleOf(apart, {kBase}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, RefusedCallMayHaveMadeSomeOfItsCopies) {
  Claims claims;
  Transfers transfers;
  transfers.push_back({.to = kBase, .width_bytes = kBytes});
  transfers.push_back({.to = 0x90'0000, .width_bytes = kBytes});
  AddClaims(transfers, &claims);
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kReadsAndWrites);
}

// Another part of the call, such as a kernel of the same graph, may read the old bytes first.
TEST(ClaimsTest, CopyBesideOtherWorkOfItsCallOverwritesNothing) {
  Claims claims;
  Transfers transfers;
  transfers.push_back(
      {.source = Transfer::Source::kDevice, .to = kBase, .from = 0x50'0000, .width_bytes = kBytes});
  AddClaims(transfers, &claims, false);

  const std::vector<CUdeviceptr> named{kBase, 0x50'0000};
  EXPECT_EQ(claims.RoleOf(Memory(), named), Role::kReadsAndWrites);
  EXPECT_EQ(claims.RoleOf(Memory(0x50'0000), named), Role::kReads);
}

TEST(ClaimsTest, SourceDeclaredAsHostMayLieInTheDestination) {
  Claims claims;
  Transfers transfers;
  transfers.push_back(
      {.source = Transfer::Source::kHost, .to = kBase, .from = kBase + 64, .width_bytes = kBytes});
  AddClaims(transfers, &claims);
  EXPECT_EQ(RoleOf(claims, {kBase, kBase + 64}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, SizeBeyondAllAddressesMakesTheRoleUnknown) {
  Claims claims;
  claims.Reads(kBase, ~std::size_t{0});
  claims.Overwrites(kBase, kBytes);
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, AllocationNamedByItsEndCounts) {
  Claims claims;
  claims.Overwrites(kBase, kBytes);
  const std::vector<CUdeviceptr> named{kBase + kBytes};
  claims.NoteNamed(named);
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kReadsAndWrites);
}

}  // namespace
}  // namespace spillway::interposer
