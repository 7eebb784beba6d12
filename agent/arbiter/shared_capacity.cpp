#include "agent/arbiter/shared_capacity.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

// Of a claimant that confirms nothing. Older budgets are merged.
constexpr size_t kMostBudgets = 8;
constexpr int64_t kLeastRise = 32, kLeastPart = 4;

}  // namespace

int64_t SharedCapacity::Entry::budgeted() const {
  int64_t most = 0;
  for (const SentBudget& budget : budgets) most = std::max(most, budget.amount);
  return most;
}

Claim SharedCapacity::Entry::Effective() const {
  Claim effective = claim;
  if (overdue) effective.limit = std::min(claim.limit, std::max(claim.guaranteed, claim.InUse()));
  return effective;
}

// Note [Settled]
// A settled claimant has what it needs within its limit and awaits no message. While the capacity
// meets all needs, shares equal needs, so it is left alone. All claimants take part only if the
// unsettled ones' rise is not free now: then others may have to give back.
bool SharedCapacity::Entry::IsSettled() const {
  const Claim effective = Effective();
  return has_grant() && !overdue && !kept && granted >= effective.Need() &&
         granted <= std::max(effective.limit, effective.Floor());
}

// Note [Worth a grant]
// Among a thousand short jobs, one that sleeps or wakes changes every share by a thousandth. So a
// claimant with its guarantee, but not all it wants, gets no small raise: one below the step, and
// below one part in kLeastRise of its grant. That memory waits for a better use. A larger raise
// comes in parts of at least one in kLeastPart of the rest. A raise to the full need is announced
// at once, as is every cut: others wait for it.
bool SharedCapacity::Entry::IsSmallRaise(int64_t target, int64_t step) const {
  const int64_t rise = target - granted;
  return has_grant() && rise > 0 && rise < std::min(step, granted / kLeastRise) &&
         target < claim.Need() && granted >= claim.Entitled();
}

// While shares are known, such a claimant takes no part in a decision.
bool SharedCapacity::Entry::HoldsShare(int64_t step) const {
  return has_grant() && !kept && budgeted() == granted &&
         (granted == share || IsSmallRaise(share, step));
}

bool SharedCapacity::Entry::HoldsLike(const Entry& other) const {
  return granted == other.granted && budgeted() == other.budgeted() &&
         has_grant() == other.has_grant() && kept == other.kept;
}

// Note [Still short]
// The share of a short claimant (share below need) follows from the common level, or from what it
// may keep. Demand beyond the share enters no sum and so changes no share. The margin of two units
// per weight covers rounding, which goes one unit above the level. An owner is short by at least as
// much as each of its claims, so the same holds for the level among owners.
bool SharedCapacity::Entry::IsStillShort(const Claim& before, int64_t most_weight) const {
  Claim like = before;
  like.wanted = claim.wanted;
  const auto is_short = [&](const Claim& one) { return one.Need() - share > 2 * most_weight; };
  return claim == like && is_short(claim) && is_short(before);
}

