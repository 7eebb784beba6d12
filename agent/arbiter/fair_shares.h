// Divides one amount (device bytes, host bytes, thousandths of a link) as if changes took no time.
// Pure; integers. Claims are in order of arrival. A claim has an owner (a user), and an owner may
// have another above it (an account). Weights divide among the topmost owners first.
//
// Invariants
//  1. The shares' sum is at most the capacity, and less only when all needs within limits are met.
//  2. Every claim gets its floor. If impossible: higher priority, then earlier arrival.
//  3. Then active claims get what they need of their guarantees, by priority and arrival.
//  4. Then comes memory in use that its holder cannot release at will, by priority and arrival. For
//     an idle claim, the part within its guarantee counts as 3. Memory said to be in use never
//     takes another claim's guarantee.
//  5. Then higher priority goes before lower. Within one priority shares are weighted max-min:
//     raising one share per weight would lower another that has no more per weight and is above its
//     guarantee. This holds among owners, with all their claims, and among the claims of one owner.
//  6. Idle claims come last: active claims borrow what idle claims do not get. Of the rest, after
//     its guarantee, each idle claim first keeps what it has: nothing moves between jobs that do
//     not compute.
//  7. An owner's claims never exceed its limit. After 3, its active claims have its guarantee.
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
  int64_t floor = 0;
  int64_t guaranteed = 0;  // not lent while it is wanted
  int64_t limit = 0;
  int64_t wanted = 0;  // useful now
  int64_t in_use = 0;  // that its holder cannot release at will
  int64_t has = 0;     // now; counts while it is idle, up to its need
  int32_t weight = 1;  // positive
  int32_t priority = 0;
  bool active = true;
  OwnerId owner = kNobody;

  bool operator==(const Claim&) const = default;
  // All between 0 and the limit, whatever the fields say.
  int64_t Floor() const { return std::clamp<int64_t>(floor, 0, std::max<int64_t>(limit, 0)); }
  int64_t InUse() const { return std::max(Floor(), std::min(in_use, limit)); }
  int64_t Need() const { return std::max(InUse(), std::min(wanted, limit)); }
  int64_t Entitled() const { return std::max(Floor(), std::min(guaranteed, Need())); }
  // The part of the guarantee that is not lent: of an idle claim, what it has in use.
  int64_t Protected() const {
    return active ? Entitled() : std::max(Floor(), std::min(guaranteed, InUse()));
  }
};

// Bounds all claims of an owner and of the owners below it.
struct OwnerClaim {
  OwnerId above = kNobody;
  int64_t guaranteed = 0;
  int64_t limit = std::numeric_limits<int64_t>::max();
  int32_t weight = 1;
  bool operator==(const OwnerClaim&) const = default;
};
using OwnerClaims = std::map<OwnerId, OwnerClaim>;

// A claim whose owner is not in `owners` stands for itself.
std::vector<int64_t> FairShares(int64_t capacity, std::span<const Claim> claims,
                                const OwnerClaims& owners = {});

}  // namespace spillway::agent
