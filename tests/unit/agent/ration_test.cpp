#include "agent/arbiter/ration.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "base/prng.h"

namespace spillway::agent {
namespace {

constexpr int64_t kDeadline = 2000;

class RationTest : public testing::Test {
 protected:
  std::vector<Ruling> Decide() { return ration_.Decide(kDeadline, &serial_); }
  // Decides, and lets everybody obey at once, until nothing changes.
  void Settle() {
    for (std::vector<Ruling> rulings = Decide(); !rulings.empty(); rulings = Decide()) {
      for (const Ruling& ruling : rulings) ration_.Obeyed(ruling.claimant, ruling.serial, ruling.amount);
    }
  }

  Ration ration_{100};
  uint64_t serial_ = 0;
};

TEST_F(RationTest, GrantsWhatIsWantedAndFree) {
  ration_.Put(1, {.limit = 100, .wanted = 60});

  const std::vector<Ruling> rulings = Decide();

  ASSERT_EQ(rulings.size(), 1u);
  EXPECT_EQ(rulings[0].amount, 60);
  EXPECT_EQ(rulings[0].reason, RulingReason::kFirst);
  EXPECT_TRUE(Decide().empty()) << "said once";
}

TEST_F(RationTest, AsksBackBeforeItPromisesToAnother) {
  ration_.Put(1, {.limit = 100, .wanted = 100});
  Settle();
  ration_.Put(2, {.floor = 10, .limit = 100, .wanted = 100});

  const std::vector<Ruling> revoked = Decide();
  ASSERT_EQ(revoked.size(), 1u);
  EXPECT_EQ(revoked[0].claimant, 1u);
  EXPECT_EQ(revoked[0].amount, 50);
  EXPECT_EQ(revoked[0].reason, RulingReason::kRevoked);
  EXPECT_EQ(revoked[0].deadline_ns, kDeadline);
  EXPECT_TRUE(Decide().empty()) << "nothing to give before the first has obeyed, nothing to ask twice";
  EXPECT_EQ(ration_.promised(), 100);

  ration_.Obeyed(1, revoked[0].serial, 50);
  const std::vector<Ruling> given = Decide();
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].claimant, 2u);
  EXPECT_EQ(given[0].amount, 50);
}