class SharedCapacity::Change {
 public:
  Change(SharedCapacity* capacity, ClaimantId claimant)
      : shared_(*capacity),
        claimant_(claimant),
        is_new_(shared_.entries_.count(claimant) == 0),
        entry_(shared_.entries_[claimant]),
        before_(entry_) {
    Count(-1);
    if (entry_.deadline_ns != kNever) shared_.deadlines_.erase({entry_.deadline_ns, claimant_});
  }
  ~Change() {
    const bool keeps_shares = KeepsShares();
    shared_.shares_known_ = shared_.shares_known_ && keeps_shares;
    shared_.is_at_rest_ = shared_.is_at_rest_ && keeps_shares && entry_.HoldsLike(before_);
    List(&shared_.unsettled_, !is_end_ && !entry_.IsSettled());
    List(&shared_.kept_, !is_end_ && entry_.kept);
    List(&shared_.lacking_, !is_end_ && !entry_.HoldsShare(shared_.step_));
    if (is_end_) {
      shared_.entries_.erase(claimant_);
      return;
    }
    Count(1);
    if (entry_.deadline_ns != kNever) shared_.deadlines_.insert({entry_.deadline_ns, claimant_});
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

  Entry& entry() { return entry_; }
  void End() { is_end_ = true; }

 private:
  bool KeepsShares() const {
    if (is_new_ || is_end_ || entry_.overdue != before_.overdue) return false;
    return entry_.claim == before_.claim ||
           (shared_.shares_known_ &&
            entry_.IsStillShort(before_.claim, shared_.MostWeightOf(entry_.claim)));
  }
  void List(std::set<ClaimantId>* list, bool belongs) const {
    if (belongs)
      list->insert(claimant_);
    else
      list->erase(claimant_);
  }
  void Count(int sign) {
    shared_.budgeted_ += sign * entry_.budgeted();
    shared_.needed_ += sign * entry_.Effective().Need();
    shared_.overdue_ += sign * static_cast<int64_t>(entry_.overdue);
    if (shared_.bounded_.empty()) return;
    shared_.ForEachBounded(entry_.claim.owner, [&](OwnerId, Bounded& bounded) {
      shared_.tight_ -= static_cast<int64_t>(bounded.IsTight());
      bounded.budgeted += sign * entry_.budgeted();
      bounded.granted += sign * entry_.granted;
      bounded.needed += sign * entry_.Effective().Need();
      shared_.tight_ += static_cast<int64_t>(bounded.IsTight());
    });
  }

  SharedCapacity& shared_;
  const ClaimantId claimant_;
  const bool is_new_;
  Entry& entry_;
  const Entry before_;
  bool is_end_ = false;
};

// Note [Within an owner]
// An owner is tight when its claims need more than its limit. Then a share may be below the need
// although the capacity meets all needs, and all claimants take part. A claim rises only within its
// owners' limits. The missing part is revoked from the same owner's other claims.
template <class Work>
void SharedCapacity::ForEachBounded(OwnerId owner, const Work& work) {
  while (owner != kNobody) {
    if (const auto found = bounded_.find(owner); found != bounded_.end())
      work(owner, found->second);
    const auto known = owners_.find(owner);
    owner = known == owners_.end() ? kNobody : known->second.above;
  }
}
template <class Work>
void SharedCapacity::ForEachBounded(OwnerId owner, const Work& work) const {
  const_cast<SharedCapacity*>(this)->ForEachBounded(
      owner, [&](OwnerId id, const Bounded& one) { work(id, one); });
}

bool SharedCapacity::IsOf(OwnerId owner, OwnerId whose) const {
  while (owner != kNobody && owner != whose) {
    const auto known = owners_.find(owner);
    owner = known == owners_.end() ? kNobody : known->second.above;
  }
  return owner == whose;
}

int64_t SharedCapacity::FreeWithin(OwnerId owner) const {
  base::Wide free = INT64_MAX / 2;
  if (bounded_.empty()) return INT64_MAX / 2;
  ForEachBounded(owner, [&free](OwnerId, const Bounded& bounded) {
    free = std::min<base::Wide>(free, bounded.limit - bounded.budgeted);
  });
  return static_cast<int64_t>(std::max<base::Wide>(free, 0));
}

int64_t SharedCapacity::MostWeightOf(const Claim& claim) const {
  int64_t most = claim.weight;
  for (auto known = owners_.find(claim.owner); known != owners_.end();
       known = owners_.find(known->second.above))
    most = std::max<int64_t>(most, known->second.weight);
  return most;
}

void SharedCapacity::SetOwner(OwnerId owner, const OwnerClaim& claim) {
  const auto [place, is_new] = owners_.try_emplace(owner, claim);
  if (!is_new && place->second == claim) return;
  place->second = claim;
  is_at_rest_ = shares_known_ = false;
  CountBounded();
}

void SharedCapacity::RemoveOwner(OwnerId owner) {
  if (owners_.erase(owner) == 0) return;
  is_at_rest_ = shares_known_ = false;
  CountBounded();
}

void SharedCapacity::CountBounded() {
  const bool had_none = bounded_.empty();
  bounded_.clear();
  tight_ = 0;
  for (const auto& [id, claim] : owners_) {
    if (claim.limit != OwnerClaim().limit) bounded_[id].limit = claim.limit;
  }
  if (had_none && bounded_.empty()) return;
  for (const auto& [id, entry] : entries_) {
    ForEachBounded(entry.claim.owner, [&entry = entry](OwnerId, Bounded& bounded) {
      bounded.budgeted += entry.budgeted();
      bounded.granted += entry.granted;
      bounded.needed += entry.Effective().Need();
    });
  }
  for (const auto& [id, bounded] : bounded_) tight_ += static_cast<int64_t>(bounded.IsTight());
}

void SharedCapacity::Put(ClaimantId claimant, const Claim& claim) {
  const auto found = entries_.find(claimant);
  if (found != entries_.end() && found->second.claim == claim) return;
  Change(this, claimant).entry().claim = claim;
}

void SharedCapacity::Remove(ClaimantId claimant) {
  if (entries_.count(claimant) != 0) Change(this, claimant).End();
}

bool SharedCapacity::UnsettledRiseIsFree() const {
  if (overdue_ > 0 || needed_ > capacity_ || tight_ > 0) return false;
  base::Wide rise = 0;
  for (ClaimantId id : unsettled_) {
    const Entry& entry = entries_.at(id);
    rise += std::max<int64_t>(0, entry.claim.Need() - entry.budgeted());
  }
  return rise <= capacity_ - budgeted_ && (bounded_.empty() || UnsettledRiseFitsOwners());
}

bool SharedCapacity::UnsettledRiseFitsOwners() const {
  std::map<OwnerId, base::Wide> rises;
  for (ClaimantId id : unsettled_) {
    const Entry& entry = entries_.at(id);
    const int64_t rise = std::max<int64_t>(0, entry.claim.Need() - entry.budgeted());
    ForEachBounded(entry.claim.owner, [&](OwnerId owner, const Bounded&) { rises[owner] += rise; });
  }
  return std::all_of(rises.begin(), rises.end(), [this](const auto& one) {
    const Bounded& bounded = bounded_.at(one.first);
    return one.second <= bounded.limit - bounded.budgeted;
  });
}

// One decision: targets, then raises that are possible at once, then revocations for the rest.
class SharedCapacity::Round {
 public:
  Round(SharedCapacity* capacity, int64_t deadline_ns, uint64_t* last_serial)
      : shared_(*capacity), deadline_ns_(deadline_ns), last_serial_(last_serial) {
    if (shared_.UnsettledRiseIsFree())
      AddUnsettled();
    else if (shared_.shares_known_)
      AddLacking();
    else
      TakeAll();
    free_ = shared_.capacity_ - shared_.budgeted();
  }

