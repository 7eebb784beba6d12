#include "agent/arbiter/fair_shares.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/prng.h"

namespace spillway::agent {
namespace {

using Shares = std::vector<int64_t>;

Shares Divide(int64_t capacity, std::vector<Claim> claims) { return FairShares(capacity, claims); }

constexpr int64_t kAll = 100;  // high enough to limit nothing here

TEST(FairSharesTest, AllNeedsAreMetWhileThereIsEnough) {
  EXPECT_EQ(Divide(100, {{.limit = kAll, .wanted = 30}, {.limit = kAll, .wanted = 60}}),
            (Shares{30, 60}));
}

TEST(FairSharesTest, SharesEquallyWhenAllWantEverything) {
  EXPECT_EQ(Divide(100, {{.limit = kAll, .wanted = 100}, {.limit = kAll, .wanted = 100}}),
            (Shares{50, 50}));
}

TEST(FairSharesTest, UnusedSharesGoToOthers) {
  EXPECT_EQ(Divide(100, {{.limit = kAll, .wanted = 10},
                         {.limit = kAll, .wanted = 100},
                         {.limit = kAll, .wanted = 100}}),
            (Shares{10, 45, 45}));
}

TEST(FairSharesTest, WeightsScaleTheShares) {
  EXPECT_EQ(Divide(100, {{.limit = kAll, .wanted = 100, .weight = 3},
                         {.limit = kAll, .wanted = 100, .weight = 1}}),
            (Shares{75, 25}));
}

TEST(FairSharesTest, GuaranteeIsAMinimumNotAnExtra) {
  EXPECT_EQ(
      Divide(120, {{.guaranteed = 80, .limit = 120, .wanted = 120}, {.limit = 120, .wanted = 120}}),
      (Shares{80, 40}));
}

TEST(FairSharesTest, UnwantedGuaranteeIsLent) {
  EXPECT_EQ(Divide(100, {{.guaranteed = 80, .limit = kAll, .wanted = 20},
                         {.limit = kAll, .wanted = 100}}),
            (Shares{20, 80}));
}

TEST(FairSharesTest, IdleJobKeepsItsFloorAndLendsTheRest) {
  EXPECT_EQ(
      Divide(100, {{.floor = 5, .guaranteed = 60, .limit = kAll, .wanted = 60, .active = false},
                   {.limit = kAll, .wanted = 100}}),
      (Shares{5, 95}));
}

TEST(FairSharesTest, IdleJobKeepsMemoryThatNoJobWants) {
  EXPECT_EQ(
      Divide(100, {{.floor = 5, .guaranteed = 20, .limit = kAll, .wanted = 60, .active = false},
                   {.limit = kAll, .wanted = 50}}),
      (Shares{50, 50}));
}

TEST(FairSharesTest, IdleJobKeepsWhatItHasFromOtherIdleJobs) {
  const Claim asleep = {.floor = 5, .limit = kAll, .wanted = 90, .has = 90, .active = false};
  const Claim lent = {.floor = 5, .limit = kAll, .wanted = 90, .has = 5, .active = false};
  EXPECT_EQ(Divide(100, {asleep, lent}), (Shares{90, 10}));
  EXPECT_EQ(Divide(100, {lent, asleep}), (Shares{10, 90}));
}

TEST(FairSharesTest, IdleJobGivesAnActiveOneWhatItHas) {
  EXPECT_EQ(Divide(100, {{.floor = 5, .limit = kAll, .wanted = 90, .has = 90, .active = false},
                         {.limit = kAll, .wanted = 90}}),
            (Shares{10, 90}));
}

TEST(FairSharesTest, IdleJobHasNoMoreThanItNeeds) {
  EXPECT_EQ(Divide(100, {{.limit = kAll, .wanted = 20, .has = 90, .active = false},
                         {.limit = kAll, .wanted = 90, .active = false}}),
            (Shares{20, 80}));
}

TEST(FairSharesTest, IdleJobsGuaranteeComesBeforeWhatAnotherHas) {
  EXPECT_EQ(Divide(100, {{.limit = kAll, .wanted = 90, .has = 90, .active = false},
                         {.guaranteed = 60, .limit = kAll, .wanted = 60, .active = false}}),
            (Shares{40, 60}));
}

TEST(FairSharesTest, HigherPriorityComesFirstButNeverTakesAFloor) {
  EXPECT_EQ(Divide(100, {{.floor = 10, .limit = kAll, .wanted = 100, .priority = 0},
                         {.limit = kAll, .wanted = 100, .priority = 1}}),
            (Shares{10, 90}));
}

TEST(FairSharesTest, HigherPriorityPreemptsGuaranteesThatDoNotFitBoth) {
  EXPECT_EQ(
      Divide(100, {{.floor = 10, .guaranteed = 70, .limit = kAll, .wanted = 100, .priority = 0},
                   {.floor = 10, .guaranteed = 70, .limit = kAll, .wanted = 70, .priority = 1}}),
      (Shares{30, 70}));
}

TEST(FairSharesTest, LimitsHoldEvenWhenMemoryIsLeft) {
  EXPECT_EQ(Divide(100, {{.limit = 40, .wanted = 100}}), (Shares{40}));
}

TEST(FairSharesTest, FloorsBeyondCapacityAreGivenByPriorityAndArrival) {
  EXPECT_EQ(Divide(25, {{.floor = 10, .limit = kAll},
                        {.floor = 10, .limit = kAll},
                        {.floor = 10, .limit = kAll, .priority = 1}}),
            (Shares{10, 5, 10}));
  EXPECT_EQ(Divide(-5, {{.floor = 10, .limit = kAll}}), (Shares{0}));
}

TEST(FairSharesTest, MemoryInUseRanksAfterGuaranteesAndBeforeLoans) {
  EXPECT_EQ(
      Divide(100, {{.limit = kAll, .wanted = 100}, {.limit = kAll, .wanted = 100, .in_use = 70}}),
      (Shares{30, 70}));
  EXPECT_EQ(Divide(100, {{.guaranteed = 40, .limit = kAll, .wanted = 100},
                         {.limit = kAll, .wanted = 100, .in_use = 70}}),
            (Shares{40, 60}));
}

TEST(FairSharesTest, ReportedUseTakesNoOtherJobsGuarantee) {
  EXPECT_EQ(Divide(100, {{.limit = kAll, .wanted = 100, .in_use = 100},
                         {.limit = kAll, .wanted = 100, .in_use = 100},
                         {.guaranteed = 40, .limit = kAll, .wanted = 40}}),
            (Shares{60, 0, 40}));
}

TEST(FairSharesTest, IdleJobKeepsTheUnmovablePartOfItsGuarantee) {
  EXPECT_EQ(
      Divide(100, {{.guaranteed = 50, .limit = kAll, .wanted = 50, .in_use = 30, .active = false},
                   {.limit = kAll, .wanted = 100, .in_use = 100}}),
      (Shares{30, 70}));
}

TEST(FairSharesTest, NothingIsLostToRounding) {
  const Shares shares = Divide(100, {{.limit = kAll, .wanted = 100, .weight = 7},
                                     {.limit = kAll, .wanted = 100, .weight = 11},
                                     {.limit = kAll, .wanted = 100, .weight = 13}});
  EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), int64_t{0}), 100);
}

