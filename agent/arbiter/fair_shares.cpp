#include "agent/arbiter/fair_shares.h"

#include <algorithm>
#include <numeric>

#include "agent/arbiter/water_level.h"
#include "base/units.h"

namespace spillway::agent {
namespace {

using Order = std::vector<size_t>;

class Division {
 public:
  Division(int64_t capacity, std::span<const Claim> claims, const OwnerClaims& owners)
      : left_(std::max<int64_t>(capacity, 0)), claims_(claims), shares_(claims.size(), 0) {
    needs_.reserve(claims.size());
    for (const Claim& claim : claims) needs_.push_back(claim.Need());
    if (!owners.empty() && Matter(owners)) ReadOwners(owners);
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
    FillOwnersGuarantees(order);
    for (size_t i : order) RaiseTo(i, claims_[i].InUse());
    for (bool active : {true, false}) {
      Order these;
      std::copy_if(order.begin(), order.end(), std::back_inserter(these),
                   [&](size_t i) { return claims_[i].active == active; });
      for (size_t i : these) RaiseTo(i, claims_[i].Entitled());
      if (!active)
        for (size_t i : these) RaiseTo(i, std::min(claims_[i].has, claims_[i].Need()));
      left_ = PourByPriority(kTop, left_, these);
    }
    return shares_;
  }

 private:
  static constexpr size_t kTop = SIZE_MAX;
  struct Owner {
    const OwnerClaim* claim;
    size_t above = kTop;
    int64_t has = 0;  // of all claims below it
  };

  // A single owner without a guarantee or a tighter limit does not change the division.
  bool Matter(const OwnerClaims& owners) const {
    if (claims_.empty()) return false;
    const bool is_one = std::all_of(claims_.begin(), claims_.end(), [&](const Claim& claim) {
      return claim.owner == claims_[0].owner;
    });
    if (!is_one) return true;
    for (auto owner = owners.find(claims_[0].owner); owner != owners.end();
         owner = owners.find(owner->second.above)) {
      if (owner->second.limit < left_ || owner->second.guaranteed > 0) return true;
    }
    return false;
  }

  void ReadOwners(const OwnerClaims& owners) {
    std::map<OwnerId, size_t> places;
    for (const bool is_top : {true, false}) {
      for (const auto& [id, claim] : owners) {
        const bool has_above = claim.above != kNobody && owners.count(claim.above) != 0;
        if (has_above == is_top) continue;
        places[id] = owners_.size();
        owners_.push_back({&claim, has_above ? places.at(claim.above) : kTop});
      }
    }
    owner_of_.reserve(claims_.size());
    for (const Claim& claim : claims_) {
      const auto found = places.find(claim.owner);
      owner_of_.push_back(found == places.end() ? kTop : found->second);
    }
  }

  size_t OwnerOf(size_t claim) const { return owner_of_.empty() ? kTop : owner_of_[claim]; }

  int64_t FreeOf(size_t owner) const {
    int64_t free = INT64_MAX;
    for (; owner != kTop; owner = owners_[owner].above)
      free = std::min(free, owners_[owner].claim->limit - owners_[owner].has);
    return std::max<int64_t>(free, 0);
  }

  void Add(size_t i, int64_t more) {
    shares_[i] += more;
    for (size_t owner = OwnerOf(i); owner != kTop; owner = owners_[owner].above)
      owners_[owner].has += more;
  }

  void RaiseTo(size_t i, int64_t amount) {
    const int64_t more =
        std::clamp<int64_t>(amount - shares_[i], 0, std::min(left_, FreeOf(OwnerOf(i))));
    if (more == 0) return;
    Add(i, more);
    left_ -= more;
  }

