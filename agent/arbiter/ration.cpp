#include "agent/arbiter/ration.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

// Of one claimant that confirms nothing; older ones are merged.
constexpr size_t kMostPromises = 8;

}  // namespace

int64_t Ration::Entry::promised() const {
  int64_t most = 0;
  for (const Promise& promise : promises) most = std::max(most, promise.amount);
  return most;
}

Claim Ration::Entry::Effective() const {
  Claim effective = claim;
  if (overdue) effective.limit = std::min(claim.limit, std::max(claim.guaranteed, claim.Floor()));
  return effective;
}

// One round of decisions. Targets first; then what can rise at once; then what has to be asked back for the rest.
class Ration::Round {
 public:
  Round(Ration* ration, int64_t deadline_ns, uint64_t* last_serial)
      : ration_(*ration), deadline_ns_(deadline_ns), last_serial_(last_serial) {
    // Who is late counts with what it may hold, and its budget stays as it is: nothing else about it is known.
    std::vector<Claim> claims;
    int64_t capacity = ration_.capacity_;
    for (auto& [id, entry] : ration_.entries_) {
      const Claim claim = entry.Effective();
      parties_.push_back({id, &entry, claim, std::min(entry.granted, LimitOf(claim))});
      if (entry.overdue) {
        capacity -= entry.promised();
      } else {
        claims.push_back(parties_.back().claim);
      }
    }
    const std::vector<int64_t> targets = FairShares(capacity, claims);
    auto target = targets.begin();
    for (Party& party : parties_) {
      if (!party.entry->overdue) party.target = *target++;
    }
    free_ = ration_.capacity_ - ration_.promised();
  }

  std::vector<Ruling> Run() {
    rulings_ = ration_.ConfirmKept(last_serial_);
    LowerToLimits();
    int64_t missing = Raise() - free_;
    for (const Party& party : parties_) {
      if (!party.entry->overdue) missing -= party.entry->promised() - party.entry->granted;
    }
    AskBack(missing);
    return std::move(rulings_);
  }

 private:
  struct Party {
    ClaimantId id;
    Entry* entry;
    Claim claim;
    int64_t target;
  };

  static int64_t LimitOf(const Claim& claim) { return std::max(claim.limit, claim.Floor()); }

  void LowerToLimits() {
    for (const Party& party : parties_) {
      const int64_t limit = LimitOf(party.claim);
      if (party.entry->granted > limit) Rule(party, limit, RulingReason::kChanged);
    }
  }

  // Below its guarantee before others, then by priority, then by arrival.
  std::vector<Party> Rising() const {
    std::vector<Party> rising;
    for (const Party& party : parties_) {
      if (party.target > party.entry->granted || !party.entry->has_grant()) rising.push_back(party);
    }
    std::stable_sort(rising.begin(), rising.end(), [](const Party& a, const Party& b) {
      const bool a_is_owed = IsOwed(a), b_is_owed = IsOwed(b);
      if (a_is_owed != b_is_owed) return a_is_owed;
      return a.claim.priority > b.claim.priority;
    });
    return rising;
  }
  static bool IsOwed(const Party& party) { return party.entry->granted < party.claim.Entitled(); }

  // Returns what is still missing to reach all targets.
  int64_t Raise() {
    int64_t missing = 0;
    for (const Party& party : Rising()) {
      const int64_t granted = party.entry->granted, promised = party.entry->promised();
      const int64_t possible = std::min(party.target, promised + std::max<int64_t>(free_, 0));
      if (IsWorthTelling(party, possible)) {
        Rule(party, possible, ReasonToRaise(party));
        free_ -= std::max<int64_t>(0, possible - promised);
        missing += party.target - possible;
      } else {
        missing += party.target - std::max(granted, std::min(party.target, promised));
      }
    }
    return missing;
  }
  bool IsWorthTelling(const Party& party, int64_t amount) const {
    if (!party.entry->has_grant()) return amount >= party.claim.Floor();
    return amount > party.entry->granted &&
           (amount == party.target || amount - party.entry->granted >= ration_.step_);
  }
  static RulingReason ReasonToRaise(const Party& party) {
    if (!party.entry->has_grant()) return RulingReason::kFirst;
    return IsOwed(party) ? RulingReason::kReturned : RulingReason::kLent;
  }

