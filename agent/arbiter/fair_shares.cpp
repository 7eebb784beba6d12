#include "agent/arbiter/fair_shares.h"

#include <algorithm>
#include <numeric>

#include "base/units.h"

namespace spillway::agent {

int64_t Claim::Floor() const { return std::clamp<int64_t>(floor, 0, std::max<int64_t>(limit, 0)); }
int64_t Claim::InUse() const { return std::max(Floor(), std::min(in_use, limit)); }
int64_t Claim::Need() const { return std::max(InUse(), std::min(wanted, limit)); }
int64_t Claim::Entitled() const { return std::max(Floor(), std::min(guaranteed, Need())); }
int64_t Claim::Protected() const {
  return active ? Entitled() : std::max(Floor(), std::min(guaranteed, InUse()));
}

namespace {

using Order = std::vector<size_t>;

class Division {
 public:
  Division(int64_t capacity, std::span<const Claim> claims)
      : left_(std::max<int64_t>(capacity, 0)), claims_(claims), shares_(claims.size(), 0) {
    for (const Claim& claim : claims) {
      needs_.push_back(claim.Need());
      full_levels_.push_back(needs_.back() / claim.weight + 1);
    }
  }

  std::vector<int64_t> Divide() {
    Order order(claims_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [this](size_t a, size_t b) { return claims_[a].priority > claims_[b].priority; });
    for (size_t i : order) RaiseTo(i, claims_[i].Floor());
    for (size_t i : order) RaiseTo(i, claims_[i].Protected());
    for (size_t i : order) RaiseTo(i, claims_[i].InUse());
    for (bool active : {true, false}) {
      Order these;
      std::copy_if(order.begin(), order.end(), std::back_inserter(these),
                   [&](size_t i) { return claims_[i].active == active; });
      for (size_t i : these) RaiseTo(i, claims_[i].Entitled());
      ForEachPriority(these);
    }
    return shares_;
  }

 private:
  void RaiseTo(size_t i, int64_t amount) {
    const int64_t more = std::clamp<int64_t>(amount - shares_[i], 0, left_);
    shares_[i] += more;
    left_ -= more;
  }

  void ForEachPriority(const Order& order) {
    for (size_t first = 0; first < order.size();) {
      size_t last = first;
      while (last < order.size() && claims_[order[last]].priority == claims_[order[first]].priority) ++last;
      LevelOut(std::span(order).subspan(first, last - first));
      first = last;
    }
  }

  // The share at a level of so much per weight, at least what the claimant has, at most what it needs.
  int64_t At(size_t i, int64_t level) const {
    if (level >= full_levels_[i]) return std::max(needs_[i], shares_[i]);
    return std::max(shares_[i], level * claims_[i].weight);
  }
  base::Wide CostOf(int64_t level, std::span<const size_t> these) const {
    base::Wide cost = 0;
    for (size_t i : these) cost += At(i, level) - shares_[i];
    return cost;
  }

  // Water rises to the highest level that what is left pays for; the rest, less than one unit per weight, goes in order.
  void LevelOut(std::span<const size_t> these) {
    constexpr int64_t no_level = INT64_MAX;
    if (left_ == 0) return;
    if (CostOf(no_level, these) <= left_) {
      for (size_t i : these) RaiseTo(i, needs_[i]);
      return;
    }
    int64_t level = 0, too_high = 1;
    for (size_t i : these) too_high = std::max(too_high, full_levels_[i] + 1);
    // Who has all it needs at a level that is paid for costs the same at any higher one.
    Order open(these.begin(), these.end());
    base::Wide full_cost = 0;
    while (too_high - level > 1) {
      const int64_t middle = level + (too_high - level) / 2;
      if (full_cost + CostOf(middle, open) > left_) {
        too_high = middle;
        continue;
      }
      level = middle;
      std::erase_if(open, [&](size_t i) {
        if (full_levels_[i] > level) return false;
        full_cost += At(i, level) - shares_[i];
        return true;
      });
    }
    std::vector<int64_t> one_higher;
    for (size_t i : these) one_higher.push_back(At(i, level + 1));
    for (size_t i : these) RaiseTo(i, At(i, level));
    for (size_t n = 0; n < these.size(); ++n) RaiseTo(these[n], one_higher[n]);
  }

  int64_t left_;
  std::span<const Claim> claims_;
  std::vector<int64_t> shares_;
  std::vector<int64_t> needs_, full_levels_;  // from that level on a claimant has all it needs
};

}  // namespace

std::vector<int64_t> FairShares(int64_t capacity, std::span<const Claim> claims) {
  return Division(capacity, claims).Divide();
}

}  // namespace spillway::agent