  std::vector<Ruling> Run() {
    rulings_ = shared_.ConfirmRestored(last_serial_);
    Forgive();
    CutToLimits();
    int64_t missing = Raise() - free_;
    for (const Party& party : parties_) {
      if (!party.entry->overdue) missing -= party.entry->budgeted() - party.entry->granted;
    }
    Revoke(missing, kNobody);
    RevokeWithinOwners();
    shared_.is_at_rest_ = rulings_.empty();
    return std::move(rulings_);
  }

 private:
  struct Party {
    ClaimantId id;
    Entry* entry;
    Claim claim;
    int64_t target;
    bool stays_late = false;

    void StayLate() {
      stays_late = true;
      claim = entry->Effective();
      target = std::min(entry->granted, LimitOf(claim));
    }
  };

  static int64_t LimitOf(const Claim& claim) { return std::max(claim.limit, claim.Floor()); }

  void AddUnsettled() {
    for (ClaimantId id : shared_.unsettled_) {
      Entry& entry = shared_.entries_.at(id);
      parties_.push_back({id, &entry, entry.claim, entry.claim.Need()});
    }
  }

  void AddLacking() {
    for (ClaimantId id : shared_.lacking_) {
      Entry& entry = shared_.entries_.at(id);
      parties_.push_back({id, &entry, entry.claim, entry.share});
    }
  }

