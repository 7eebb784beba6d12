#include "tests/unit/agent/arbiter_fixture.h"

namespace spillway::agent {
namespace {

// Regression: after an agent restart a job took memory from another job's guarantee.
TEST_F(ArbiterTest, ReturningJobTakesNoOtherJobsGuarantee) {
  arbiter_.SetFrozen(true);
  arbiter_.Rejoin(ProcessOf(1), Plain(12), Wants(12), {6 * kGibibyte, 0}, now_ns_);
  arbiter_.Rejoin(ProcessOf(2), Plain(10), Wants(10), {10 * kGibibyte, 0}, now_ns_);
  Settle();
  arbiter_.SetFrozen(false);
  Settle();

  EXPECT_EQ(GibOf(1), 6);
  EXPECT_EQ(GibOf(2), 10);
  EXPECT_EQ(View(1).terms.memory.guaranteed, 6 * kGibibyte);
  EXPECT_EQ(View(2).terms.memory.guaranteed, 10 * kGibibyte);
}

TEST_F(ArbiterTest, ReturningJobKeepsItsUnusedGuarantee) {
  arbiter_.SetFrozen(true);
  arbiter_.Rejoin(ProcessOf(1), Plain(12), Wants(2), {2 * kGibibyte, 0}, now_ns_);
  arbiter_.Rejoin(ProcessOf(2), Plain(4), Wants(16), {14 * kGibibyte, 0}, now_ns_);
  Settle();
  arbiter_.SetFrozen(false);

  EXPECT_EQ(View(1).terms.memory.guaranteed, 12 * kGibibyte);
  EXPECT_EQ(View(2).terms.memory.guaranteed, 4 * kGibibyte);
}

// Regression: a job got part of its guarantee. When others left, its second request for all of it
// counted as no change.
TEST_F(ArbiterTest, GuaranteeThatDidNotFitIsGivenLater) {
  arbiter_.Join(ProcessOf(1, 1, kOther), Plain(10), Wants(10), now_ns_);
  arbiter_.Join(ProcessOf(2, 2, kDevice), Plain(), Wants(1), now_ns_);
  Settle();
  arbiter_.Join(ProcessOf(2, 2, kOther), Plain(12), Wants(12), now_ns_);
  Settle();
  ASSERT_EQ(View(2, kOther).terms.memory.guaranteed, 6 * kGibibyte);

  arbiter_.Leave(ProcessOf(1, 1, kOther));
  arbiter_.ChangeTermsToFit(JobId{2}, kOther, Plain(12));

  EXPECT_EQ(View(2, kOther).terms.memory.guaranteed, 12 * kGibibyte);
}

TEST_F(ArbiterTest, SingleJobGetsItsWantedMemory) {
  arbiter_.Join(ProcessOf(1), Plain(), Wants(9), now_ns_);

  const Decisions decisions = Decide();

  ASSERT_EQ(decisions.admissions.size(), 1u);
  EXPECT_EQ(decisions.admissions[0].state, TenancyState::kAdmitted);
  ASSERT_EQ(decisions.grants.size(), 1u);
  EXPECT_EQ(decisions.grants[0].reason, RulingReason::kFirst);
  EXPECT_EQ(GibOf(1), 9);
  EXPECT_EQ(decisions.grants[0].link_permille, 1000);
  EXPECT_TRUE(Decide().grants.empty()) << "said once";
}

TEST_F(ArbiterTest, TwoJobsThatWantAllShareEquallyOnceTheFirstHasGivenBack) {
  arbiter_.Join(ProcessOf(1), Plain(), Wants(16), now_ns_);
  Settle();
  arbiter_.Join(ProcessOf(2), Plain(), Wants(16), now_ns_);

  const Decisions first = Decide();
  ASSERT_EQ(first.grants.size(), 1u) << "nothing to give yet";
  EXPECT_EQ(first.grants[0].process, ProcessOf(1));
  EXPECT_EQ(first.grants[0].reason, RulingReason::kRevoked);
  EXPECT_EQ(first.grants[0].memory_bytes, 8 * kGibibyte);
  EXPECT_EQ(first.grants[0].deadline_ns, 2 * kSecond);
  Obey(first.grants[0]);
  Settle();

  EXPECT_EQ(GibOf(1), 8);
  EXPECT_EQ(GibOf(2), 8);
}

TEST_F(ArbiterTest, LendsIdleBudgetToABusyJobAndReturnsItByTheDeadline) {
  // Given a sleeper with a guarantee of 12 GiB and a busy neighbour without any
  arbiter_.Join(ProcessOf(1), Plain(12), Wants(12), now_ns_);
  Settle();
  arbiter_.Use(ProcessOf(1), Wants(12, false));
  arbiter_.Join(ProcessOf(2), Plain(), Wants(16), now_ns_);
  Settle();
  EXPECT_EQ(View(1).granted_bytes, 512 * kMebibyte) << "its floor";
  EXPECT_EQ(View(2).granted_bytes, 16 * kGibibyte - 512 * kMebibyte);

  now_ns_ = 100 * kSecond;
  arbiter_.Use(ProcessOf(1), Wants(12));
  const Decisions woken = Decide();

  // Then the neighbour gives back within two seconds
  ASSERT_EQ(woken.grants.size(), 2u);
  EXPECT_EQ(woken.grants[0].process, ProcessOf(1)) << "it has its part of the link at once";
  EXPECT_EQ(woken.grants[0].memory_bytes, 512 * kMebibyte);
  EXPECT_EQ(woken.grants[1].process, ProcessOf(2));
  EXPECT_EQ(woken.grants[1].deadline_ns, 102 * kSecond);
  Obey(woken.grants[1]);
  const Decisions returned = Decide();
  ASSERT_EQ(returned.grants.size(), 1u);
  EXPECT_EQ(returned.grants[0].reason, RulingReason::kReturned);
  EXPECT_EQ(GibOf(1), 12);
}

TEST_F(ArbiterTest, GuaranteesThatDoNotFitWait) {
  arbiter_.Join(ProcessOf(1), Plain(12), Wants(4), now_ns_);
  Settle();
  arbiter_.Join(ProcessOf(2), Plain(12), Wants(4), now_ns_);
  arbiter_.Join(ProcessOf(3), Plain(12), Wants(4), now_ns_);

  const Decisions decisions = Decide();

  ASSERT_EQ(decisions.admissions.size(), 2u);
  EXPECT_EQ(decisions.admissions[0].position, 1u);
  EXPECT_EQ(decisions.admissions[0].reason,
            "its guarantee is 12.0 GiB, 4.0 GiB are not budgeted to others");
  EXPECT_EQ(decisions.admissions[1].position, 2u);

  arbiter_.Leave(ProcessOf(1));
  const Decisions after = Decide();
  ASSERT_EQ(after.admissions.size(), 2u);
  EXPECT_EQ(after.admissions[0].job, JobId{2});
  EXPECT_EQ(after.admissions[0].state, TenancyState::kAdmitted);
  EXPECT_EQ(after.admissions[1].job, JobId{3});
  EXPECT_EQ(after.admissions[1].position, 1u);
}

TEST_F(ArbiterTest, JobThatCanNeverFitIsRejected) {
  arbiter_.Join(ProcessOf(1), Plain(20), Wants(4), now_ns_);

  const Decisions decisions = Decide();

  ASSERT_EQ(decisions.admissions.size(), 1u);
  EXPECT_EQ(decisions.admissions[0].state, TenancyState::kRejected);
  EXPECT_EQ(decisions.admissions[0].reason,
            "its guarantee of 20.0 GiB is more than the device has, 16.0 GiB: lower `guaranteed`");
}

// Regression: a job that followed the advice stayed rejected until it connected anew.
TEST_F(ArbiterTest, RejectedJobIsJudgedAnewWithOtherTerms) {
  arbiter_.Join(ProcessOf(1), Plain(20), Wants(4), now_ns_);
  ASSERT_EQ(Decide().admissions.at(0).state, TenancyState::kRejected);
  EXPECT_TRUE(Decide().admissions.empty()) << "said once";

  arbiter_.ChangeTerms(JobId{1}, kDevice, Plain(8));

  const Decisions decisions = Decide();
  ASSERT_EQ(decisions.admissions.size(), 1u);
  EXPECT_EQ(decisions.admissions[0].state, TenancyState::kAdmitted);
  EXPECT_EQ(GibOf(1), 4);
}

TEST_F(ArbiterTest, UrgentJobPreemptsAndTheOtherContinuesWithItsFloor) {
  arbiter_.Join(ProcessOf(1), Plain(15), Wants(15), now_ns_);
  Settle();
  Terms urgent = Plain(15);
  urgent.priority = 10;
  arbiter_.Join(ProcessOf(2), urgent, Wants(15), now_ns_);

  const Decisions decisions = Decide();

  ASSERT_EQ(decisions.grants.size(), 2u) << "a GiB was free";
  EXPECT_EQ(decisions.grants[0].process, ProcessOf(1));
  EXPECT_EQ(decisions.grants[0].reason, RulingReason::kPreempted);
  for (const GrantDecision& grant : decisions.grants) Obey(grant);
  Settle();
  EXPECT_EQ(GibOf(2), 15);
  EXPECT_EQ(GibOf(1), 1) << "what is left, above its floor";
  arbiter_.Leave(ProcessOf(2));
  Settle();
  EXPECT_EQ(GibOf(1), 15) << "and gets its guarantee back";
}

TEST_F(ArbiterTest, ProcessesOfAJobShareItsBudget) {
  Terms terms = Plain(8);
  terms.memory.limit = 8 * kGibibyte;
  arbiter_.Join(ProcessOf(1, 11), terms, Wants(16), now_ns_);
  Settle();
  EXPECT_EQ(arbiter_.BudgetedTo(ProcessOf(1, 11)), 8 * kGibibyte);

  arbiter_.Join(ProcessOf(1, 12), terms, Wants(16), now_ns_);
  Settle();

  EXPECT_EQ(arbiter_.BudgetedTo(ProcessOf(1, 11)), 4 * kGibibyte);
  EXPECT_EQ(arbiter_.BudgetedTo(ProcessOf(1, 12)), 4 * kGibibyte);
  EXPECT_EQ(View(1).budgeted_bytes, 8 * kGibibyte);
  arbiter_.Leave(ProcessOf(1, 11));
  Settle();
  EXPECT_EQ(arbiter_.BudgetedTo(ProcessOf(1, 12)), 8 * kGibibyte);
}

TEST_F(ArbiterTest, RevokedMemoryCountsUntilAllProcessesHaveGivenItBack) {
  arbiter_.Join(ProcessOf(1, 11), Plain(), Wants(16), now_ns_);
  arbiter_.Join(ProcessOf(1, 12), Plain(), Wants(16), now_ns_);
  Settle();
  arbiter_.Join(ProcessOf(2), Plain(), Wants(16), now_ns_);
  const Decisions revoked = Decide();
  ASSERT_EQ(revoked.grants.size(), 2u);

  Obey(revoked.grants[0]);
  EXPECT_EQ(arbiter_.BudgetedOn(kDevice), 12 * kGibibyte);
  const Decisions partial = Decide();
  ASSERT_EQ(partial.grants.size(), 1u);
  EXPECT_EQ(partial.grants[0].process, ProcessOf(2));
  EXPECT_EQ(partial.grants[0].memory_bytes, 4 * kGibibyte);
}

TEST_F(ArbiterTest, AChangedBudgetIsGrantedAtOnceWhenItGrows) {
  arbiter_.Join(ProcessOf(1), Plain(), Wants(16), now_ns_);
  Terms half = Plain();
  half.memory.limit = 6 * kGibibyte;
  Settle();

  EXPECT_EQ(arbiter_.CheckTerms(JobId{1}, kDevice, half).text(), "");
  arbiter_.ChangeTerms(JobId{1}, kDevice, half);
  const Decisions lowered = Decide();
  ASSERT_EQ(lowered.grants.size(), 1u);
  EXPECT_EQ(lowered.grants[0].memory_bytes, 6 * kGibibyte);
  EXPECT_EQ(lowered.grants[0].reason, RulingReason::kChanged);
  Obey(lowered.grants[0]);
  arbiter_.ChangeTerms(JobId{1}, kDevice, Plain());
  Settle();
  EXPECT_EQ(GibOf(1), 16);
}

TEST_F(ArbiterTest, AGuaranteeThatDoesNotFitBesideOthersIsRefused) {
  arbiter_.Join(ProcessOf(1), Plain(10), Wants(16), now_ns_);
  arbiter_.Join(ProcessOf(2), Plain(4), Wants(16), now_ns_);
  Settle();

  EXPECT_EQ(arbiter_.CheckTerms(JobId{2}, kDevice, Plain(6)).text(), "");
  EXPECT_EQ(arbiter_.CheckTerms(JobId{2}, kDevice, Plain(7)).text(),
            "7.0 GiB cannot be guaranteed, others leave 6.0 GiB");
  EXPECT_EQ(arbiter_.CheckTerms(JobId{3}, kDevice, Plain(1)).text(),
            "the job does not use this device");
}

TEST_F(ArbiterTest, AfterARestartNoMemoryMovesUntilAllProcessesAreBack) {
  arbiter_.SetFrozen(true);
  arbiter_.Rejoin(ProcessOf(1, 11), Plain(), Wants(16), {9 * kGibibyte, kGibibyte}, now_ns_);
  arbiter_.Rejoin(ProcessOf(1, 12), Plain(), Wants(16), {3 * kGibibyte, 0}, now_ns_);
  arbiter_.Join(ProcessOf(2), Plain(), Wants(16), now_ns_);

  const Decisions frozen = Decide();

  ASSERT_EQ(frozen.grants.size(), 2u);
  EXPECT_EQ(frozen.grants[0].memory_bytes, 9 * kGibibyte);
  EXPECT_EQ(frozen.grants[0].host_bytes, kGibibyte);
  EXPECT_EQ(frozen.grants[0].reason, RulingReason::kKept);
  EXPECT_EQ(frozen.grants[1].memory_bytes, 3 * kGibibyte);
  EXPECT_EQ(arbiter_.BudgetedOn(kDevice), 12 * kGibibyte);
  // Regression: the new job heard nothing, and began after 5 s.
  ASSERT_EQ(frozen.admissions.size(), 2u);
  EXPECT_EQ(frozen.admissions[1].job, JobId{2});
  EXPECT_EQ(frozen.admissions[1].state, TenancyState::kQueued);
  EXPECT_TRUE(Decide().admissions.empty()) << "said once";

  arbiter_.SetFrozen(false);
  Settle();
  EXPECT_EQ(View(2).state, TenancyState::kAdmitted);
  EXPECT_EQ(GibOf(1), 8);
  EXPECT_EQ(GibOf(2), 8);
}

TEST_F(ArbiterTest, DisobedientJobIsReportedAndBorrowsNoMore) {
  arbiter_.Join(ProcessOf(1), Plain(2), Wants(16), now_ns_);
  Settle();
  arbiter_.Join(ProcessOf(2), Plain(), Wants(4), now_ns_);
  Decide();
  EXPECT_EQ(arbiter_.NextWake(), 2 * kSecond);

  now_ns_ = 2 * kSecond;
  const Decisions late = Decide();

  ASSERT_EQ(late.overdue.size(), 1u);
  EXPECT_EQ(late.overdue[0], ProcessOf(1));
  EXPECT_TRUE(View(1).overdue);
  EXPECT_LE(arbiter_.BudgetedOn(kDevice), 16 * kGibibyte);
  arbiter_.Leave(ProcessOf(1));
  Settle();
  EXPECT_EQ(GibOf(2), 4) << "and its death gives everything back";
}

// Regression: device and job both noted the job as late, so it stayed late until its process ended.
TEST_F(ArbiterTest, LateJobIsForgivenWhenTheJobThatNeededItsMemoryHasLeft) {
  // Given a job that is late, with 12 of 16 GiB unmovable
  Demand stuck = Wants(16);
  stuck.unmovable_bytes = 12 * kGibibyte;
  arbiter_.Join(ProcessOf(1), Plain(), stuck, now_ns_);
  Settle();
  arbiter_.Join(ProcessOf(2), Plain(10), Wants(10), now_ns_);
  const Decisions asked = Decide();
  ASSERT_EQ(asked.grants.size(), 1u);
  arbiter_.Obeyed(ProcessOf(1), asked.grants[0].serial, 12 * kGibibyte, 0);
  Settle();
  now_ns_ += 3 * kSecond;
  ASSERT_EQ(Decide().overdue.size(), 1u);
  Settle();
  ASSERT_TRUE(View(1).overdue);
  ASSERT_EQ(View(1).granted_bytes, 6 * kGibibyte);

  arbiter_.Leave(ProcessOf(2));
  Settle();

  EXPECT_FALSE(View(1).overdue);
  EXPECT_EQ(GibOf(1), 16);
  EXPECT_EQ(arbiter_.BudgetedTo(ProcessOf(1)), View(1).granted_bytes);
}

TEST_F(ArbiterTest, HostMemoryInUseIsNotRevoked) {
  arbiter_.Join(ProcessOf(1), Plain(), {32 * kGibibyte, 0, 0, true}, now_ns_);
  Settle();
  arbiter_.Use(ProcessOf(1), {32 * kGibibyte, 0, 30 * kGibibyte, true});
  arbiter_.Join(ProcessOf(2), Plain(), {60 * kGibibyte, 0, 0, true}, now_ns_);
  Settle();

  EXPECT_GE(View(1).host_granted_bytes, 30 * kGibibyte);
  EXPECT_LE(View(1).host_budgeted_bytes + View(2).host_budgeted_bytes, 64 * kGibibyte);
}

// Regression: no other process can check a job's use, so a job may report that it uses all.
TEST_F(ArbiterTest, ReportedUseTakesNoOtherJobsHostGuarantee) {
  Demand all = Wants(900);
  arbiter_.Join(ProcessOf(1), Plain(), all, now_ns_);
  Settle();
  all.host_bytes = 64 * kGibibyte;
  arbiter_.Use(ProcessOf(1), all);
  Settle();
  ASSERT_EQ(View(1).host_granted_bytes, 64 * kGibibyte);

  Terms guaranteed = Plain();
  guaranteed.host.guaranteed = 16 * kGibibyte;
  arbiter_.Join(ProcessOf(2), guaranteed, Wants(36), now_ns_);
  Settle();

  EXPECT_GE(View(2).host_granted_bytes, 16 * kGibibyte);
  EXPECT_EQ(View(1).host_granted_bytes, 48 * kGibibyte)
      << "what nobody else is guaranteed is not asked back";

  arbiter_.Leave(ProcessOf(2));
  Settle();
  EXPECT_EQ(View(1).host_granted_bytes, 64 * kGibibyte);
}

TEST_F(ArbiterTest, MemoryStaysWithAnIdleJobWhenItsLenderIsIdleToo) {
  const auto rests = [](int64_t gib) {
    Demand demand = Wants(12, false);
    demand.idle_bytes = gib * kGibibyte;
    return demand;
  };
  arbiter_.Join(ProcessOf(1), Plain(), Wants(12), now_ns_);
  Settle();
  arbiter_.Use(ProcessOf(1), rests(12));
  arbiter_.Join(ProcessOf(2), Plain(), Wants(12), now_ns_);
  Settle();
  ASSERT_EQ(GibOf(2), 12);
  arbiter_.Use(ProcessOf(1), rests(4));

  arbiter_.Use(ProcessOf(2), rests(12));
  Settle();
  EXPECT_EQ(GibOf(2), 12);

  arbiter_.Use(ProcessOf(1), Wants(12));
  Settle();
  EXPECT_EQ(GibOf(1), 12);
}

TEST_F(ArbiterTest, IdleJobLendsNoHostMemory) {
  arbiter_.SetHost(8 * kGibibyte);
  arbiter_.Join(ProcessOf(1), Plain(), Wants(18), now_ns_);
  arbiter_.Join(ProcessOf(2), Plain(), Wants(18), now_ns_);
  Settle();
  ASSERT_EQ(View(1).host_granted_bytes, 4 * kGibibyte);

  // Its evicted device memory must lie in host memory until it wakes and beyond.
  arbiter_.Use(ProcessOf(1), Wants(18, false));
  Settle();

  EXPECT_LT(GibOf(1), 1);
  EXPECT_EQ(View(1).host_granted_bytes, 4 * kGibibyte);
}

TEST_F(ArbiterTest, HostMemoryIsGrantedByNeedWithoutWhatTheDeviceHolds) {
  arbiter_.SetHost(9 * kGibibyte);
  // The first job has little that would have to lie in host memory.
  const auto needs = [](int64_t host_gib) {
    return Demand{1000 * kGibibyte, 0, 0, true, host_gib * kGibibyte};
  };
  arbiter_.Join(ProcessOf(1), Plain(), needs(9), now_ns_);
  arbiter_.Join(ProcessOf(2), Plain(), needs(14), now_ns_);
  Settle();

  EXPECT_GE(View(1).host_granted_bytes, kGibibyte);
  EXPECT_GE(View(2).host_granted_bytes, 6 * kGibibyte);

  // Memory that leaves the device must lie in host memory.
  Terms small = Plain();
  small.memory.limit = 4 * kGibibyte;
  arbiter_.ChangeTerms(JobId{1}, kDevice, small);
  arbiter_.Use(ProcessOf(2), needs(0));
  Settle();

  EXPECT_GE(View(1).host_granted_bytes, 5 * kGibibyte);
}

TEST_F(ArbiterTest, LinkIsSharedByWeightAndIdleSharesAreLent) {
  Terms heavy = Plain();
  heavy.weight = 3;
  arbiter_.Join(ProcessOf(1), heavy, Wants(4), now_ns_);
  arbiter_.Join(ProcessOf(2), Plain(), Wants(4), now_ns_);
  Settle();
  EXPECT_EQ(View(1).link_permille, 750);
  EXPECT_EQ(View(2).link_permille, 250);

  arbiter_.Use(ProcessOf(1), Wants(4, false));
  Settle();
  EXPECT_EQ(View(2).link_permille, 999);
}

TEST_F(ArbiterTest, DevicesAreSharedSeparately) {
  arbiter_.Join(ProcessOf(1, 1, kDevice), Plain(), Wants(16), now_ns_);
  arbiter_.Join(ProcessOf(2, 2, kOther), Plain(), Wants(16), now_ns_);
  Settle();

  EXPECT_EQ(View(1, kDevice).granted_bytes, 16 * kGibibyte);
  EXPECT_EQ(View(2, kOther).granted_bytes, 16 * kGibibyte);
}

TEST_F(ArbiterTest, DrainedNodeAdmitsNoJobAndRunningJobsContinue) {
  arbiter_.Join(ProcessOf(1), Plain(), Wants(4), now_ns_);
  Settle();
  arbiter_.SetDraining(true);
  arbiter_.Join(ProcessOf(2), Plain(), Wants(4), now_ns_);

  const Decisions drained = Decide();
  ASSERT_EQ(drained.admissions.size(), 1u);
  EXPECT_EQ(drained.admissions[0].reason, "the node is being drained");
  EXPECT_EQ(GibOf(1), 4);

  arbiter_.SetDraining(false);
  Settle();
  EXPECT_EQ(GibOf(2), 4);
}

// Regression: such a job was believed beyond its operator's limit.
TEST_F(ArbiterTest, JobThatRanWithoutAgentIsBelievedUpToItsLimits) {
  Terms terms = Plain();
  terms.memory.limit = 2 * kGibibyte;
  terms.host.limit = kGibibyte;

  for (uint64_t session : {11, 12})
    arbiter_.Join(ProcessOf(1, session), terms, Wants(16), now_ns_,
                  {16 * kGibibyte, 64 * kGibibyte});
  Decide();

  EXPECT_LE(arbiter_.BudgetedOn(kDevice), 2 * kGibibyte);
  EXPECT_LE(arbiter_.BudgetedOnHost(), kGibibyte);
}

// Regression: only the job's first process was believed.
TEST_F(ArbiterTest, SecondProcessThatRanWithoutAgentIsBelievedToo) {
  arbiter_.Join(ProcessOf(1), Plain(), Wants(4), now_ns_, {4 * kGibibyte, 0});
  arbiter_.Join(ProcessOf(2), Plain(), Wants(4), now_ns_);
  Settle();

  arbiter_.Join(ProcessOf(1, 12), Plain(), Wants(1), now_ns_, {6 * kGibibyte, 0});
  EXPECT_EQ(arbiter_.BudgetedTo(ProcessOf(1, 12)), 6 * kGibibyte);
  EXPECT_GE(arbiter_.BudgetedOn(kDevice), 14 * kGibibyte - 8 * kMebibyte);

  const Decisions decisions = Decide();
  ASSERT_EQ(decisions.grants.size(), 2u) << "and the other process hears of its part of the link";
  EXPECT_EQ(decisions.grants[1].process, ProcessOf(1, 12));
  EXPECT_EQ(decisions.grants[1].reason, RulingReason::kKept);
  EXPECT_EQ(decisions.grants[1].memory_bytes, 6 * kGibibyte);
  EXPECT_GE(arbiter_.BudgetedTo(ProcessOf(1)), 4 * kGibibyte);
  arbiter_.Use(ProcessOf(2), Wants(16));
  Decide();
  EXPECT_LE(arbiter_.BudgetedOn(kDevice), 16 * kGibibyte);
}

TEST_F(ArbiterTest, NewProcessThatReportsHoldingsDoesNotExcuseALateJob) {
  arbiter_.Join(ProcessOf(1), Plain(), Wants(12), now_ns_);
  Settle();
  arbiter_.Join(ProcessOf(2), Plain(10), Wants(10), now_ns_);
  Decide();
  now_ns_ += 3 * kSecond;
  Decide();
  ASSERT_TRUE(View(1).overdue);
  arbiter_.Leave(ProcessOf(2));
  arbiter_.Join(ProcessOf(3), Plain(9), Wants(9), now_ns_);

  arbiter_.Join(ProcessOf(1, 12), Plain(), Wants(1), now_ns_, {2 * kGibibyte, 0});
  Decide();

  EXPECT_TRUE(View(1).overdue);
  EXPECT_LE(arbiter_.BudgetedOn(kDevice), 16 * kGibibyte);
}

TEST_F(ArbiterTest, WaitingJobThatRanWithoutAgentIsBelievedByItsLastReport) {
  arbiter_.Join(ProcessOf(1), Plain(9), Wants(9), now_ns_);
  Settle();
  arbiter_.Join(ProcessOf(2), Plain(9), Wants(1), now_ns_, {2 * kGibibyte, 0});
  Settle();
  ASSERT_EQ(View(2).state, TenancyState::kQueued);

  arbiter_.Holds(ProcessOf(2), {4 * kGibibyte, kGibibyte});
  arbiter_.Leave(ProcessOf(1));
  Decide();

  EXPECT_EQ(arbiter_.BudgetedTo(ProcessOf(2)), 4 * kGibibyte);
  EXPECT_EQ(arbiter_.HostBudgetedTo(ProcessOf(2)), kGibibyte);
}

// Regression: its place in the queue was kept, but its memory was budgeted to others.
TEST_F(ArbiterTest, WaitingJobThatRanWithoutAgentKeepsItsHoldingsWhenItReconnects) {
  // Given a running job that waits for memory guaranteed to another job
  arbiter_.Join(ProcessOf(1), Plain(9), Wants(9), now_ns_);
  Settle();
  arbiter_.Join(ProcessOf(2), Plain(9), Wants(1), now_ns_, {4 * kGibibyte, 0});
  Settle();
  ASSERT_EQ(View(2).state, TenancyState::kQueued);

  arbiter_.Succeed(ProcessOf(2), SessionId{22}, Wants(1), {4 * kGibibyte, 0});
  arbiter_.Leave(ProcessOf(1));
  Decide();

  EXPECT_GE(arbiter_.BudgetedOn(kDevice), 4 * kGibibyte);
}

}  // namespace
}  // namespace spillway::agent
