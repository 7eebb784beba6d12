#include "agent/arbiter/ration.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

constexpr int64_t kDeadline = 2000;

class RationTest : public testing::Test {
 protected:
  std::vector<Ruling> Decide() { return ration_.Decide(kDeadline, &serial_); }
  // Decides, and lets all clients obey at once, until nothing changes.
  void Settle() {
    for (std::vector<Ruling> rulings = Decide(); !rulings.empty(); rulings = Decide()) {
      for (const Ruling& ruling : rulings)
        ration_.Obeyed(ruling.claimant, ruling.serial, ruling.amount);
    }
  }

  Ration ration_{100};
  uint64_t serial_ = 0;
};

TEST_F(RationTest, GrantsWantedMemoryThatIsFree) {
  ration_.Put(1, {.limit = 100, .wanted = 60});

  const std::vector<Ruling> rulings = Decide();

  ASSERT_EQ(rulings.size(), 1u);
  EXPECT_EQ(rulings[0].amount, 60);
  EXPECT_EQ(rulings[0].reason, RulingReason::kFirst);
  EXPECT_TRUE(Decide().empty()) << "said once";
}

TEST_F(RationTest, RevokesBeforeItPromisesToAnother) {
  ration_.Put(1, {.limit = 100, .wanted = 100});
  Settle();
  ration_.Put(2, {.floor = 10, .limit = 100, .wanted = 100});

  const std::vector<Ruling> revoked = Decide();
  ASSERT_EQ(revoked.size(), 1u);
  EXPECT_EQ(revoked[0].claimant, 1u);
  EXPECT_EQ(revoked[0].amount, 50);
  EXPECT_EQ(revoked[0].reason, RulingReason::kRevoked);
  EXPECT_EQ(revoked[0].deadline_ns, kDeadline);
  EXPECT_TRUE(Decide().empty())
      << "nothing to give before the first has obeyed, nothing to ask twice";
  EXPECT_EQ(ration_.promised(), 100);

  ration_.Obeyed(1, revoked[0].serial, 50);
  const std::vector<Ruling> given = Decide();
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].claimant, 2u);
  EXPECT_EQ(given[0].amount, 50);
}

TEST_F(RationTest, MemoryReturnedInPiecesIsGrantedInPieces) {
  ration_.Put(1, {.limit = 100, .wanted = 100});
  Settle();
  ration_.Put(2, {.floor = 10, .limit = 100, .wanted = 100});
  const uint64_t serial = Decide()[0].serial;

  ration_.Obeyed(1, serial, 80);

  const std::vector<Ruling> given = Decide();
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].amount, 20);
  EXPECT_EQ(ration_.promised(), 100);
}

TEST_F(RationTest, RevokesNothingThatNoClaimNeeds) {
  ration_.Put(1, {.limit = 100, .wanted = 90});
  Settle();

  ration_.Put(1, {.limit = 100, .wanted = 10});
  ration_.Put(2, {.limit = 100, .wanted = 10});
  Settle();

  EXPECT_EQ(ration_.GrantedTo(1), 90);
  EXPECT_EQ(ration_.GrantedTo(2), 10);
}

TEST_F(RationTest, WakingClaimGetsItsGuaranteeBack) {
  const Claim idle{.floor = 5, .guaranteed = 60, .limit = 100, .wanted = 60, .active = false};
  Claim awake = idle;
  awake.active = true;
  ration_.Put(1, idle);
  ration_.Put(2, {.limit = 100, .wanted = 100});
  Settle();
  ASSERT_EQ(ration_.GrantedTo(2), 95);

  ration_.Put(1, awake);
  const std::vector<Ruling> revoked = Decide();
  ASSERT_EQ(revoked.size(), 1u);
  EXPECT_EQ(revoked[0].claimant, 2u);
  EXPECT_EQ(revoked[0].amount, 40);

  ration_.Obeyed(2, revoked[0].serial, 40);
  const std::vector<Ruling> returned = Decide();
  ASSERT_EQ(returned.size(), 1u);
  EXPECT_EQ(returned[0].amount, 60);
  EXPECT_EQ(returned[0].reason, RulingReason::kReturned);
}

