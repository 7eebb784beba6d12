// What a call promises of its memory, and what follows for each allocation that a launch of it
// names.
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

TEST(ClaimsTest, NothingSaidIsNothingKnown) {
  EXPECT_EQ(RoleOf(Claims(), {kBase}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, AnInputIsRead) {
  Claims claims;
  claims.Reads(kBase + 16, 64);
  EXPECT_EQ(RoleOf(claims, {kBase + 16}), Role::kReads);
  EXPECT_EQ(RoleOf(claims, {kBase + 79}), Role::kReads);
}

TEST(ClaimsTest, ALaunchThatNamesMoreThanTheInputMayWriteIt) {
  // Given an input in the front of an allocation, and a launch that names its back too: the
  // library's own workspace, say
  Claims claims;
  claims.Reads(kBase, 64);
  EXPECT_EQ(RoleOf(claims, {kBase, kBase + 64}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, AnOutputThatCoversAllIsOverwritten) {
  Claims claims;
  claims.Overwrites(kBase, kBytes);
  claims.Reads(kBase + 0x10'0000, 64);
  EXPECT_EQ(RoleOf(claims, {kBase, kBase + 0x10'0000}), Role::kOverwrites);
}

TEST(ClaimsTest, AnOutputInLargerMemoryLeavesTheRestAsItIs) {
  Claims front, back;
  front.Overwrites(kBase, kBytes - 1);
  back.Overwrites(kBase + 1, kBytes - 1);
  EXPECT_EQ(RoleOf(front, {kBase}), Role::kReadsAndWrites);
  EXPECT_EQ(RoleOf(back, {kBase + 1}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, AnOutputInPlaceOfAnInputIsReadAndWritten) {
  Claims claims;
  claims.Reads(kBase, kBytes);
  claims.Overwrites(kBase, kBytes);
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, AnInputBesideSomethingUnknownMayBeWritten) {
  Claims claims;
  claims.Reads(kBase, 64);
  claims.Touches(kBase + 512);
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, WhatACallHasBegunToWriteCounts) {
  // Given a call whose first launch names the output
  Claims claims;
  claims.Overwrites(kBase, kBytes);
  const std::vector<CUdeviceptr> named{kBase + 8};
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kOverwrites);
  claims.NoteNamed(named);

  // Then its second may add to what the first has written
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, WhatACallMayHaveReachedCounts) {
  Claims claims;
  claims.Overwrites(kBase, kBytes);
  claims.NoteAnything();
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, NullAndEmptySayNothing) {
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

TEST(ClaimsTest, ACopyWithinAnAllocationReadsAndWritesIt) {
  Claims claims;
  Transfers transfers;
  transfers.push_back(
      {.source = Transfer::Source::kDevice, .to = kBase, .from = kBase + 64, .width_bytes = 64});
  AddClaims(transfers, &claims);
  EXPECT_EQ(RoleOf(claims, {kBase, kBase + 64}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, RowsOverwriteOnlyWhereTheyLeaveNoGap) {
  Claims close, apart;
  Transfers rows, spaced;
  rows.push_back({.to = kBase, .width_bytes = 64, .rows = kBytes / 64, .to_pitch_bytes = 64});
  spaced.push_back({.to = kBase, .width_bytes = 60, .rows = kBytes / 64, .to_pitch_bytes = 64});
  AddClaims(rows, &close);
  AddClaims(spaced, &apart);
  EXPECT_EQ(RoleOf(close, {kBase}), Role::kOverwrites);
  EXPECT_EQ(RoleOf(apart, {kBase}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, OfSeveralCopiesSomeMayBeMadeWhenTheCallIsRefused) {
  Claims claims;
  Transfers transfers;
  transfers.push_back({.to = kBase, .width_bytes = kBytes});
  transfers.push_back({.to = 0x90'0000, .width_bytes = kBytes});
  AddClaims(transfers, &claims);
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kReadsAndWrites);
}

// Another part of the call may read what was there before the copy overwrites it: a kernel of the
// same graph, say.
TEST(ClaimsTest, ACopyBesideOtherWorkOfItsCallOverwritesNothing) {
  Claims claims;
  Transfers transfers;
  transfers.push_back(
      {.source = Transfer::Source::kDevice, .to = kBase, .from = 0x50'0000, .width_bytes = kBytes});
  AddClaims(transfers, &claims, false);

  const std::vector<CUdeviceptr> named{kBase, 0x50'0000};
  EXPECT_EQ(claims.RoleOf(Memory(), named), Role::kReadsAndWrites);
  EXPECT_EQ(claims.RoleOf(Memory(0x50'0000), named), Role::kReads);
}

TEST(ClaimsTest, ASourceThatIsSaidToBeOnTheHostMayLieInTheDestination) {
  Claims claims;
  Transfers transfers;
  transfers.push_back(
      {.source = Transfer::Source::kHost, .to = kBase, .from = kBase + 64, .width_bytes = kBytes});
  AddClaims(transfers, &claims);
  EXPECT_EQ(RoleOf(claims, {kBase, kBase + 64}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, BytesBeyondAllAddressesSpoilTheirAllocation) {
  Claims claims;
  claims.Reads(kBase, ~std::size_t{0});
  claims.Overwrites(kBase, kBytes);
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kReadsAndWrites);
}

TEST(ClaimsTest, WhatIsNamedByItsEndCountsToo) {
  Claims claims;
  claims.Overwrites(kBase, kBytes);
  const std::vector<CUdeviceptr> named{kBase + kBytes};
  claims.NoteNamed(named);
  EXPECT_EQ(RoleOf(claims, {kBase}), Role::kReadsAndWrites);
}

}  // namespace
}  // namespace spillway::interposer
