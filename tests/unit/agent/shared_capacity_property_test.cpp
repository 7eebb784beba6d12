// Random lives of a capacity: invariants, and results that do not depend on how they were computed.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <utility>

#include "agent/arbiter/shared_capacity.h"
#include "base/prng.h"

namespace spillway::agent {
namespace {

constexpr int64_t kTurnDeadline = 2000;

// Random claims, late and partial confirmations, and deaths.
class SharedCapacityLife {
 public:
  explicit SharedCapacityLife(uint64_t seed)
      : random_(seed), shared_(1000, 1 + static_cast<int64_t>(random_.Below(20))) {
    SetOwners();
  }

  void Run() {
    for (int step = 0; step < 300; ++step) {
      Disturb();
      const int64_t budgeted_before = shared_.budgeted();
      Note(shared_.Decide(step + 20, &serial_));
      ASSERT_TRUE(shared_.Decide(step + 20, &serial_).empty()) << "equal facts, another decision";
      shared_.TakeOverdue(step);
      ASSERT_LE(shared_.budgeted(), std::max(budgeted_before, shared_.capacity()));
      ASSERT_LE(HeldByAll(), shared_.budgeted());
      ASSERT_LE(shared_.budgeted(), shared_.capacity());
      CheckOwners();
    }
    LetAllObey();
  }

 private:
  struct Client {
    std::vector<Ruling> unread;
    int64_t holds = 0, may_hold = 0;
  };

  // Two owners under an account, one beside it.
  void SetOwners() {
    const auto limit = [this] { return 300 + static_cast<int64_t>(random_.Below(900)); };
    if (random_.Below(3) == 0) return;
    owners_[OwnerId{3}] = {.guaranteed = 100, .limit = limit()};
    owners_[OwnerId{1}] = {.above = OwnerId{3}, .limit = limit(), .weight = 2};
    owners_[OwnerId{2}] = {.above = OwnerId{3}};
    for (const auto& [id, owner] : owners_) shared_.SetOwner(id, owner);
  }
  // Claims meet a fallen limit or a new owner as they obey. Meanwhile nothing more is budgeted.
  void CheckOwners() {
    for (const auto& [id, owner] : owners_) {
      int64_t budgeted = 0;
      for (const auto& [claimant, whose] : owner_of_) {
        const auto known = owners_.find(whose);
        const bool is_below = whose == id || (known != owners_.end() && known->second.above == id);
        if (is_below) budgeted += shared_.BudgetedTo(claimant);
      }
      ASSERT_LE(budgeted, std::max(owner.limit, budgeted_before_[id]))
          << "owner " << static_cast<uint64_t>(id);
      budgeted_before_[id] = budgeted;
    }
  }