TEST_F(RationTest, OlderGrantCountsUntilTheNewerIsConfirmed) {
  ration_.Put(1, {.limit = 100, .wanted = 100});
  Settle();
  ration_.Put(1, {.limit = 30, .wanted = 100});
  const uint64_t lowered = Decide()[0].serial;
  ration_.Put(1, {.limit = 50, .wanted = 100});
  const uint64_t raised = Decide()[0].serial;

  EXPECT_EQ(ration_.PromisedTo(1), 100);
  ration_.Obeyed(1, lowered, 30);
  EXPECT_EQ(ration_.PromisedTo(1), 50) << "it may know of the third already";
  ration_.Obeyed(1, lowered - 1, 100);
  EXPECT_EQ(ration_.PromisedTo(1), 50) << "a late confirmation of an older grant changes nothing";
  ration_.Obeyed(1, raised, 50);
  EXPECT_EQ(ration_.PromisedTo(1), 50);
}

TEST_F(RationTest, ConfirmationsNeverRaiseAPromise) {
  ration_.Put(1, {.limit = 100, .wanted = 40});
  const uint64_t serial = Decide()[0].serial;

  ration_.Obeyed(1, serial, 1'000'000);

  EXPECT_EQ(ration_.promised(), 40);
}

TEST_F(RationTest, LateClaimBorrowsNothingUntilItObeys) {
  ration_.Put(1, {.guaranteed = 20, .limit = 100, .wanted = 100});
  Settle();
  ration_.Put(2, {.floor = 10, .limit = 100, .wanted = 30});
  const uint64_t serial = Decide()[0].serial;

  EXPECT_TRUE(ration_.TakeOverdue(kDeadline - 1).empty());
  EXPECT_EQ(ration_.TakeOverdue(kDeadline), (std::vector<ClaimantId>{1}));
  EXPECT_TRUE(ration_.TakeOverdue(kDeadline).empty()) << "said once";
  EXPECT_TRUE(ration_.IsOverdue(1));

  const std::vector<Ruling> cut = Decide();
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].amount, 20) << "down to its guarantee";
  EXPECT_GT(cut[0].serial, serial);
  EXPECT_EQ(ration_.promised(), 100) << "it may still hold all, whatever was said";
  ration_.Obeyed(1, cut[0].serial, 20);
  EXPECT_FALSE(ration_.IsOverdue(1));
  Settle();
  EXPECT_EQ(ration_.GrantedTo(2), 30);
  EXPECT_EQ(ration_.GrantedTo(1), 70);
}

TEST_F(RationTest, ReturningClaimKeepsItsMemory) {
  ration_.Restore(1, {.limit = 100, .wanted = 10}, 70);
  ration_.Put(2, {.limit = 100, .wanted = 10});

  const std::vector<Ruling> rulings = Decide();

  ASSERT_EQ(rulings.size(), 2u);
  EXPECT_EQ(rulings[0].amount, 70);
  EXPECT_EQ(rulings[0].reason, RulingReason::kKept);
  EXPECT_EQ(rulings[1].amount, 10);
}

// Regression: a claim that waited for its first grant was found to hold some memory. Its remembered
// share was nothing then, so it never got more.
TEST_F(RationTest, WaitingClaimWithSomeMemoryStillGetsItsShare) {
  const Claim waits{.floor = 10, .limit = 100, .wanted = 100};
  ration_.Put(1, {.limit = 100, .wanted = 100});
  Settle();
  ration_.Put(2, waits);
  const Ruling asked = Decide()[0];
  ration_.Obeyed(1, asked.serial, 70);

  ration_.Restore(2, waits, 30);
  Decide();
  ration_.Obeyed(1, asked.serial, 50);
  Settle();

  EXPECT_EQ(ration_.GrantedTo(1), 50);
  EXPECT_EQ(ration_.GrantedTo(2), 50);
}