TEST_F(RationTest, MemoryThatComesBackInPiecesIsGivenInPieces) {
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

TEST_F(RationTest, NothingIsAskedBackThatNobodyNeeds) {
  ration_.Put(1, {.limit = 100, .wanted = 90});
  Settle();

  ration_.Put(1, {.limit = 100, .wanted = 10});
  ration_.Put(2, {.limit = 100, .wanted = 10});
  Settle();

  EXPECT_EQ(ration_.GrantedTo(1), 90);
  EXPECT_EQ(ration_.GrantedTo(2), 10);
}

TEST_F(RationTest, AWakingOwnerGetsItsGuaranteeBack) {
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

TEST_F(RationTest, AnOlderGrantCountsUntilTheNewerIsConfirmed) {
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

TEST_F(RationTest, NobodyMakesItselfCountWithMoreThanItHad) {
  ration_.Put(1, {.limit = 100, .wanted = 40});
  const uint64_t serial = Decide()[0].serial;

  ration_.Obeyed(1, serial, 1'000'000);

  EXPECT_EQ(ration_.promised(), 40);
}

TEST_F(RationTest, WhoIsLateBorrowsNothingUntilItObeys) {
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

TEST_F(RationTest, WhoComesBackKeepsWhatItHas) {
  ration_.Restore(1, {.limit = 100, .wanted = 10}, 70);
  ration_.Put(2, {.limit = 100, .wanted = 10});

  const std::vector<Ruling> rulings = Decide();

  ASSERT_EQ(rulings.size(), 2u);
  EXPECT_EQ(rulings[0].amount, 70);
  EXPECT_EQ(rulings[0].reason, RulingReason::kKept);
  EXPECT_EQ(rulings[1].amount, 10);
}

// While it waited for its first grant it was found to hold some; its known share was then nothing, and it never had more, nor anything
// that another wanted.
TEST_F(RationTest, WhoComesWithSomeWhileItWaitsHasItsShareAllTheSame) {
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

TEST_F(RationTest, WhoComesBackIsStillAskedForWhatItWasAskedFor) {
  // Given one that was asked for 60 of its 100 and has given back 10
  ration_.Put(1, {.limit = 100, .wanted = 100});
  Settle();
  ration_.Put(2, {.guaranteed = 60, .limit = 100, .wanted = 60});
  const Ruling asked = Decide().back();
  ASSERT_EQ(asked.claimant, 1u);
  ration_.Obeyed(1, asked.serial, 90);

  // When it comes back, whatever it says that it holds
  ration_.Succeed(1, 3, 95);

  EXPECT_EQ(ration_.PromisedTo(1), 0);
  EXPECT_EQ(ration_.PromisedTo(3), 90);
  const std::vector<Ruling> told = Decide();
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told[0].claimant, 3u);
  EXPECT_EQ(told[0].amount, 40);
  EXPECT_EQ(told[0].deadline_ns, asked.deadline_ns);
}

TEST_F(RationTest, WhatOneThatComesBackHasNotHeardOfIsNotItsOwn) {
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

TEST_F(RationTest, WhenMoreComesBackThanThereIsNobodyIsRaisedAndTheExcessIsAskedBack) {
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

TEST_F(RationTest, AShrunkCapacityIsRestoredByAskingBack) {
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

// It was late for ever, with half of what it held, also when it was alone.
class LateRationTest : public RationTest {
 protected:
  // 1 has 80 that cannot leave, and was asked for half of that since 2 is guaranteed 60.
  void MakeTheFirstLate() {
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

TEST_F(LateRationTest, WhoCannotGiveBackIsForgivenWhenNobodyNeedsItAnyMore) {
  MakeTheFirstLate();

  ration_.Remove(2);
  const std::vector<Ruling> rulings = Decide();

  ASSERT_EQ(rulings.size(), 1u);
  EXPECT_EQ(rulings[0].amount, 80);
  EXPECT_FALSE(ration_.IsOverdue(1));
  EXPECT_TRUE(Decide().empty());
}

TEST_F(LateRationTest, WhoCannotGiveBackIsForgivenWhenOthersAreOwedOnlyTheRest) {
  MakeTheFirstLate();

  ration_.Put(2, {.guaranteed = 20, .limit = 100, .wanted = 100});
  Settle();

  EXPECT_FALSE(ration_.IsOverdue(1));
  EXPECT_EQ(ration_.GrantedTo(1), 80);
  EXPECT_EQ(ration_.GrantedTo(2), 20);
}

TEST_F(LateRationTest, WhoCouldGiveBackStaysLateUntilItDoes) {
  MakeTheFirstLate();

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

TEST_F(LateRationTest, WhatAnotherLateOneHoldsStandsInTheWay) {
  // Given two that are late: the first with 50 that cannot leave, the second with 50 of which it needs 10
  ration_.Put(1, {.limit = 50, .wanted = 50, .in_use = 50});
  ration_.Put(2, {.limit = 50, .wanted = 50});
  Settle();
  ration_.Put(2, {.limit = 10, .wanted = 50});
  ration_.Put(3, {.guaranteed = 60, .limit = 60, .wanted = 60});
  Decide();
  ration_.TakeOverdue(kDeadline);
  ASSERT_TRUE(ration_.IsOverdue(1));

  // When what the third is owed leaves room for the first's memory once the second has obeyed, and not before
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

// One that came back with all that there is, also with what the others hold, and never gave any back: the others were asked for all
// that they had.
TEST_F(RationTest, WhoIsLateTakesNobodysGuaranteeNorWhatCannotLeave) {
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

// Random claims, late and partial confirmations, deaths: nothing is ever promised twice.
class RationLife {
 public:
  explicit RationLife(uint64_t seed)
      : random_(seed), ration_(1000, 1 + static_cast<int64_t>(random_.Below(20))) {}

  void Run() {
    for (int step = 0; step < 300; ++step) {
      Disturb();
      const int64_t promised_before = ration_.promised();
      Note(ration_.Decide(step + 20, &serial_));
      ASSERT_TRUE(ration_.Decide(step + 20, &serial_).empty()) << "equal facts, another decision";
      ration_.TakeOverdue(step);
      ASSERT_LE(ration_.promised(), std::max(promised_before, ration_.capacity()));
      ASSERT_LE(HeldByAll(), ration_.promised());
      ASSERT_LE(ration_.promised(), ration_.capacity());
    }
    Calm();
  }

 private:
  struct Client {
    std::vector<Ruling> unread;
    int64_t holds = 0, may_hold = 0;
  };

  void Disturb() {
    const ClaimantId id = 1 + random_.Below(6);
    switch (random_.Below(6)) {
      case 0:
        ration_.Remove(id);
        clients_.erase(id);
        break;
      case 5:
        ComeBack(id);
        break;
      case 1:
      case 2:
        ration_.Put(id, RandomClaim());
        break;
      default:
        Read(id, random_.Below(2) == 0);
    }
  }
  Claim RandomClaim() {
    Claim claim;
    claim.floor = static_cast<int64_t>(random_.Below(100));
    claim.guaranteed = static_cast<int64_t>(random_.Below(160));
    claim.limit = 160 + static_cast<int64_t>(random_.Below(1000));
    claim.wanted = static_cast<int64_t>(random_.Below(1200));
    claim.in_use = random_.Below(3) ? 0 : static_cast<int64_t>(random_.Below(1200));
    claim.weight = 1 + static_cast<int32_t>(random_.Below(4));
    claim.priority = static_cast<int32_t>(random_.Below(3));
    claim.active = random_.Below(3) != 0;
    return claim;
  }
  void Note(const std::vector<Ruling>& rulings) {
    for (const Ruling& ruling : rulings) clients_[ruling.claimant].unread.push_back(ruling);
  }
  // The client reads its oldest ruling; it fills what it may hold, and may be slow to shrink.
  void Read(ClaimantId id, bool slow) {
    const auto found = clients_.find(id);
    if (found == clients_.end() || found->second.unread.empty()) return;
    Client& client = found->second;
    const Ruling ruling = client.unread.front();
    client.may_hold = ruling.amount;
    if (slow && client.holds > ruling.amount) {
      client.holds -= (client.holds - ruling.amount) / 2;
    } else {
      client.holds = ruling.amount;
      client.unread.erase(client.unread.begin());
    }
    ration_.Obeyed(id, ruling.serial, client.holds);
  }
  // By another name, as it lost its connection: what it has not read is lost, and what it may hold is the last that it has read.
  void ComeBack(ClaimantId id) {
    const auto found = clients_.find(id);
    if (found == clients_.end()) return;
    const int64_t promised_before = ration_.promised();
    const bool was_overdue = ration_.IsOverdue(id);
    Client client = std::exchange(found->second, {});
    clients_.erase(found);
    const ClaimantId name = 7;
    client.unread.clear();
    client.may_hold = std::max(client.may_hold, client.holds);
    ration_.Succeed(id, name, client.may_hold);
    ASSERT_LE(ration_.promised(), promised_before);
    ASSERT_EQ(ration_.PromisedTo(id), 0);
    if (ration_.PromisedTo(name) > ration_.GrantedTo(name)) {
      ASSERT_EQ(ration_.IsOverdue(name), was_overdue);
    }
    // And back, so that there are not ever more names.
    ration_.Succeed(name, id, client.may_hold);
    clients_[id] = client;
  }
  int64_t HeldByAll() const {
    int64_t sum = 0;
    for (const auto& [id, client] : clients_) sum += client.holds;
    return sum;
  }
  // Disturbances stop; everybody obeys. Then every share is met.
  void Calm() {
    for (int round = 0; round < 200; ++round) {
      for (auto& [id, client] : clients_) {
        while (!client.unread.empty()) Read(id, false);
      }
      Note(ration_.Decide(1'000'000, &serial_));
    }
    for (const auto& [id, client] : clients_) {
      ASSERT_TRUE(client.unread.empty()) << "it never comes to rest";
      ASSERT_EQ(client.holds, ration_.GrantedTo(id));
      ASSERT_EQ(ration_.PromisedTo(id), ration_.GrantedTo(id));
    }
  }

  base::Prng random_;
  Ration ration_;
  uint64_t serial_ = 0;
  std::map<ClaimantId, Client> clients_;
};

// The same life twice: once beside somebody who is late for ever, for whose sake everybody is looked at in every round. Some only change
// what they want, in the way of jobs that grow.
class TwinLife {
 public:
  explicit TwinLife(uint64_t seed) : random_(seed) {
    beside_.Put(kLate, {.limit = kHeldByLate, .wanted = kHeldByLate});
    beside_.Decide(1, &serial_beside_);
    beside_.Put(kLate, {.limit = 0});
    beside_.Decide(1, &serial_beside_);
    beside_.TakeOverdue(2);
  }

  void Run() {
    for (int i = 0; i < 200 && !testing::Test::HasFailure(); ++i) {
      const ClaimantId id = 1 + random_.Below(8);
      if (random_.Below(10) == 0) {
        alone_.Remove(id);
        beside_.Remove(id);
      } else {
        Claim& claim = claims_[id];
        if (random_.Below(2) == 0) claim = RandomClaim();
        claim.wanted = static_cast<int64_t>(random_.Below(80));
        alone_.Put(id, claim);
        beside_.Put(id, claim);
      }
      Decide();
    }
  }

 private:
  static constexpr ClaimantId kLate = 99;
  static constexpr int64_t kHeldByLate = 10;

  Claim RandomClaim() {
    const auto amount = static_cast<int64_t>(random_.Below(40));
    return {.floor = amount / 8,
            .guaranteed = amount / 4,
            .limit = 60,
            .wanted = amount,
            .weight = 1 + static_cast<int32_t>(random_.Below(3)),
            .active = random_.Below(4) != 0};
  }
  void Decide() {
    const std::vector<Ruling> one = alone_.Decide(kDeadline, &serial_alone_);
    std::vector<Ruling> other = beside_.Decide(kDeadline, &serial_beside_);
    std::erase_if(other, [](const Ruling& ruling) { return ruling.claimant == kLate; });
    ASSERT_EQ(one.size(), other.size());
    for (size_t i = 0; i < one.size(); ++i) {
      ASSERT_EQ(one[i].claimant, other[i].claimant);
      ASSERT_EQ(one[i].amount, other[i].amount);
      ASSERT_EQ(one[i].reason, other[i].reason);
      if (random_.Below(3) == 0) continue;
      alone_.Obeyed(one[i].claimant, one[i].serial, one[i].amount);
      beside_.Obeyed(other[i].claimant, other[i].serial, other[i].amount);
    }
    ASSERT_EQ(alone_.promised() + kHeldByLate, beside_.promised());
  }

  base::Prng random_;
  std::map<ClaimantId, Claim> claims_;
  Ration alone_{150}, beside_{150 + kHeldByLate};
  uint64_t serial_alone_ = 0, serial_beside_ = 0;
};

// The same life twice: once as if nothing of an earlier decision were known. All that changes shares happens: claims, capacities,
// arrivals, returns, and those that are late.
class KnowingLife {
 public:
  explicit KnowingLife(uint64_t seed)
      : random_(seed), step_(1 + Below(12)), knowing_(kCapacity, step_), anew_(kCapacity, step_) {}

  void Run() {
    for (now_ = 1; now_ <= 250 && !testing::Test::HasFailure(); ++now_) {
      Disturb(1 + random_.Below(7));
      Decide();
      knowing_.TakeOverdue(now_);
      anew_.TakeOverdue(now_);
    }
  }

 private:
  static constexpr int64_t kCapacity = 150;
  static constexpr ClaimantId kOtherName = 100;

  int64_t Below(uint64_t bound) { return static_cast<int64_t>(random_.Below(bound)); }
  void Both(const std::function<void(Ration&)>& change) {
    change(knowing_);
    change(anew_);
  }

  void Disturb(ClaimantId id) {
    Claim& claim = claims_[id];
    switch (random_.Below(12)) {
      case 0:
        Both([&](Ration& one) { one.Remove(id); });
        break;
      case 1:
        capacity_ = kCapacity - 50 + Below(100);
        break;
      case 2:
        Both([&](Ration& one) { one.Succeed(id, kOtherName, one.PromisedTo(id)); });
        Both([&](Ration& one) { one.Succeed(kOtherName, id, one.PromisedTo(kOtherName)); });
        break;
      case 3:
        BringMore(id);
        break;
      case 4:
      case 5:
        claim = RandomClaim();
        Both([&](Ration& one) { one.Put(id, claim); });
        break;
      case 6:
        claim.active = !claim.active;
        claim.in_use = Below(60);
        Both([&](Ration& one) { one.Put(id, claim); });
        break;
      default:
        claim.wanted = Below(200);
        Both([&](Ration& one) { one.Put(id, claim); });
    }
  }
  // One that has nothing yet may have begun elsewhere; both hold only what is free.
  void BringMore(ClaimantId id) {
    const int64_t free = capacity_ - knowing_.promised();
    if (free <= 0) return;
    const int64_t more = 1 + Below(static_cast<uint64_t>(free));
    Claim& claim = claims_[id];
    if (knowing_.HasGrant(id)) return Both([&](Ration& one) { one.Acknowledge(id, more); });
    if (random_.Below(2) == 0) claim.wanted = Below(200);
    Both([&](Ration& one) { one.Restore(id, claim, more); });
  }
  Claim RandomClaim() {
    return {.floor = Below(12),
            .guaranteed = Below(50),
            .limit = 20 + Below(200),
            .wanted = Below(200),
            .in_use = random_.Below(3) == 0 ? Below(60) : 0,
            .weight = 1 + static_cast<int32_t>(random_.Below(4)),
            .priority = static_cast<int32_t>(random_.Below(2)),
            .active = random_.Below(3) != 0};
  }
  void Decide() {
    anew_.SetCapacity(capacity_ + 1);
    Both([&](Ration& one) { one.SetCapacity(capacity_); });
    const std::vector<Ruling> known = knowing_.Decide(now_ + 6, &serial_);
    const std::vector<Ruling> found = anew_.Decide(now_ + 6, &serial_anew_);
    ASSERT_EQ(known.size(), found.size());
    for (size_t i = 0; i < known.size(); ++i) {
      ASSERT_EQ(known[i].claimant, found[i].claimant);
      ASSERT_EQ(known[i].serial, found[i].serial);
      ASSERT_EQ(known[i].amount, found[i].amount);
      ASSERT_EQ(known[i].deadline_ns, found[i].deadline_ns);
      ASSERT_EQ(known[i].reason, found[i].reason);
      const int64_t still_held = random_.Below(3) == 0 ? Below(30) : 0;
      if (random_.Below(4) == 0) continue;
      Both(
          [&](Ration& one) { one.Obeyed(known[i].claimant, known[i].serial, known[i].amount + still_held); });
    }
    ASSERT_EQ(knowing_.promised(), anew_.promised());
  }

  base::Prng random_;
  const int64_t step_;
  std::map<ClaimantId, Claim> claims_;
  int64_t capacity_ = kCapacity, now_ = 0;
  Ration knowing_, anew_;
  uint64_t serial_ = 0, serial_anew_ = 0;
};

TEST(RationPropertyTest, WhatIsKnownOfSharesIsWhatSharingOutAnewFinds) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    KnowingLife(seed).Run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(RationPropertyTest, WhoIsSettledIsLeftAloneWithTheSameResultAsIfLookedAt) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    TwinLife(seed).Run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(RationPropertyTest, NothingIsPromisedTwiceAndItComesToRest) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    RationLife(seed).Run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace spillway::agent
