// The arbiter with users and accounts as owners of jobs, and jobs without a claim.
#include "tests/unit/agent/arbiter_fixture.h"

namespace spillway::agent {
namespace {

constexpr OwnerId kFirstUser{1}, kSecondUser{2};

Terms OwnedBy(OwnerId owner, int64_t guaranteed_gib = 0) {
  Terms terms = Plain(guaranteed_gib);
  terms.owner = owner;
  return terms;
}

TEST_F(ArbiterTest, ManyJobsOfOneUserTakeNoMoreFromAnotherUserThanOneJob) {
  arbiter_.SetOwner(kFirstUser, {});
  arbiter_.SetOwner(kSecondUser, {});
  arbiter_.Join(ProcessOf(1), OwnedBy(kFirstUser), Wants(16), now_ns_);
  Settle();
  for (uint64_t job = 2; job <= 9; ++job)
    arbiter_.Join(ProcessOf(job), OwnedBy(kSecondUser), Wants(16), now_ns_);
  Settle();

  EXPECT_EQ(GibOf(1), 8);
  for (uint64_t job = 2; job <= 9; ++job) EXPECT_EQ(GibOf(job), 1);
  EXPECT_EQ(View(1).link_permille, 500);
}

// Regression: [[user]] and [[account]] refused percentages.
TEST_F(ArbiterTest, PercentageLimitsAndGuaranteesAUsersJobsOnEachDevice) {
  arbiter_.SetDevice(DeviceId{1}, 32 * kGibibyte);
  arbiter_.SetOwner(kFirstUser, {.limit_bytes = -kWholeInMillionths / 4});
  arbiter_.SetOwner(kSecondUser, {.guaranteed_bytes = -kWholeInMillionths / 2});
  const TenantProcess on_the_other = {JobId{1}, SessionId{1}, DeviceId{1}};
  Terms terms = OwnedBy(kFirstUser);
  arbiter_.Join(ProcessOf(1), terms, Wants(16), now_ns_);
  terms.memory.limit = 32 * kGibibyte;
  arbiter_.Join(on_the_other, terms, Wants(32), now_ns_);
  Settle();
  EXPECT_EQ(arbiter_.BudgetedTo(ProcessOf(1)), 4 * kGibibyte);
  EXPECT_EQ(arbiter_.BudgetedTo(on_the_other), 8 * kGibibyte);

  // Half of the first device is kept for the second user's jobs.
  arbiter_.Join(ProcessOf(2), Plain(9), Wants(16), now_ns_);
  const Decisions waits = Decide();
  ASSERT_EQ(waits.admissions.size(), 1u);
  EXPECT_EQ(waits.admissions[0].state, TenancyState::kQueued);
  // The guarantee follows the device's size.
  arbiter_.SetDevice(DeviceId{0}, 8 * kGibibyte);
  Settle();
  EXPECT_EQ(arbiter_.BudgetedTo(ProcessOf(1)), 2 * kGibibyte);
}

TEST_F(ArbiterTest, JobWithoutClaimLendsAllAndDelaysNoAdmission) {
  // Given an idle job that is guaranteed the whole device and holds nothing
  arbiter_.Join(ProcessOf(1), Plain(16), Wants(16), now_ns_);
  Settle();
  Demand nothing = Wants(16);
  nothing.has_claim = false;
  arbiter_.Use(ProcessOf(1), nothing);
  Settle();
  EXPECT_EQ(GibOf(1), 16) << "nobody needs it";

  // When a job with a guarantee of 10 GiB comes and wants all, it is admitted and gets all
  arbiter_.Join(ProcessOf(2), Plain(10), Wants(16), now_ns_);
  Settle();
  EXPECT_EQ(View(1).granted_bytes, 0);
  EXPECT_EQ(GibOf(2), 16);
  EXPECT_FALSE(View(1).has_claim);

  // And the first job waits like a new one when it wakes
  arbiter_.Use(ProcessOf(1), Wants(16));
  const Decisions woken = Decide();
  ASSERT_EQ(woken.admissions.size(), 1u);
  EXPECT_EQ(woken.admissions[0].state, TenancyState::kQueued);
  arbiter_.Leave(ProcessOf(2));
  Settle();
  EXPECT_EQ(GibOf(1), 16);
}

TEST_F(ArbiterTest, WakingJobWithFreeMemoryReceivesOnlyAGrant) {
  arbiter_.Join(ProcessOf(1), Plain(), Wants(8), now_ns_);
  Settle();
  Demand nothing = Wants(8);
  nothing.has_claim = false;
  arbiter_.Use(ProcessOf(1), nothing);
  arbiter_.Join(ProcessOf(2), Plain(), Wants(16), now_ns_);
  Settle();
  ASSERT_EQ(View(1).granted_bytes, 0);

  arbiter_.Use(ProcessOf(1), Wants(8));
  const Decisions woken = Decide();
  EXPECT_TRUE(woken.admissions.empty());
  for (const GrantDecision& grant : woken.grants) Obey(grant);
  Settle();

  EXPECT_EQ(GibOf(1), 8);
}

TEST_F(ArbiterTest, ReportedHoldingsAreBelievedUpToTheUsersLimit) {
  arbiter_.SetOwner(kFirstUser, {.limit_bytes = 4 * kGibibyte});
  arbiter_.Join(ProcessOf(1), OwnedBy(kFirstUser), Wants(1), now_ns_, {12 * kGibibyte, 0});
  Settle();

  EXPECT_EQ(GibOf(1), 4);
}

}  // namespace
}  // namespace spillway::agent