TEST_F(RationTest, ReturningClaimMustStillGiveBackTheRevokedMemory) {
  // Given a claim that had to give back 60 of its 100 and has given back 10
  ration_.Put(1, {.limit = 100, .wanted = 100});
  Settle();
  ration_.Put(2, {.guaranteed = 60, .limit = 100, .wanted = 60});
  const Ruling asked = Decide().back();
  ASSERT_EQ(asked.claimant, 1u);
  ration_.Obeyed(1, asked.serial, 90);

  // When it returns, whatever holdings it reports
  ration_.Succeed(1, 3, 95);

  EXPECT_EQ(ration_.PromisedTo(1), 0);
  EXPECT_EQ(ration_.PromisedTo(3), 90);
  const std::vector<Ruling> told = Decide();
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told[0].claimant, 3u);
  EXPECT_EQ(told[0].amount, 40);
  EXPECT_EQ(told[0].deadline_ns, asked.deadline_ns);
}

TEST_F(RationTest, ReturningClaimLosesGrantsThatItNeverRead) {
  ration_.Put(1, {.limit = 100, .wanted = 30});
  Settle();
  ration_.Put(1, {.limit = 100, .wanted = 80});
  Decide();

  ration_.Succeed(1, 3, 30);

  EXPECT_EQ(ration_.promised(), 30);
  EXPECT_EQ(ration_.GrantedTo(3), 30);
  Settle();
  EXPECT_EQ(ration_.GrantedTo(3), 80) << "it is decided anew";
}

TEST_F(RationTest, ExcessAfterReturnsIsRevokedAndNoClaimIsRaised) {
  ration_.Put(2, {.limit = 100, .wanted = 60});
  Settle();
  ration_.Restore(1, {.limit = 100, .wanted = 70}, 70);
  ration_.Put(2, {.limit = 100, .wanted = 100});

  int64_t asked_back = 0;
  for (const Ruling& ruling : Decide()) {
    EXPECT_TRUE(ruling.reason == RulingReason::kKept || ruling.reason == RulingReason::kRevoked);
    if (ruling.reason == RulingReason::kRevoked)
      asked_back += (ruling.claimant == 1 ? 70 : 60) - ruling.amount;
  }

  EXPECT_EQ(asked_back, 30);
}

TEST_F(RationTest, ShrunkCapacityIsMetByRevoking) {
  ration_.Put(1, {.limit = 100, .wanted = 100});
  Settle();

  ration_.SetCapacity(40);
  Settle();

  EXPECT_EQ(ration_.promised(), 40);
}

TEST_F(RationTest, SmallRisesWaitForAWholeStep) {
  ration_ = Ration(100, 10);
  ration_.Put(1, {.limit = 100, .wanted = 95});
  Settle();
  ration_.Put(2, {.limit = 100, .wanted = 50});
  Decide();

  ration_.Obeyed(1, serial_, 94);

  EXPECT_TRUE(Decide().empty());
}

// Regression: each of a thousand claims received 80 KiB more when one fell asleep.
TEST_F(RationTest, PartlyServedClaimReceivesNoSmallRise) {
  ration_ = Ration(6400, 100);
  ration_.Put(1, {.limit = 9000, .wanted = 9000});
  ration_.Put(2, {.limit = 9000, .wanted = 9000});
  Settle();

  ration_.SetCapacity(6598);
  EXPECT_TRUE(Decide().empty()) << "99 more, of 3200";
  ration_.SetCapacity(6600);
  const std::vector<Ruling> rulings = Decide();

  ASSERT_EQ(rulings.size(), 2u);
  EXPECT_EQ(rulings[0].amount, 3300);
  EXPECT_EQ(rulings[1].amount, 3300);
}

TEST_F(RationTest, SmallRiseIsGrantedWhereItSufficesOrIsGuaranteed) {
  ration_ = Ration(6400, 100);
  ration_.Put(1, {.limit = 9000, .wanted = 3250});
  ration_.Put(2, {.limit = 9000, .wanted = 9000});
  Settle();
  ration_.SetCapacity(6500);

  const std::vector<Ruling> needed = Decide();
  ASSERT_EQ(needed.size(), 1u);
  EXPECT_EQ(needed[0].claimant, 1u);
  EXPECT_EQ(needed[0].amount, 3250);

  ration_.Put(2, {.guaranteed = 3225, .limit = 9000, .wanted = 9000});
  const std::vector<Ruling> guaranteed = Decide();
  ASSERT_EQ(guaranteed.size(), 1u);
  EXPECT_EQ(guaranteed[0].amount, 3250);
}