  // From lower priority first, from the idle first, from who has most too much first.
  void AskBack(int64_t missing) {
    if (missing <= 0) return;
    std::vector<Party> lenders;
    for (const Party& party : parties_) {
      if (party.entry->granted > party.target) lenders.push_back(party);
    }
    std::stable_sort(lenders.begin(), lenders.end(), [](const Party& a, const Party& b) {
      if (a.claim.priority != b.claim.priority) return a.claim.priority < b.claim.priority;
      if (a.claim.active != b.claim.active) return b.claim.active;
      return a.entry->granted - a.target > b.entry->granted - b.target;
    });
    for (const Party& party : lenders) {
      if (missing <= 0) return;
      const int64_t back = std::min(party.entry->granted - party.target, std::max(missing, ration_.step_));
      const int64_t left = party.entry->granted - back;
      const bool below_guarantee = party.claim.active && left < party.claim.Entitled();
      Rule(party, left, below_guarantee ? RulingReason::kPreempted : RulingReason::kRevoked);
      missing -= back;
    }
  }

  void Rule(const Party& party, int64_t amount, RulingReason reason) {
    Entry& entry = *party.entry;
    const bool decreases = amount < entry.promised();
    const uint64_t serial = ++*last_serial_;
    entry.granted = amount;
    entry.promises.push_back({serial, amount});
    if (entry.promises.size() > kMostPromises) {
      entry.promises[1].amount = std::max(entry.promises[0].amount, entry.promises[1].amount);
      entry.promises.erase(entry.promises.begin());
    }
    // Asked twice, the first deadline holds.
    entry.deadline_ns = decreases ? std::min(entry.deadline_ns, deadline_ns_) : kNever;
    rulings_.push_back({party.id, serial, amount, decreases ? entry.deadline_ns : deadline_ns_, reason});
  }

  Ration& ration_;
  const int64_t deadline_ns_;
  uint64_t* const last_serial_;
  std::vector<Party> parties_;
  std::vector<Ruling> rulings_;
  int64_t free_ = 0;
};

void Ration::Restore(ClaimantId claimant, const Claim& claim, int64_t held) {
  Entry& entry = entries_[claimant];
  entry = Entry{};
  entry.claim = claim;
  entry.granted = held;
  entry.promises = {{0, held}};
  entry.kept = true;
}

void Ration::Obeyed(ClaimantId claimant, uint64_t serial, int64_t held) {
  const auto found = entries_.find(claimant);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  std::vector<Promise>& promises = entry.promises;
  const int64_t most = entry.promised();
  const auto unknown = std::find_if(promises.begin(), promises.end(),
                                    [serial](const Promise& p) { return p.serial > serial; });
  if (unknown == promises.begin()) return;
  // Who still holds more than it was granted counts with that; nobody can make itself count with more than before.
  const Promise last_known = *(unknown - 1);
  promises.erase(promises.begin(), unknown - 1);
  if (held > last_known.amount) promises.insert(promises.begin(), {last_known.serial, std::min(held, most)});
  if (entry.promised() > entry.granted) return;
  entry.deadline_ns = kNever;
  entry.overdue = false;
}

std::vector<Ruling> Ration::Decide(int64_t deadline_ns, uint64_t* last_serial) {
  return Round(this, deadline_ns, last_serial).Run();
}

std::vector<Ruling> Ration::ConfirmKept(uint64_t* last_serial) {
  std::vector<Ruling> rulings;
  for (auto& [id, entry] : entries_) {
    if (!std::exchange(entry.kept, false)) continue;
    entry.promises.push_back({++*last_serial, entry.granted});
    rulings.push_back({id, *last_serial, entry.granted, 0, RulingReason::kKept});
  }
  return rulings;
}

std::vector<ClaimantId> Ration::TakeOverdue(int64_t now_ns) {
  std::vector<ClaimantId> overdue;
  for (auto& [id, entry] : entries_) {
    if (entry.deadline_ns > now_ns) continue;
    entry.deadline_ns = kNever;
    entry.overdue = true;
    overdue.push_back(id);
  }
  return overdue;
}

int64_t Ration::NextDeadline() const {
  int64_t next = kNever;
  for (const auto& [id, entry] : entries_) next = std::min(next, entry.deadline_ns);
  return next;
}

int64_t Ration::promised() const {
  int64_t sum = 0;
  for (const auto& [id, entry] : entries_) sum += entry.promised();
  return sum;
}

int64_t Ration::GrantedTo(ClaimantId claimant) const {
  const auto found = entries_.find(claimant);
  return found == entries_.end() ? 0 : found->second.granted;
}
int64_t Ration::PromisedTo(ClaimantId claimant) const {
  const auto found = entries_.find(claimant);
  return found == entries_.end() ? 0 : found->second.promised();
}
bool Ration::HasGrant(ClaimantId claimant) const {
  const auto found = entries_.find(claimant);
  return found != entries_.end() && found->second.has_grant();
}
bool Ration::IsOverdue(ClaimantId claimant) const {
  const auto found = entries_.find(claimant);
  return found != entries_.end() && found->second.overdue;
}

}  // namespace spillway::agent