  void Disturb() {
    const ClaimantId id = 1 + random_.Below(6);
    switch (random_.Below(6)) {
      case 0:
        shared_.Remove(id);
        clients_.erase(id);
        break;
      case 5:
        ComeBack(id);
        break;
      case 1:
      case 2:
        shared_.Put(id, RandomClaim(id));
        break;
      default:
        Read(id, random_.Below(2) == 0);
    }
  }
  Claim RandomClaim(ClaimantId id) {
    Claim claim;
    claim.owner = owner_of_[id] = OwnerId{id % 4};
    claim.floor = static_cast<int64_t>(random_.Below(100));
    claim.guaranteed = static_cast<int64_t>(random_.Below(160));
    claim.limit = 160 + static_cast<int64_t>(random_.Below(1000));
    claim.wanted = static_cast<int64_t>(random_.Below(1200));
    claim.in_use = random_.Below(3) ? 0 : static_cast<int64_t>(random_.Below(1200));
    claim.weight = 1 + static_cast<int32_t>(random_.Below(4));
    claim.priority = static_cast<int32_t>(random_.Below(3));
    claim.active = random_.Below(3) != 0;
    claim.has = claim.active ? 0 : static_cast<int64_t>(random_.Below(400));
    return claim;
  }
  void Note(const std::vector<Ruling>& rulings) {
    for (const Ruling& ruling : rulings) clients_[ruling.claimant].unread.push_back(ruling);
  }
  // The client reads its oldest ruling. It fills its allowance, and may be slow to shrink.
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
    shared_.Obeyed(id, ruling.serial, client.holds);
  }
  // The client lost its connection and returns under another name. Its allowance is the last ruling
  // that it read.
  void ComeBack(ClaimantId id) {
    const auto found = clients_.find(id);
    if (found == clients_.end()) return;
    const int64_t budgeted_before = shared_.budgeted();
    const bool was_overdue = shared_.IsOverdue(id);
    Client client = std::exchange(found->second, {});
    clients_.erase(found);
    const ClaimantId name = 7;
    client.unread.clear();
    client.may_hold = std::max(client.may_hold, client.holds);
    shared_.Succeed(id, name, client.may_hold);
    ASSERT_LE(shared_.budgeted(), budgeted_before);
    ASSERT_EQ(shared_.BudgetedTo(id), 0);
    if (shared_.BudgetedTo(name) > shared_.GrantedTo(name)) {
      ASSERT_EQ(shared_.IsOverdue(name), was_overdue);
    }
    // Renames back, so the number of names stays bounded.
    shared_.Succeed(name, id, client.may_hold);
    clients_[id] = client;
  }
  int64_t HeldByAll() const {
    int64_t sum = 0;
    for (const auto& [id, client] : clients_) sum += client.holds;
    return sum;
  }
  // Every share is met once all clients obey.
  void LetAllObey() {
    for (int round = 0; round < 200; ++round) {
      for (auto& [id, client] : clients_) {
        while (!client.unread.empty()) Read(id, false);
      }
      Note(shared_.Decide(1'000'000, &serial_));
    }
    for (const auto& [id, client] : clients_) {
      ASSERT_TRUE(client.unread.empty()) << "it never comes to rest";
      ASSERT_EQ(client.holds, shared_.GrantedTo(id));
      ASSERT_EQ(shared_.BudgetedTo(id), shared_.GrantedTo(id));
    }
  }

  base::Prng random_;
  SharedCapacity shared_;
  uint64_t serial_ = 0;
  std::map<ClaimantId, Client> clients_;
  OwnerClaims owners_;
  std::map<ClaimantId, OwnerId> owner_of_;
  std::map<OwnerId, int64_t> budgeted_before_;
};

void SetOwners(uint64_t seed, SharedCapacity& capacity) {
  if (seed % 2 == 0) return;
  const int64_t limit = seed % 4 == 1 ? 60 : 1'000'000;
  capacity.SetOwner(OwnerId{1}, {.above = OwnerId{3}, .limit = limit});
  capacity.SetOwner(OwnerId{2}, {.above = OwnerId{3}, .weight = 2});
  capacity.SetOwner(OwnerId{3}, {.guaranteed = 20, .limit = limit + 20});
}

// The same life twice. In one, a client is late for ever, so every round examines all clients. Some
// only change their demand, as growing jobs do.
class TwinLife {
 public:
  explicit TwinLife(uint64_t seed) : random_(seed) {
    for (SharedCapacity* capacity : {&alone_, &beside_}) SetOwners(seed, *capacity);
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
        claim.owner = OwnerId{id % 4};
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
    const std::vector<Ruling> one = alone_.Decide(kTurnDeadline, &serial_alone_);
    std::vector<Ruling> other = beside_.Decide(kTurnDeadline, &serial_beside_);
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
    ASSERT_EQ(alone_.budgeted() + kHeldByLate, beside_.budgeted());
  }