// Regression: 320 GiB that changed hands were granted in pieces of 64 MiB.
TEST_F(RationTest, LargeRiseIsGrantedInLargePiecesUnlessGuaranteed) {
  const auto parts_told = [this](int64_t guaranteed) {
    ration_ = Ration(1000, 10);
    ration_.Put(1, {.limit = 1000, .wanted = 1000});
    Settle();
    ration_.Put(2, {.guaranteed = guaranteed, .limit = 1000, .wanted = 1000});
    Decide();
    std::vector<int64_t> told;
    const uint64_t asked_back = serial_;
    for (int64_t held = 1000; held >= 500; held -= 10) {
      ration_.Obeyed(1, asked_back, held);
      for (const Ruling& ruling : Decide()) told.push_back(ruling.amount);
    }
    return told;
  };

  EXPECT_EQ(parts_told(0),
            (std::vector<int64_t>{130, 230, 300, 350, 390, 420, 440, 460, 470, 480, 490, 500}));
  EXPECT_EQ(parts_told(500).size(), 50u);
}

// Regression: such a claim stayed late for ever with half of its memory, even when it was alone.
class LateRationTest : public RationTest {
 protected:
  // Claim 1 has 80 unmovable. Half of that was revoked, because claim 2 has a guarantee of 60.
  void MakeFirstClaimLate() {
    ration_.Put(1, {.limit = 100, .wanted = 80, .in_use = 80});
    Settle();
    ration_.Put(2, {.guaranteed = 60, .limit = 100, .wanted = 60});
    Decide();
    ration_.Obeyed(1, serial_, 80);
    ration_.TakeOverdue(kDeadline);
    Decide();
    ASSERT_TRUE(ration_.IsOverdue(1));
    ASSERT_EQ(ration_.GrantedTo(1), 40);
  }
};

TEST_F(LateRationTest, UnmovableClaimIsForgivenWhenNoClaimNeedsItsMemory) {
  MakeFirstClaimLate();

  ration_.Remove(2);
  const std::vector<Ruling> rulings = Decide();

  ASSERT_EQ(rulings.size(), 1u);
  EXPECT_EQ(rulings[0].amount, 80);
  EXPECT_FALSE(ration_.IsOverdue(1));
  EXPECT_TRUE(Decide().empty());
}

TEST_F(LateRationTest, UnmovableClaimIsForgivenWhenTheRestSufficesForOthers) {
  MakeFirstClaimLate();

  ration_.Put(2, {.guaranteed = 20, .limit = 100, .wanted = 100});
  Settle();

  EXPECT_FALSE(ration_.IsOverdue(1));
  EXPECT_EQ(ration_.GrantedTo(1), 80);
  EXPECT_EQ(ration_.GrantedTo(2), 20);
}

TEST_F(LateRationTest, MovableClaimStaysLateUntilItObeys) {
  MakeFirstClaimLate();

  ration_.Put(1, {.limit = 100, .wanted = 50, .in_use = 50});
  ration_.Put(2, {.guaranteed = 20, .limit = 100, .wanted = 100});
  Decide();
  EXPECT_TRUE(ration_.IsOverdue(1)) << "it holds 30 that it does not use";

  ration_.Obeyed(1, serial_, 50);
  Settle();
  EXPECT_FALSE(ration_.IsOverdue(1));
  EXPECT_EQ(ration_.GrantedTo(1), 50);
  EXPECT_EQ(ration_.GrantedTo(2), 50);
}

TEST_F(LateRationTest, MemoryOfAnotherLateClaimPreventsForgiveness) {
  // Given two late claims: the first with 50 unmovable, the second with 50 of which it needs 10
  ration_.Put(1, {.limit = 50, .wanted = 50, .in_use = 50});
  ration_.Put(2, {.limit = 50, .wanted = 50});
  Settle();
  ration_.Put(2, {.limit = 10, .wanted = 50});
  ration_.Put(3, {.guaranteed = 60, .limit = 60, .wanted = 60});
  Decide();
  ration_.TakeOverdue(kDeadline);
  ASSERT_TRUE(ration_.IsOverdue(1));

  // When the third claim's share fits beside the first's memory only after the second has obeyed
  ration_.Put(3, {.guaranteed = 40, .limit = 40, .wanted = 40});
  Decide();
  EXPECT_TRUE(ration_.IsOverdue(1));
  EXPECT_TRUE(Decide().empty()) << "it is not forgiven and asked again by turns";

  ration_.Obeyed(2, serial_, 10);
  Settle();
  EXPECT_FALSE(ration_.IsOverdue(1));
  EXPECT_EQ(ration_.GrantedTo(1), 50);
  EXPECT_EQ(ration_.GrantedTo(3), 40);
}