  void FillOwnersGuarantees(const Order& order) {
    for (size_t owner = owners_.size(); owner-- > 0;) {
      const int64_t lacks = owners_[owner].claim->guaranteed - owners_[owner].has;
      if (lacks <= 0) continue;
      Order these;
      std::copy_if(order.begin(), order.end(), std::back_inserter(these),
                   [&](size_t i) { return claims_[i].active && IsBelow(OwnerOf(i), owner); });
      const int64_t amount = std::min({lacks, left_, FreeOf(owner)});
      left_ -= amount - PourByPriority(owner, amount, these);
    }
  }
  bool IsBelow(size_t owner, size_t whose) const {
    while (owner != kTop && owner != whose) owner = owners_[owner].above;
    return owner == whose;
  }

  int64_t PourByPriority(size_t owner, int64_t amount, const Order& order) {
    for (size_t first = 0; first < order.size() && amount > 0;) {
      size_t last = first;
      while (last < order.size() && claims_[order[last]].priority == claims_[order[first]].priority)
        ++last;
      amount = PourInto(owner, amount, std::span(order).subspan(first, last - first));
      first = last;
    }
    return amount;
  }

  // A vessel directly below an owner: its own claim, or a lower owner with its listed claims.
  struct Part {
    size_t owner = kTop;  // kTop: the part is a claim
    size_t claim = 0;
    Order claims = {};
  };

  int64_t PourInto(size_t owner, int64_t amount, std::span<const size_t> these) {
    if (owners_.empty()) return PourIntoClaims(amount, these);
    const std::vector<Part> parts = PartsOf(owner, these);
    std::vector<Vessel> vessels;
    vessels.reserve(parts.size());
    for (const Part& part : parts) vessels.push_back(VesselOf(part));
    const int64_t left = Pour(amount, vessels);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      if (part.owner == kTop) {
        Add(part.claim, vessels[i].has - shares_[part.claim]);
      } else if (const int64_t more = vessels[i].has - owners_[part.owner].has; more > 0) {
        PourInto(part.owner, more, part.claims);
      }
    }
    return left;
  }

  int64_t PourIntoClaims(int64_t amount, std::span<const size_t> these) {
    std::vector<Vessel> vessels;
    vessels.reserve(these.size());
    for (const size_t i : these) vessels.push_back(VesselOf({.claim = i}));
    const int64_t left = Pour(amount, vessels);
    for (size_t i = 0; i < these.size(); ++i) shares_[these[i]] = vessels[i].has;
    return left;
  }

  std::vector<Part> PartsOf(size_t owner, std::span<const size_t> these) const {
    std::vector<Part> parts;
    std::vector<size_t> places(owners_.size(), kTop);
    for (const size_t i : these) {
      size_t below = OwnerOf(i);
      if (below == owner) {
        parts.push_back({.claim = i});
        continue;
      }
      while (owners_[below].above != owner) below = owners_[below].above;
      if (places[below] == kTop) {
        places[below] = parts.size();
        parts.push_back({.owner = below});
      }
      parts[places[below]].claims.push_back(i);
    }
    return parts;
  }

  // An owner takes its claims' needs, within its limit and those of the owners between.
  Vessel VesselOf(const Part& part) const {
    if (part.owner == kTop) {
      const size_t i = part.claim;
      return {shares_[i], std::max(needs_[i], shares_[i]), claims_[i].weight};
    }
    const Owner& owner = owners_[part.owner];
    base::Wide more = 0;
    for (const Part& below : PartsOf(part.owner, part.claims)) {
      const Vessel vessel = VesselOf(below);
      more += vessel.takes - vessel.has;
    }
    const int64_t free = std::max<int64_t>(0, owner.claim->limit - owner.has);
    return {owner.has, owner.has + static_cast<int64_t>(std::min<base::Wide>(more, free)),
            owner.claim->weight};
  }

  int64_t left_;
  std::span<const Claim> claims_;
  std::vector<int64_t> shares_;
  std::vector<int64_t> needs_;
  std::vector<Owner> owners_;  // empty: every claim stands for itself
  std::vector<size_t> owner_of_;
};

}  // namespace

std::vector<int64_t> FairShares(int64_t capacity, std::span<const Claim> claims,
                                const OwnerClaims& owners) {
  return Division(capacity, claims, owners).Divide();
}

}  // namespace spillway::agent