  // Note [Forgiving]
  // An overdue claimant counts with what it may hold: nothing else about it is known. It is
  // forgiven when its fair share covers that: nobody needs the revoked part any more. Claims that
  // stay overdue reduce the others' shares, so one may keep another overdue. Hence the rounds; a
  // forgiven claimant leaves the question, so the next round finds the same.
  void TakeAll() {
    constexpr int most_rounds = 8;
    parties_.reserve(shared_.entries_.size());
    for (auto& [id, entry] : shared_.entries_) parties_.push_back({id, &entry, entry.claim, 0});
    for (int round = 1; ShareOut(); ++round) {
      if (round < most_rounds) continue;
      for (Party& party : parties_) {
        if (party.entry->overdue) party.StayLate();
      }
    }
    if (shared_.overdue_ == 0) StoreShares();
  }

  void StoreShares() {
    shared_.shares_known_ = true;
    shared_.lacking_.clear();
    for (const Party& party : parties_) {
      party.entry->share = party.target;
      if (!party.entry->HoldsShare(shared_.step_))
        shared_.lacking_.insert(shared_.lacking_.end(), party.id);
    }
  }

  // An overdue claimant that returned with too much takes nobody's guarantee or memory in use.
  static int64_t Untouchable(const Party& party) {
    return std::min(party.entry->granted, std::max(party.claim.Protected(), party.claim.InUse()));
  }

  // Returns whether another claimant stays overdue: then the others' shares change.
  bool ShareOut() {
    std::vector<Claim> claims;
    int64_t left = shared_.capacity_;
    base::Wide untouchable = 0;
    for (const Party& party : parties_) {
      if (party.stays_late) {
        left -= party.entry->budgeted();
      } else {
        claims.push_back(party.claim);
        untouchable += Untouchable(party);
      }
    }
    const auto capacity =
        std::max<base::Wide>(left, std::min<base::Wide>(untouchable, shared_.capacity_));
    const std::vector<int64_t> shares =
        FairShares(static_cast<int64_t>(capacity), claims, shared_.owners_);
    auto share = shares.begin();
    bool found = false;
    for (Party& party : parties_) {
      if (party.stays_late) continue;
      party.target = *share++;
      if (!party.entry->overdue || party.target >= party.entry->budgeted()) continue;
      party.StayLate();
      found = true;
    }
    return found;
  }

  void Forgive() {
    for (const Party& party : parties_) {
      if (party.entry->overdue && !party.stays_late)
        Rule(party, party.entry->budgeted(), ReasonToRaise(party));
    }
  }

  void CutToLimits() {
    for (const Party& party : parties_) {
      const int64_t limit = LimitOf(party.claim);
      if (party.entry->granted > limit) Rule(party, limit, RulingReason::kChanged);
    }
  }

  std::vector<Party> Rising() const {
    std::vector<Party> rising;
    for (const Party& party : parties_) {
      const Entry& entry = *party.entry;
      const bool rises =
          party.target > entry.granted && !entry.IsSmallRaise(party.target, shared_.step_);
      if (rises || !entry.has_grant()) rising.push_back(party);
    }
    std::stable_sort(rising.begin(), rising.end(), [](const Party& a, const Party& b) {
      const bool a_is_owed = IsOwed(a), b_is_owed = IsOwed(b);
      if (a_is_owed != b_is_owed) return a_is_owed;
      return a.claim.priority > b.claim.priority;
    });
    return rising;
  }
  static bool IsOwed(const Party& party) { return party.entry->granted < party.claim.Entitled(); }