// Regression: a claim returned with the whole capacity, including memory of others, and never gave
// any back. All memory of the others was revoked.
TEST_F(RationTest, LateClaimTakesNoOthersGuaranteeOrUnmovableMemory) {
  ration_.Restore(1, {.guaranteed = 30, .limit = 100, .wanted = 50}, 40);
  ration_.Restore(2, {.limit = 100, .wanted = 20, .in_use = 20}, 20);
  ration_.Restore(3, {.limit = 60, .wanted = 100, .in_use = 100}, 100);
  Decide();
  ration_.TakeOverdue(kDeadline);
  ASSERT_TRUE(ration_.IsOverdue(3));

  Decide();

  EXPECT_GE(ration_.GrantedTo(1), 30);
  EXPECT_EQ(ration_.GrantedTo(2), 20);
  EXPECT_TRUE(Decide().empty());
}

constexpr OwnerId kOwner{1}, kOtherOwner{2};

TEST_F(RationTest, ClaimsOfAnOwnerPassMemoryAmongThemselves) {
  // Given an owner whose single claim has the owner's whole limit, while much memory is free
  ration_.SetOwner(kOwner, {.limit = 60});
  ration_.Put(1, {.limit = 100, .wanted = 100, .owner = kOwner});
  Settle();
  ASSERT_EQ(ration_.GrantedTo(1), 60);

  // When another claim of the owner comes, the first gives back, and its confirmation counts
  ration_.Put(2, {.limit = 100, .wanted = 100, .owner = kOwner});
  const std::vector<Ruling> revoked = Decide();
  ASSERT_EQ(revoked.size(), 2u);
  EXPECT_EQ(revoked[0].amount + revoked[1].amount, 30);
  EXPECT_EQ(ration_.promised(), 60);
  Settle();
  ration_.Obeyed(1, serial_, 30);
  Settle();

  EXPECT_EQ(ration_.GrantedTo(1), 30);
  EXPECT_EQ(ration_.GrantedTo(2), 30);
}

TEST_F(RationTest, LoweredLimitIsMetWithoutOtherDemand) {
  ration_.SetOwner(kOwner, {.limit = 80});
  ration_.Put(1, {.limit = 100, .wanted = 40, .owner = kOwner});
  ration_.Put(2, {.limit = 100, .wanted = 40, .owner = kOwner});
  Settle();

  ration_.SetOwner(kOwner, {.limit = 50});
  Settle();

  EXPECT_EQ(ration_.GrantedTo(1) + ration_.GrantedTo(2), 50);
  ration_.RemoveOwner(kOwner);
  Settle();
  EXPECT_EQ(ration_.promised(), 80);
}

TEST_F(RationTest, UnusedMemoryOfAnOwnerGoesToItsOtherClaims) {
  ration_.SetOwner(kOwner, {.limit = 60});
  ration_.Put(1, {.limit = 100, .wanted = 60, .owner = kOwner});
  Settle();
  ration_.Put(1, {.limit = 100, .wanted = 10, .owner = kOwner});
  Settle();
  ASSERT_EQ(ration_.GrantedTo(1), 60) << "nobody needs it";

  ration_.Put(2, {.limit = 100, .wanted = 50, .owner = kOwner});
  ration_.Put(3, {.limit = 100, .wanted = 40, .owner = kOtherOwner});
  Settle();

  EXPECT_EQ(ration_.GrantedTo(1), 10);
  EXPECT_EQ(ration_.GrantedTo(2), 50);
  EXPECT_EQ(ration_.GrantedTo(3), 40);
}

}  // namespace
}  // namespace spillway::agent
