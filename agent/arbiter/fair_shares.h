// How one amount (bytes of a device, bytes of the host, thousandths of a link) would be divided now
// if nothing took time.
//
// Pure: claims in, shares out; integers; the order of the claims is the order of arrival. Claims
// have owners (a user's jobs), owners may have others above them (an account's users): where a
// share is by weight, it is among those at the top first.
//
// Invariants
//  1. The shares' sum is at most the capacity, and below it only when every need is met, as far as
//  the owners' limits allow.
//  2. Everybody gets its floor; where that is impossible, higher priority and earlier arrival
//  first.
//  3. Then active claimants get what they need of their guarantees, by priority and arrival.
//  4. Then what is in use and cannot be given back at will, by priority and arrival: also of the
//  idle, for whom the part within their
//     guarantee counts as 3. Whatever is said to be in use, it takes nobody's guarantee.
//  5. Then higher priority before lower; within one priority weighted max-min: nobody's share per
//  weight could rise without
//     lowering that of somebody who has no more per weight and is above what is guaranteed. This
//     holds among owners with all that theirs have, and among those of one owner.
//  6. Idle claimants come last: what they do not get is what the active ones borrow.
//  7. The shares of an owner's claims never exceed its limit; what is guaranteed to it its active
//  claims have after 3.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "agent/arbiter/terms.h"

namespace spillway::agent {

struct Claim {
  int64_t floor = 0;       // never less
  int64_t guaranteed = 0;  // as soon as it is wanted
  int64_t limit = 0;       // never more
  int64_t wanted = 0;      // of use now
  int64_t in_use = 0;      // that cannot be given back at will
  int32_t weight = 1;      // positive
  int32_t priority = 0;
  bool active = true;
  OwnerId owner = kNobody;

  bool operator==(const Claim&) const = default;
  // All between 0 and the limit, whatever the fields say.
  int64_t Floor() const { return std::clamp<int64_t>(floor, 0, std::max<int64_t>(limit, 0)); }
  // At least the floor.
  int64_t InUse() const { return std::max(Floor(), std::min(in_use, limit)); }
  int64_t Need() const { return std::max(InUse(), std::min(wanted, limit)); }
  // What of the guarantee it needs.
  int64_t Entitled() const { return std::max(Floor(), std::min(guaranteed, Need())); }
  // What of the guarantee is not lent: an idle claimant's is what it has in use.
  int64_t Protected() const {
    return active ? Entitled() : std::max(Floor(), std::min(guaranteed, InUse()));
  }
};

// Of all claims of an owner, and of the owners below it.
struct OwnerClaim {
  OwnerId above = kNobody;
  int64_t guaranteed = 0;
  int64_t limit = std::numeric_limits<int64_t>::max();
  int32_t weight = 1;  // positive
  bool operator==(const OwnerClaim&) const = default;
};
using OwnerClaims = std::map<OwnerId, OwnerClaim>;

// An owner that is not in `owners` is nobody: each of its claims stands for itself.
std::vector<int64_t> FairShares(int64_t capacity, std::span<const Claim> claims,
                                const OwnerClaims& owners = {});

}  // namespace spillway::agent