  base::Prng random_;
  std::map<ClaimantId, Claim> claims_;
  SharedCapacity alone_{150}, beside_{150 + kHeldByLate};
  uint64_t serial_alone_ = 0, serial_beside_ = 0;
};

// The same life twice. In one, no earlier decision is remembered.
class KnowingLife {
 public:
  explicit KnowingLife(uint64_t seed)
      : random_(seed), step_(1 + Below(12)), knowing_(kCapacity, step_), anew_(kCapacity, step_) {
    Both([seed](SharedCapacity& capacity) { SetOwners(seed, capacity); });
  }

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
  void Both(const std::function<void(SharedCapacity&)>& change) {
    change(knowing_);
    change(anew_);
  }

  void Disturb(ClaimantId id) {
    Claim& claim = claims_[id];
    switch (random_.Below(12)) {
      case 0:
        Both([&](SharedCapacity& one) { one.Remove(id); });
        break;
      case 1:
        capacity_ = kCapacity - 50 + Below(100);
        break;
      case 2:
        Both([&](SharedCapacity& one) { one.Succeed(id, kOtherName, one.BudgetedTo(id)); });
        Both([&](SharedCapacity& one) { one.Succeed(kOtherName, id, one.BudgetedTo(kOtherName)); });
        break;
      case 3:
        JoinWithHoldings(id);
        break;
      case 4:
      case 5:
        claim = RandomClaim();
        claim.owner = OwnerId{id % 4};
        Both([&](SharedCapacity& one) { one.Put(id, claim); });
        break;
      case 6:
        claim.active = !claim.active;
        claim.in_use = Below(60);
        Both([&](SharedCapacity& one) { one.Put(id, claim); });
        break;
      default:
        claim.wanted = Below(200);
        Both([&](SharedCapacity& one) { one.Put(id, claim); });
    }
  }
  // A client without memory may have begun elsewhere; both hold free memory only.
  void JoinWithHoldings(ClaimantId id) {
    const int64_t free = capacity_ - knowing_.budgeted();
    if (free <= 0) return;
    const int64_t more = 1 + Below(static_cast<uint64_t>(free));
    Claim& claim = claims_[id];
    if (knowing_.HasGrant(id)) return Both([&](SharedCapacity& one) { one.Acknowledge(id, more); });
    if (random_.Below(2) == 0) claim.wanted = Below(200);
    Both([&](SharedCapacity& one) { one.Restore(id, claim, more); });
  }
  Claim RandomClaim() {
    return {.floor = Below(12),
            .guaranteed = Below(50),
            .limit = 20 + Below(200),
            .wanted = Below(200),
            .in_use = random_.Below(3) == 0 ? Below(60) : 0,
            .has = random_.Below(2) == 0 ? Below(200) : 0,
            .weight = 1 + static_cast<int32_t>(random_.Below(4)),
            .priority = static_cast<int32_t>(random_.Below(2)),
            .active = random_.Below(3) != 0};
  }
  void Decide() {
    anew_.SetCapacity(capacity_ + 1);
    Both([&](SharedCapacity& one) { one.SetCapacity(capacity_); });
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
      Both([&](SharedCapacity& one) {
        one.Obeyed(known[i].claimant, known[i].serial, known[i].amount + still_held);
      });
    }
    ASSERT_EQ(knowing_.budgeted(), anew_.budgeted());
  }

  base::Prng random_;
  const int64_t step_;
  std::map<ClaimantId, Claim> claims_;
  int64_t capacity_ = kCapacity, now_ = 0;
  SharedCapacity knowing_, anew_;
  uint64_t serial_ = 0, serial_anew_ = 0;
};

TEST(SharedCapacityPropertyTest, RememberedSharesEqualRecomputedShares) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    KnowingLife(seed).Run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(SharedCapacityPropertyTest, SkippingSettledClaimsGivesTheSameResult) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    TwinLife(seed).Run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(SharedCapacityPropertyTest, BudgetsNothingTwiceAndComesToRest) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SharedCapacityLife(seed).Run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace spillway::agent