TEST(FairSharesTest, LargeFiguresDoNotOverflow) {
  const int64_t huge = int64_t{1} << 56;
  const Claim claim{.limit = huge, .wanted = huge, .weight = 10'000};

  const Shares shares = Divide(huge, {claim, claim});

  EXPECT_EQ(shares[0] + shares[1], huge);
  EXPECT_LE(std::abs(shares[0] - shares[1]), 10'000) << "even but for one unit per weight";
}

// The rules once more, slow and obvious.
class Referee {
 public:
  Referee(int64_t capacity, const std::vector<Claim>& claims, const Shares& shares)
      : capacity_(capacity), claims_(claims), shares_(shares) {}

  void Check() const {
    EXPECT_LE(Sum(), capacity_);
    for (size_t i = 0; i < claims_.size(); ++i) {
      EXPECT_GE(shares_[i], 0);
      EXPECT_LE(shares_[i], claims_[i].Need());
      if (SumOfFloors() <= capacity_) {
        EXPECT_GE(shares_[i], claims_[i].Floor());
      }
      if (shares_[i] < claims_[i].Need()) {
        EXPECT_EQ(Sum(), capacity_) << "something is left, but " << i << " wants more";
      }
    }
    if (SumOfFloors() > capacity_) return;
    for (size_t i = 0; i < claims_.size(); ++i) {
      for (size_t j = 0; j < claims_.size(); ++j) CheckPair(i, j);
    }
  }

 private:
  void CheckPair(size_t poor, size_t rich) const {
    const Claim &p = claims_[poor], &r = claims_[rich];
    if (shares_[poor] >= p.Need() || shares_[rich] <= r.Floor()) return;
    if (shares_[poor] < p.Protected() && shares_[rich] > r.Protected())
      ADD_FAILURE() << poor << " lacks of its guarantee, which " << rich << " has";
    const int64_t has = r.active ? 0 : std::min(r.has, r.Need());
    const int64_t kept = std::max(r.Protected(), r.InUse());
    if (shares_[poor] < p.InUse() && shares_[rich] > kept)
      ADD_FAILURE() << poor << " uses what " << rich << " could do without";
    if (p.active && !r.active && shares_[rich] > kept)
      ADD_FAILURE() << rich << " is idle and keeps what " << poor << " could use";
    if (p.active != r.active) return;
    const bool has_more = shares_[rich] > std::max({kept, has, r.Entitled()});
    if (p.priority > r.priority) {
      EXPECT_FALSE(has_more) << rich << " over " << poor;
    }
    if (shares_[poor] < p.Entitled() && has_more)
      ADD_FAILURE() << poor << " lacks of its guarantee";
    if (p.priority != r.priority || !has_more) return;
    // Moving one unit would make the shares less even.
    EXPECT_LE((shares_[rich] - 1) / r.weight, (shares_[poor] + 1) / p.weight)
        << rich << " over " << poor;
  }
  int64_t Sum() const { return std::accumulate(shares_.begin(), shares_.end(), int64_t{0}); }
  int64_t SumOfFloors() const {
    int64_t sum = 0;
    for (const Claim& claim : claims_) sum += claim.Floor();
    return sum;
  }

  const int64_t capacity_;
  const std::vector<Claim>& claims_;
  const Shares& shares_;
};

Claim RandomClaim(base::Prng& random, int64_t capacity) {
  const auto below = [&](int64_t end) {
    return static_cast<int64_t>(random.Below(static_cast<uint64_t>(end)));
  };
  Claim claim;
  claim.limit = below(capacity + 1);
  claim.floor = below(capacity / 8 + 1);
  claim.guaranteed = random.Below(2) ? 0 : below(capacity / 2 + 1);
  claim.wanted = below(2 * capacity + 1);
  claim.in_use = random.Below(3) ? 0 : below(capacity + 1);
  claim.weight = 1 + static_cast<int32_t>(random.Below(5));
  claim.priority = static_cast<int32_t>(random.Below(3));
  claim.active = random.Below(4) != 0;
  claim.has = random.Below(2) ? 0 : below(capacity + 1);
  return claim;
}

constexpr OwnerId kAnna{1}, kBert{2}, kCarl{3}, kLab{9};

Shares DivideAmong(const OwnerClaims& owners, std::vector<Claim> claims, int64_t capacity = 120) {
  return FairShares(capacity, claims, owners);
}
Claim Of(OwnerId owner, int64_t wanted = 1000) {
  return {.limit = 1000, .wanted = wanted, .owner = owner};
}

TEST(FairSharesOfOwnersTest, ManyJobsOfOneUserGetNoMoreThanOneJobOfAnother) {
  EXPECT_EQ(DivideAmong({{kAnna, {}}, {kBert, {}}}, {Of(kAnna), Of(kBert), Of(kBert), Of(kBert)}),
            (Shares{60, 20, 20, 20}));
}

TEST(FairSharesOfOwnersTest, SharesUnusedByOneUserGoToOthers) {
  EXPECT_EQ(DivideAmong({{kAnna, {}}, {kBert, {}}}, {Of(kAnna, 20), Of(kBert), Of(kBert)}),
            (Shares{20, 50, 50}));
}

TEST(FairSharesOfOwnersTest, WeightsApplyAmongUsersThenAmongAUsersJobs) {
  Claim heavy = Of(kBert);
  heavy.weight = 3;
  EXPECT_EQ(DivideAmong({{kAnna, {.weight = 2}}, {kBert, {}}}, {Of(kAnna), Of(kBert), heavy}),
            (Shares{80, 10, 30}));
}

TEST(FairSharesOfOwnersTest, UsersOfAnAccountShareTheAccountsPart) {
  EXPECT_EQ(
      DivideAmong({{kAnna, {}}, {kBert, {.above = kLab}}, {kCarl, {.above = kLab}}, {kLab, {}}},
                  {Of(kAnna), Of(kBert), Of(kBert), Of(kCarl)}),
      (Shares{60, 15, 15, 30}));
}

TEST(FairSharesOfOwnersTest, AUsersLimitHoldsEvenWhenMemoryIsLeft) {
  EXPECT_EQ(DivideAmong({{kAnna, {.limit = 50}}}, {Of(kAnna), Of(kAnna)}), (Shares{25, 25}));
  EXPECT_EQ(
      DivideAmong({{kAnna, {.above = kLab}}, {kLab, {.limit = 50}}}, {Of(kAnna), Of(kNobody, 30)}),
      (Shares{50, 30}));
}

TEST(FairSharesOfOwnersTest, AUsersGuaranteeIsLentWhileItsJobsAreIdle) {
  const OwnerClaims owners = {{kAnna, {.guaranteed = 90}}, {kBert, {}}};
  Claim idle = Of(kAnna);
  idle.active = false;
  EXPECT_EQ(DivideAmong(owners, {Of(kAnna), Of(kAnna), Of(kBert)}), (Shares{45, 45, 30}));
  EXPECT_EQ(DivideAmong(owners, {idle, idle, Of(kBert)}), (Shares{0, 0, 120}));
}

TEST(FairSharesOfOwnersTest, ClaimWithoutOwnerIsItsOwnOwner) {
  EXPECT_EQ(DivideAmong({{kAnna, {}}}, {Of(kAnna), Of(kAnna), Of(kBert), Of(kNobody)}),
            (Shares{20, 20, 40, 40}));
}

// Checks the amount per weight, give or take one unit.
void CheckLevels(const std::vector<Claim>& claims, const OwnerClaims& owners, const Shares& shares,
                 int64_t capacity) {
  std::map<OwnerId, int64_t> has, needs;
  int64_t sum = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    has[claims[i].owner] += shares[i];
    needs[claims[i].owner] += claims[i].Need();
    sum += shares[i];
    EXPECT_LE(shares[i], claims[i].Need());
  }
  EXPECT_LE(sum, capacity);
  const auto is_short = [&](OwnerId id) {
    return has[id] < std::min(needs[id], owners.at(id).limit);
  };
  for (const auto& [poor, p] : owners) {
    EXPECT_LE(has[poor], p.limit);
    if (!is_short(poor)) continue;
    EXPECT_EQ(sum, capacity) << "something is left";
    for (const auto& [rich, r] : owners)
      EXPECT_LE((has[rich] - 1) / r.weight, (has[poor] + 1) / p.weight);
  }
  for (size_t i = 0; i < claims.size(); ++i) {
    for (size_t j = 0; j < claims.size(); ++j) {
      const Claim &p = claims[i], &r = claims[j];
      if (p.owner != r.owner || shares[i] >= p.Need()) continue;
      EXPECT_LE((shares[j] - 1) / r.weight, (shares[i] + 1) / p.weight) << j << " over " << i;
    }
  }
}

TEST(FairSharesOfOwnersTest, RandomOwnersAndTheirClaimsGetEvenLevels) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    base::Prng random(seed);
    const int64_t capacity = 100 + static_cast<int64_t>(random.Below(1'000'000));
    OwnerClaims owners;
    for (uint64_t id = 1; id <= 1 + random.Below(5); ++id) {
      owners[OwnerId{id}].weight = 1 + static_cast<int32_t>(random.Below(4));
      if (random.Below(3) == 0)
        owners[OwnerId{id}].limit =
            static_cast<int64_t>(random.Below(static_cast<uint64_t>(capacity)));
    }
    std::vector<Claim> claims(1 + random.Below(12));
    for (Claim& claim : claims) {
      claim.limit = capacity;
      claim.wanted = static_cast<int64_t>(random.Below(static_cast<uint64_t>(capacity)));
      claim.weight = 1 + static_cast<int32_t>(random.Below(4));
      claim.owner = OwnerId{1 + random.Below(owners.size())};
    }

    CheckLevels(claims, owners, FairShares(capacity, claims, owners), capacity);

    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(FairSharesOfOwnersTest, NoOwnerExceedsItsLimitAndTheSumNeverExceedsTheCapacity) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    base::Prng random(seed);
    const int64_t capacity = 1 + static_cast<int64_t>(random.Below(100'000));
    const auto below = [&] {
      return static_cast<int64_t>(random.Below(static_cast<uint64_t>(capacity)));
    };
    OwnerClaims owners = {{kLab, {.guaranteed = below() / 2, .limit = capacity / 2 + below()}}};
    for (const OwnerId id : {kAnna, kBert, kCarl})
      owners[id] = {
          .above = random.Below(2) ? kLab : kNobody, .guaranteed = below() / 4, .limit = below()};
    std::vector<Claim> claims(1 + random.Below(12));
    for (Claim& claim : claims) {
      claim = RandomClaim(random, capacity);
      claim.owner = OwnerId{random.Below(4)};
    }

    const Shares shares = FairShares(capacity, claims, owners);

    std::map<OwnerId, int64_t> has;
    for (size_t i = 0; i < claims.size(); ++i) {
      has[claims[i].owner] += shares[i];
      if (claims[i].owner != kNobody) has[owners[claims[i].owner].above] += shares[i];
      EXPECT_LE(shares[i], claims[i].Need());
    }
    for (const auto& [id, owner] : owners)
      EXPECT_LE(has[id], owner.limit) << static_cast<uint64_t>(id);
    EXPECT_LE(std::accumulate(shares.begin(), shares.end(), int64_t{0}), capacity);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(FairSharesTest, RandomClaimsAreSharedAsTheRefereeExpects) {
  for (uint64_t seed = 1; seed <= 5000; ++seed) {
    base::Prng random(seed);
    const int64_t capacity =
        1 + static_cast<int64_t>(random.Below(random.Below(2) ? 50 : 1'000'000));
    std::vector<Claim> claims(1 + random.Below(12));
    for (Claim& claim : claims) claim = RandomClaim(random, capacity);

    Referee(capacity, claims, FairShares(capacity, claims)).Check();

    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace spillway::agent
