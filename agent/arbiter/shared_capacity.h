// Divides one amount among claimants over time. A part goes to another claimant only after its
// holder has confirmed that it let go. One thread; pure.
//
// A claimant counts with the most that it may still hold: its last grant, and earlier grants until
// it confirms the last (Obeyed). Targets come from FairShares. An amount that nobody needs stays
// where it is, so that little has to move.
//
// Which changes are announced: Note [Worth a grant]. Owners' limits: Note [Within an owner].
//
// A decision costs nothing if nothing changed since one without rulings, or if only short claimants
// changed their demand, Note [Still short]. With enough for all, only unsettled claimants cost,
// Note [Settled]. While the shares stay the same, only claimants without theirs do.
//
// Invariants
//  1. No ruling raises a claimant while the budgets exceed the capacity, or an owner's limit. They
//     exceed it only after the capacity shrank, or after a claimant returned with more (Restore).
//  2. A claimant's first grant is at least its floor, or what it restores.
//  3. Only what another claimant needs, or what exceeds a limit, is revoked.
//  4. A claimant that misses a deadline borrows nothing until it obeys, or until its fair share
//     covers all that it may hold.
//  5. An overdue claimant, whatever it returned with, takes no other claimant's guarantee or memory
//     in use.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "agent/arbiter/fair_shares.h"
#include "base/units.h"

namespace spillway::agent {

using ClaimantId = uint64_t;

enum class RulingReason : uint8_t {
  kFirst,
  kLent,
  kReturned,
  kRevoked,
  kPreempted,
  kChanged,
  kKept
};

// The claimant may hold `amount` from now on, and must be down to it by the deadline.
struct Ruling {
  ClaimantId claimant = 0;
  uint64_t serial = 0;
  int64_t amount = 0;
  int64_t deadline_ns = 0;
  RulingReason reason = RulingReason::kFirst;
};

class SharedCapacity {
 public:
  // A raise below `step` must be worth a grant, see Note [Worth a grant].
  explicit SharedCapacity(int64_t capacity = 0, int64_t step = 1)
      : capacity_(capacity), step_(step) {}

  void SetCapacity(int64_t capacity) {
    is_at_rest_ = is_at_rest_ && capacity == capacity_;
    shares_known_ = shares_known_ && capacity == capacity_;
    capacity_ = capacity;
  }
  // Before any claim names the owner.
  void SetOwner(OwnerId owner, const OwnerClaim& claim);
  void RemoveOwner(OwnerId owner);
  void Put(ClaimantId claimant, const Claim& claim);
  void Restore(ClaimantId claimant, const Claim& claim, int64_t held);
  // A claimant with a grant holds `more` beyond its budgets.
  void Acknowledge(ClaimantId claimant, int64_t more);
  // It holds no more than `held`.
  void Succeed(ClaimantId before, ClaimantId now, int64_t held);
  void Remove(ClaimantId claimant);
  void Obeyed(ClaimantId claimant, uint64_t serial, int64_t held);

  // Instances may share `last_serial`.
  std::vector<Ruling> Decide(int64_t deadline_ns, uint64_t* last_serial);
  std::vector<Ruling> ConfirmRestored(uint64_t* last_serial);
  std::vector<ClaimantId> TakeOverdue(int64_t now_ns);
  int64_t NextDeadline() const { return deadlines_.empty() ? kNever : deadlines_.begin()->first; }

  int64_t capacity() const { return capacity_; }
  int64_t FreeWithin(OwnerId owner) const;
  int64_t budgeted() const { return budgeted_; }
  // 0 for unknown claimants.
  int64_t GrantedTo(ClaimantId claimant) const;
  int64_t BudgetedTo(ClaimantId claimant) const;
  bool HasGrant(ClaimantId claimant) const;
  bool IsOverdue(ClaimantId claimant) const;
  size_t size() const { return entries_.size(); }

 private:
  struct SentBudget {
    uint64_t serial;
    int64_t amount;
  };
  struct Entry {
    Claim claim;
    int64_t granted = 0;
    std::vector<SentBudget> budgets;  // may still be held; the last is the grant
    int64_t deadline_ns = kNever;     // of an unconfirmed decrease
    bool overdue = false;
    bool kept = false;  // restored or returned, and not yet confirmed to the claimant
    int64_t share = 0;  // of the last full division

    bool has_grant() const { return !budgets.empty(); }
    int64_t budgeted() const;
    Claim Effective() const;
    bool IsSettled() const;
    bool HoldsShare(int64_t step) const;
    bool IsSmallRaise(int64_t target, int64_t step) const;
    bool HoldsLike(const Entry& other) const;
    bool IsStillShort(const Claim& before, int64_t most_weight) const;
  };
  struct Bounded {
    int64_t limit = 0;
    base::Wide needed = 0, granted = 0, budgeted = 0;
    bool IsTight() const { return needed > limit || budgeted > limit; }
  };
  class Round;
  // Updates the sums and sets below when an entry changes.
  class Change;
  static constexpr int64_t kNever = INT64_MAX;

  bool UnsettledRiseIsFree() const;
  bool UnsettledRiseFitsOwners() const;
  template <class Work>
  void ForEachBounded(OwnerId owner, const Work& work);
  template <class Work>
  void ForEachBounded(OwnerId owner, const Work& work) const;
  bool IsOf(OwnerId owner, OwnerId whose) const;
  int64_t MostWeightOf(const Claim& claim) const;
  void CountBounded();

  int64_t capacity_;
  int64_t step_;
  std::map<ClaimantId, Entry> entries_;
  int64_t budgeted_ = 0;
  base::Wide needed_ = 0;
  int64_t overdue_ = 0;
  OwnerClaims owners_;
  std::map<OwnerId, Bounded> bounded_;
  int64_t tight_ = 0;
  std::set<ClaimantId> unsettled_, kept_;
  std::set<ClaimantId> lacking_;  // have less than their share, or are budgeted more
  std::set<std::pair<int64_t, ClaimantId>> deadlines_;
  bool is_at_rest_ = false;    // nothing changed since a decision without rulings
  bool shares_known_ = false;  // a full division would change no share; nobody is overdue
};

}  // namespace spillway::agent
