#include "agent/node/holdings/unused_claims.h"

#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

class UnusedClaimsTest : public PartTest {
 protected:
  UnusedClaimsTest() { facts_.config.unused_ms = 10'000; }

  void Report(const protocol::Usage& usage, int64_t now_ns) {
    const protocol::Usage before = std::exchange(registration_.usage, usage);
    claims_.NoteUsage(session_, 3, registration_, before, {true, kGigabyte}, now_ns);
  }

  NodeFacts facts_;
  UnusedClaims claims_{&facts_};
  Session& session_ = NewJobSession("job", 7);
  Registration& registration_ = Register(session_, 3);
};

TEST_F(UnusedClaimsTest, EndsAfterAGrantThatIsNotUsed) {
  claims_.AwaitUse(session_, 3, registration_, kSecond);

  EXPECT_EQ(claims_.NextWake(), 11 * kSecond);
  EXPECT_TRUE(claims_.End(table_, 11 * kSecond - 1).empty());
  const std::vector<UnusedClaims::Change> changes = claims_.End(table_, 11 * kSecond);

  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].process, ProcessOf(session_, kDevice));
  EXPECT_FALSE(changes[0].demand.has_claim);
  EXPECT_EQ(claims_.NextWake(), INT64_MAX);
}

TEST_F(UnusedClaimsTest, StaysWithAProcessThatHoldsMemory) {
  claims_.AwaitUse(session_, 3, registration_, kSecond);
  registration_.most_held_bytes = kGigabyte;

  Report({.resident_bytes = kGigabyte}, 2 * kSecond);

  EXPECT_TRUE(registration_.has_claim);
  EXPECT_TRUE(claims_.End(table_, 60 * kSecond).empty());
}

TEST_F(UnusedClaimsTest, ReportedMemoryBeyondTheBudgetKeepsNoClaim) {
  Report({.resident_bytes = kGigabyte}, kSecond);

  EXPECT_EQ(claims_.End(table_, 11 * kSecond).size(), 1U) << "it never held memory in its budget";
}

TEST_F(UnusedClaimsTest, EndsAtOnceForAnIdleProcess) {
  Report({.active = false}, kSecond);

  EXPECT_FALSE(registration_.has_claim);
}

TEST_F(UnusedClaimsTest, ComesBackWhenTheProcessWakesOrWantsMore) {
  Report({.active = false, .wanted_bytes = kGigabyte}, kSecond);
  Report({.active = true, .wanted_bytes = kGigabyte}, 2 * kSecond);
  EXPECT_TRUE(registration_.has_claim) << "it woke";
  ASSERT_EQ(claims_.End(table_, 12 * kSecond).size(), 1U);

  Report({.active = true, .wanted_bytes = kGigabyte}, 13 * kSecond);
  EXPECT_FALSE(registration_.has_claim) << "as before";
  Report({.active = true, .wanted_bytes = 2 * kGigabyte}, 14 * kSecond);
  EXPECT_TRUE(registration_.has_claim) << "it wants more";
}

// Regression: the end of the first claim dropped the other's end, so a process that held nothing
// blocked its other devices forever.
TEST_F(UnusedClaimsTest, EndsOnEveryDeviceOfAProcess) {
  Registration& other = Register(session_, 4, DeviceId{1});
  claims_.AwaitUse(session_, 3, registration_, kSecond);
  claims_.AwaitUse(session_, 4, other, kSecond);

  EXPECT_EQ(claims_.End(table_, 11 * kSecond).size(), 2U);

  EXPECT_FALSE(registration_.has_claim);
  EXPECT_FALSE(other.has_claim);
}

TEST_F(UnusedClaimsTest, ForgetsSessionsThatHaveEnded) {
  claims_.AwaitUse(session_, 3, registration_, kSecond);
  table_.LeaveJob(session_);
  table_.Remove(session_.id);

  EXPECT_TRUE(claims_.End(table_, 60 * kSecond).empty());
  EXPECT_EQ(claims_.NextWake(), INT64_MAX);
}

}  // namespace
}  // namespace spillway::agent