  int64_t Raise() {
    int64_t missing = 0;
    for (const Party& party : Rising()) {
      const int64_t granted = party.entry->granted, budgeted = party.entry->budgeted();
      const int64_t allowed =
          std::min(party.target, std::max(granted, budgeted + OwnersFree(party)));
      const int64_t possible = std::min(allowed, budgeted + std::max<int64_t>(free_, 0));
      const bool is_told = IsWorthSending(party, possible);
      NoteMissing(party, party.target - (is_told ? possible : granted));
      if (is_told) {
        Rule(party, possible, ReasonToRaise(party));
        free_ -= std::max<int64_t>(0, possible - budgeted);
        missing += allowed - possible;
      } else {
        missing += allowed - std::max(granted, std::min(allowed, budgeted));
      }
    }
    return missing;
  }
  int64_t OwnersFree(const Party& party) const { return shared_.FreeWithin(party.claim.owner); }
  void NoteMissing(const Party& party, int64_t bytes) {
    if (bytes <= 0 || shared_.bounded_.empty()) return;
    shared_.ForEachBounded(party.claim.owner,
                           [&](OwnerId owner, const Bounded&) { missing_[owner] += bytes; });
  }
  void RevokeWithinOwners() {
    if (shared_.tight_ == 0 && missing_.empty()) return;
    for (const auto& [owner, bounded] : shared_.bounded_) {
      const auto missing = missing_.find(owner);
      const base::Wide over =
          bounded.granted + (missing == missing_.end() ? 0 : missing->second) - bounded.limit;
      if (over > 0) Revoke(static_cast<int64_t>(over), owner);
    }
  }
  bool IsWorthSending(const Party& party, int64_t amount) const {
    if (!party.entry->has_grant()) return amount >= party.claim.Floor();
    const int64_t rise = amount - party.entry->granted, whole = party.target - party.entry->granted;
    const int64_t least =
        IsOwed(party) ? shared_.step_ : std::max(shared_.step_, whole / kLeastPart);
    return rise > 0 && (rise == whole || rise >= least);
  }
  static RulingReason ReasonToRaise(const Party& party) {
    if (!party.entry->has_grant()) return RulingReason::kFirst;
    return IsOwed(party) ? RulingReason::kReturned : RulingReason::kLent;
  }

  void Revoke(int64_t missing, OwnerId owner) {
    if (missing <= 0) return;
    std::vector<Party> lenders;
    for (const Party& party : parties_) {
      const bool is_asked = owner == kNobody || shared_.IsOf(party.claim.owner, owner);
      if (is_asked && party.entry->granted > party.target) lenders.push_back(party);
    }
    std::stable_sort(lenders.begin(), lenders.end(), [](const Party& a, const Party& b) {
      if (a.claim.priority != b.claim.priority) return a.claim.priority < b.claim.priority;
      if (a.claim.active != b.claim.active) return b.claim.active;
      return a.entry->granted - a.target > b.entry->granted - b.target;
    });
    for (const Party& party : lenders) {
      if (missing <= 0) return;
      const int64_t back =
          std::min(party.entry->granted - party.target, std::max(missing, shared_.step_));
      const int64_t left = party.entry->granted - back;
      const bool below_guarantee = party.claim.active && left < party.claim.Entitled();
      Rule(party, left, below_guarantee ? RulingReason::kPreempted : RulingReason::kRevoked);
      missing -= back;
    }
  }

  void Rule(const Party& party, int64_t amount, RulingReason reason) {
    Change change(&shared_, party.id);
    Entry& entry = change.entry();
    const bool decreases = amount < entry.budgeted();
    const uint64_t serial = ++*last_serial_;
    entry.granted = amount;
    entry.budgets.push_back({serial, amount});
    if (entry.budgets.size() > kMostBudgets) {
      entry.budgets[1].amount = std::max(entry.budgets[0].amount, entry.budgets[1].amount);
      entry.budgets.erase(entry.budgets.begin());
    }
    entry.deadline_ns = decreases ? std::min(entry.deadline_ns, deadline_ns_) : kNever;
    entry.overdue = entry.overdue && decreases;
    rulings_.push_back(
        {party.id, serial, amount, decreases ? entry.deadline_ns : deadline_ns_, reason});
  }

