#include "agent/arbiter/fair_shares.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/prng.h"

namespace spillway::agent {
namespace {

using Shares = std::vector<int64_t>;

Shares Divide(int64_t capacity, std::vector<Claim> claims) { return FairShares(capacity, claims); }

constexpr int64_t kAll = 100;  // a limit that is no limit here

TEST(FairSharesTest, EverybodyGetsItsNeedWhileThereIsEnough) {
  EXPECT_EQ(Divide(100, {{.limit = kAll, .wanted = 30}, {.limit = kAll, .wanted = 60}}), (Shares{30, 60}));
}

TEST(FairSharesTest, SharesEquallyWhenEverybodyWantsAll) {
  EXPECT_EQ(Divide(100, {{.limit = kAll, .wanted = 100}, {.limit = kAll, .wanted = 100}}), (Shares{50, 50}));
}

TEST(FairSharesTest, WhatTheModestLeaveGoesToTheOthers) {
  EXPECT_EQ(
      Divide(100,
             {{.limit = kAll, .wanted = 10}, {.limit = kAll, .wanted = 100}, {.limit = kAll, .wanted = 100}}),
      (Shares{10, 45, 45}));
}

TEST(FairSharesTest, WeightsScaleTheShares) {
  EXPECT_EQ(
      Divide(100, {{.limit = kAll, .wanted = 100, .weight = 3}, {.limit = kAll, .wanted = 100, .weight = 1}}),
      (Shares{75, 25}));
}

TEST(FairSharesTest, AGuaranteeIsTheLeastNotAnExtra) {
  EXPECT_EQ(Divide(120, {{.guaranteed = 80, .limit = 120, .wanted = 120}, {.limit = 120, .wanted = 120}}),
            (Shares{80, 40}));
}

TEST(FairSharesTest, AGuaranteeThatIsNotWantedIsLent) {
  EXPECT_EQ(Divide(100, {{.guaranteed = 80, .limit = kAll, .wanted = 20}, {.limit = kAll, .wanted = 100}}),
            (Shares{20, 80}));
}

TEST(FairSharesTest, AnIdleJobKeepsItsFloorAndLendsTheRest) {
  EXPECT_EQ(Divide(100, {{.floor = 5, .guaranteed = 60, .limit = kAll, .wanted = 60, .active = false},
                         {.limit = kAll, .wanted = 100}}),
            (Shares{5, 95}));
}

TEST(FairSharesTest, AnIdleJobKeepsWhatNobodyWants) {
  EXPECT_EQ(Divide(100, {{.floor = 5, .guaranteed = 20, .limit = kAll, .wanted = 60, .active = false},
                         {.limit = kAll, .wanted = 50}}),
            (Shares{50, 50}));
}

TEST(FairSharesTest, HigherPriorityFirstButNeverBelowAFloor) {
  EXPECT_EQ(Divide(100, {{.floor = 10, .limit = kAll, .wanted = 100, .priority = 0},
                         {.limit = kAll, .wanted = 100, .priority = 1}}),
            (Shares{10, 90}));
}

TEST(FairSharesTest, HigherPriorityPreemptsGuaranteesThatDoNotFitBoth) {
  EXPECT_EQ(Divide(100, {{.floor = 10, .guaranteed = 70, .limit = kAll, .wanted = 100, .priority = 0},
                         {.floor = 10, .guaranteed = 70, .limit = kAll, .wanted = 70, .priority = 1}}),
            (Shares{30, 70}));
}

TEST(FairSharesTest, LimitsHoldEvenWhenMemoryIsLeft) {
  EXPECT_EQ(Divide(100, {{.limit = 40, .wanted = 100}}), (Shares{40}));
}

TEST(FairSharesTest, FloorsBeyondTheCapacityGoByPriorityAndArrival) {
  EXPECT_EQ(Divide(25, {{.floor = 10, .limit = kAll},
                        {.floor = 10, .limit = kAll},
                        {.floor = 10, .limit = kAll, .priority = 1}}),
            (Shares{10, 5, 10}));
  EXPECT_EQ(Divide(-5, {{.floor = 10, .limit = kAll}}), (Shares{0}));
}

TEST(FairSharesTest, WhatIsInUseComesBeforeWhatIsLentAndAfterGuarantees) {
  EXPECT_EQ(Divide(100, {{.limit = kAll, .wanted = 100}, {.limit = kAll, .wanted = 100, .in_use = 70}}),
            (Shares{30, 70}));
  EXPECT_EQ(Divide(100, {{.guaranteed = 40, .limit = kAll, .wanted = 100},
                         {.limit = kAll, .wanted = 100, .in_use = 70}}),
            (Shares{40, 60}));
}

TEST(FairSharesTest, TwoThatSayThatTheyUseAllTakeNobodysGuarantee) {
  EXPECT_EQ(Divide(100, {{.limit = kAll, .wanted = 100, .in_use = 100},
                         {.limit = kAll, .wanted = 100, .in_use = 100},
                         {.guaranteed = 40, .limit = kAll, .wanted = 40}}),
            (Shares{60, 0, 40}));
}

TEST(FairSharesTest, AnIdleJobKeepsWhatItCannotGiveBackOfItsGuarantee) {
  EXPECT_EQ(Divide(100, {{.guaranteed = 50, .limit = kAll, .wanted = 50, .in_use = 30, .active = false},
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

// The rules once more, obviously.
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
  // `poor` wants more; may `rich` have what it has?
  void CheckPair(size_t poor, size_t rich) const {
    const Claim &p = claims_[poor], &r = claims_[rich];
    if (shares_[poor] >= p.Need() || shares_[rich] <= r.Floor()) return;
    if (shares_[poor] < p.Protected() && shares_[rich] > r.Protected())
      ADD_FAILURE() << poor << " lacks of its guarantee, which " << rich << " has";
    const int64_t kept = std::max(r.Protected(), r.InUse());
    if (shares_[poor] < p.InUse() && shares_[rich] > kept)
      ADD_FAILURE() << poor << " uses what " << rich << " could do without";
    if (p.active && !r.active && shares_[rich] > kept)
      ADD_FAILURE() << rich << " is idle and keeps what " << poor << " could use";
    if (p.active != r.active) return;
    const bool has_more = shares_[rich] > std::max(kept, r.Entitled());
    if (p.priority > r.priority) {
      EXPECT_FALSE(has_more) << rich << " over " << poor;
    }
    if (shares_[poor] < p.Entitled() && has_more) ADD_FAILURE() << poor << " lacks of its guarantee";
    if (p.priority != r.priority || !has_more) return;
    // One unit, moved, would have to make it less even.
    EXPECT_LE((shares_[rich] - 1) / r.weight, (shares_[poor] + 1) / p.weight) << rich << " over " << poor;
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
  return claim;
}

TEST(FairSharesTest, RandomClaimsAreSharedByTheRules) {
  for (uint64_t seed = 1; seed <= 5000; ++seed) {
    base::Prng random(seed);
    const int64_t capacity = 1 + static_cast<int64_t>(random.Below(random.Below(2) ? 50 : 1'000'000));
    std::vector<Claim> claims(1 + random.Below(12));
    for (Claim& claim : claims) claim = RandomClaim(random, capacity);

    Referee(capacity, claims, FairShares(capacity, claims)).Check();

    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace spillway::agent
