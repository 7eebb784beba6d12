#include "agent/arbiter/fair_shares.h"

#include <algorithm>
#include <numeric>

#include "base/units.h"

namespace spillway::agent {
namespace {

using Order = std::vector<size_t>;

class Division {
 public:
  Division(int64_t capacity, std::span<const Claim> claims)
      : left_(std::max<int64_t>(capacity, 0)), claims_(claims), shares_(claims.size(), 0) {
    needs_.reserve(claims.size());
    full_levels_.reserve(claims.size());
    for (const Claim& claim : claims) {
      needs_.push_back(claim.Need());
      full_levels_.push_back(needs_.back() / claim.weight + 1);
    }
  }

  std::vector<int64_t> Divide() {
    Order order(claims_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto comes_before = [this](size_t a, size_t b) {
      return claims_[a].priority > claims_[b].priority;
    };
    if (!std::is_sorted(order.begin(), order.end(), comes_before))
      std::stable_sort(order.begin(), order.end(), comes_before);
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
    const int64_t level = LevelFor(these);
    std::vector<int64_t> one_higher;
    one_higher.reserve(these.size());
    for (size_t i : these) one_higher.push_back(At(i, level + 1));
    for (size_t i : these) RaiseTo(i, At(i, level));
    for (size_t n = 0; n < these.size(); ++n) RaiseTo(these[n], one_higher[n]);
  }

  // The highest that is paid for, where not all is. Whoever costs a fixed amount, or so much per level, at all levels that are still in
  // question is summed up and not looked at again.
  int64_t LevelFor(std::span<const size_t> these) const {
    int64_t level = 0, too_high = 1;
    for (size_t i : these) too_high = std::max(too_high, full_levels_[i] + 1);
    Order open(these.begin(), these.end());
    base::Wide fixed = 0, per_level = 0;
    while (too_high - level > 1 && !open.empty()) {
      const int64_t middle = level + (too_high - level) / 2;
      const bool is_paid = fixed + per_level * middle + CostOf(middle, open) <= left_;
      (is_paid ? level : too_high) = middle;
      std::erase_if(open, [&](size_t i) {
        const bool is_full = full_levels_[i] <= level;
        const bool rises = full_levels_[i] >= too_high && level * claims_[i].weight >= shares_[i];
        if (is_full) fixed += At(i, level) - shares_[i];
        if (rises) fixed -= shares_[i];
        if (rises) per_level += claims_[i].weight;
        return is_full || rises;
      });
    }
    if (too_high - level == 1) return level;
    const base::Wide paid = per_level > 0 ? (left_ - fixed) / per_level : too_high;
    return static_cast<int64_t>(std::min<base::Wide>(paid, too_high - 1));
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