  SharedCapacity& shared_;
  const int64_t deadline_ns_;
  uint64_t* const last_serial_;
  std::vector<Party> parties_;
  std::vector<Ruling> rulings_;
  int64_t free_ = 0;
  std::map<OwnerId, base::Wide> missing_;  // within owners that have limits
};

void SharedCapacity::Restore(ClaimantId claimant, const Claim& claim, int64_t held) {
  Change change(this, claimant);
  Entry& entry = change.entry();
  // The share follows from the claim, not from what is held.
  entry = Entry{
      .claim = claim, .granted = held, .budgets = {{0, held}}, .kept = true, .share = entry.share};
}

void SharedCapacity::Acknowledge(ClaimantId claimant, int64_t more) {
  Change change(this, claimant);
  Entry& entry = change.entry();
  entry.granted += more;
  for (SentBudget& budget : entry.budgets) budget.amount += more;
  entry.kept = true;
}

void SharedCapacity::Succeed(ClaimantId before, ClaimantId now, int64_t held) {
  const auto found = entries_.find(before);
  if (found == entries_.end()) return;
  const Entry taken = found->second;
  Remove(before);
  Change change(this, now);
  Entry& entry = change.entry();
  entry = taken;
  if (!entry.has_grant()) return;
  const int64_t holds = std::min(held, taken.budgeted());
  entry.granted = std::min(taken.granted, holds);
  entry.budgets = {{0, holds}};
  entry.kept = true;
  if (holds > entry.granted) return;
  entry.deadline_ns = kNever;
  entry.overdue = false;
}

void SharedCapacity::Obeyed(ClaimantId claimant, uint64_t serial, int64_t held) {
  const auto found = entries_.find(claimant);
  if (found == entries_.end() || found->second.budgets.empty() ||
      found->second.budgets.front().serial > serial)
    return;
  Change change(this, claimant);
  Entry& entry = change.entry();
  std::vector<SentBudget>& budgets = entry.budgets;
  const int64_t most = entry.budgeted();
  const auto unknown = std::find_if(budgets.begin(), budgets.end(),
                                    [serial](const SentBudget& p) { return p.serial > serial; });
  // A claimant that holds more than its grant counts with that, but never with more than before.
  const SentBudget last_known = *(unknown - 1);
  budgets.erase(budgets.begin(), unknown - 1);
  if (held > last_known.amount)
    budgets.insert(budgets.begin(), {last_known.serial, std::min(held, most)});
  if (entry.budgeted() > entry.granted) return;
  entry.deadline_ns = kNever;
  entry.overdue = false;
}

std::vector<Ruling> SharedCapacity::Decide(int64_t deadline_ns, uint64_t* last_serial) {
  if (is_at_rest_) return {};
  return Round(this, deadline_ns, last_serial).Run();
}

std::vector<Ruling> SharedCapacity::ConfirmRestored(uint64_t* last_serial) {
  std::vector<Ruling> rulings;
  for (ClaimantId id : std::set<ClaimantId>(kept_)) {
    Change change(this, id);
    Entry& entry = change.entry();
    entry.kept = false;
    entry.budgets.push_back({++*last_serial, entry.granted});
    const int64_t deadline_ns = entry.budgeted() > entry.granted ? entry.deadline_ns : 0;
    rulings.push_back({id, *last_serial, entry.granted, deadline_ns, RulingReason::kKept});
  }
  return rulings;
}

std::vector<ClaimantId> SharedCapacity::TakeOverdue(int64_t now_ns) {
  std::vector<ClaimantId> overdue;
  while (NextDeadline() <= now_ns) {
    overdue.push_back(deadlines_.begin()->second);
    Change change(this, overdue.back());
    change.entry().deadline_ns = kNever;
    change.entry().overdue = true;
  }
  std::sort(overdue.begin(), overdue.end());
  return overdue;
}

int64_t SharedCapacity::GrantedTo(ClaimantId claimant) const {
  const auto found = entries_.find(claimant);
  return found == entries_.end() ? 0 : found->second.granted;
}
int64_t SharedCapacity::BudgetedTo(ClaimantId claimant) const {
  const auto found = entries_.find(claimant);
  return found == entries_.end() ? 0 : found->second.budgeted();
}
bool SharedCapacity::HasGrant(ClaimantId claimant) const {
  const auto found = entries_.find(claimant);
  return found != entries_.end() && found->second.has_grant();
}
bool SharedCapacity::IsOverdue(ClaimantId claimant) const {
  const auto found = entries_.find(claimant);
  return found != entries_.end() && found->second.overdue;
}

}  // namespace spillway::agent
