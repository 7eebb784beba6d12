// Divides one amount among claimants over time: what is promised to one is taken from another only
// after that one has let go.
//
// Called by the arbiter, and once more by itself for the processes of one job; one thread. Times
// are passed in.
//
// A claimant counts with the most that it may still hold: what was granted last, and what was
// granted before while it has not confirmed (Obeyed). Targets come from FairShares; what nobody
// needs stays where it is, so that little has to move.
//
// Not every change is told: see Note [Worth a grant].
//
// What a decision costs depends on who is unsettled, while there is enough for all: see Note
// [Settled]. Where nothing has changed since one that changed nothing, it costs nothing; nor where
// somebody wants more, or less, of what it gets only a part of: see Note [Still short]. While
// shares stay the same it depends on who does not have its share.
//
// Claims have owners, whose limits bound what is promised to all of theirs: see Note [Within an
// owner].
//
// Invariants
//  1. No ruling raises anybody while the sum of all promises would exceed the capacity, or an
//  owner's its limit. The sum exceeds it only when the
//     capacity itself shrank, or when a claimant came back with more than is left (Restore).
//  2. A claimant's first grant is at least its floor, or what it restores.
//  3. Nothing is asked back that nobody needs, except above a limit, a claim's or an owner's.
//  4. Who lets a deadline pass borrows nothing until it has obeyed, or its fair share is all that
//  it may hold.
//  5. Nobody who is late, whatever it came back with, takes of another what is guaranteed to it or
//  in use.
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

// From now on the claimant may hold so much, and has to be there by the deadline.
struct Ruling {
  ClaimantId claimant = 0;
  uint64_t serial = 0;
  int64_t amount = 0;
  int64_t deadline_ns = 0;
  RulingReason reason = RulingReason::kFirst;
};

class Ration {
 public:
  // `step`: a rise by less has to be worth a grant in another way.
  explicit Ration(int64_t capacity = 0, int64_t step = 1) : capacity_(capacity), step_(step) {}

  void SetCapacity(int64_t capacity) {
    is_at_rest_ = is_at_rest_ && capacity == capacity_;
    knows_shares_ = knows_shares_ && capacity == capacity_;
    capacity_ = capacity;
  }
  // Of claims that name it; known before them.
  void SetOwner(OwnerId owner, const OwnerClaim& claim);
  void RemoveOwner(OwnerId owner);
  // New, or changed.
  void Put(ClaimantId claimant, const Claim& claim);
  // Comes back with what an earlier ruling of somebody else had given it.
  void Restore(ClaimantId claimant, const Claim& claim, int64_t held);
  // One that has a grant holds so much beyond all that it was promised. What it was asked to give
  // back stays asked back.
  void Acknowledge(ClaimantId claimant, int64_t more);
  // `now` takes over all that `before` was: what was promised to it, and what it was asked to give
  // back. It holds no more than `held`.
  void Succeed(ClaimantId before, ClaimantId now, int64_t held);
  void Remove(ClaimantId claimant);
  // Holds no more than `held` since it knows the ruling `serial`.
  void Obeyed(ClaimantId claimant, uint64_t serial, int64_t held);

  // Serials count on from `last_serial`, which several rations may share.
  std::vector<Ruling> Decide(int64_t deadline_ns, uint64_t* last_serial);
  // Only tells those that came back what they have.
  std::vector<Ruling> ConfirmKept(uint64_t* last_serial);
  // Those whose deadline has passed since the last call.
  std::vector<ClaimantId> TakeOverdue(int64_t now_ns);
  // The next moment at which TakeOverdue has something; the largest value for never.
  int64_t NextDeadline() const { return deadlines_.empty() ? kNever : deadlines_.begin()->first; }

  int64_t capacity() const { return capacity_; }
  // What may still be promised to an owner's claims, by its limit and those above it.
  int64_t RoomWithin(OwnerId owner) const;
  int64_t promised() const { return promised_; }
  // 0 for strangers.
  int64_t GrantedTo(ClaimantId claimant) const;
  int64_t PromisedTo(ClaimantId claimant) const;
  bool HasGrant(ClaimantId claimant) const;
  bool IsOverdue(ClaimantId claimant) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Promise {
    uint64_t serial;
    int64_t amount;
  };
  struct Entry {
    Claim claim;
    int64_t granted = 0;
    std::vector<Promise>
        promises;  // what it may hold; the last is what was granted; empty: nothing was yet
    int64_t deadline_ns = kNever;  // of an unconfirmed decrease
    bool overdue = false;
    bool kept = false;  // restored, or come back, and not yet told so
    int64_t share = 0;  // as of the last decision that looked at everybody

    bool has_grant() const { return !promises.empty(); }
    int64_t promised() const;
    Claim Effective() const;
    bool IsSettled() const;
    bool HasItsShare(int64_t step) const;
    bool HasAlmost(int64_t target, int64_t step) const;
    bool HoldsLike(const Entry& other) const;
    bool IsStillShort(const Claim& before, int64_t most_weight) const;
  };
  // What the claims of an owner that has a limit come to.
  struct Bounded {
    int64_t limit = 0;
    base::Wide needed = 0, granted = 0, promised = 0;
    bool IsTight() const { return needed > limit || promised > limit; }
  };
  class Round;
  // Keeps the sums and sets below true while an entry changes.
  class Change;
  static constexpr int64_t kNever = INT64_MAX;

  bool OnlyTheUnsettledMatter() const;
  bool OwnersHaveRoom() const;
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
  // Of all entries.
  int64_t promised_ = 0;
  base::Wide needed_ = 0;
  int64_t overdue_ = 0;
  OwnerClaims owners_;
  std::map<OwnerId, Bounded> bounded_;
  int64_t tight_ = 0;  // of these
  std::set<ClaimantId> unsettled_, kept_;
  std::set<ClaimantId> lacking_;  // their shares, or more than those is promised to them
  std::set<std::pair<int64_t, ClaimantId>> deadlines_;
  bool is_at_rest_ = false;    // since the last decision, which changed nothing
  bool knows_shares_ = false;  // shared out anew, everybody's would be the same; nobody is late
};

}  // namespace spillway::agent
