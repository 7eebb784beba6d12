#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "agent/arbiter/amounts.h"
#include "agent/arbiter/arbiter.h"

namespace spillway::agent {
namespace {

// A link share that moved by less than a tenth is not worth a message.
bool IsWorthSending(int32_t told, int32_t now) {
  return told < 0 || std::abs(now - told) * 10 > told;
}

}  // namespace

class Arbiter::Deciding {
 public:
  Deciding(Arbiter* arbiter, int64_t now_ns) : a_(*arbiter), now_ns_(now_ns) {}

  int64_t next_wake_ns() const { return next_wake_ns_; }

  Decisions Run() {
    if (now_ns_ >= a_.next_wake_ns_) NoteOverdue();
    if (a_.frozen_) {
      AddRestored();
    } else {
      if (a_.queue_dirty_ || (now_ns_ >= a_.next_wake_ns_ && SomebodysPatienceEnded())) Admit();
      DivideAll();
    }
    AddGrants();
    return std::move(decisions_);
  }

 private:
  int64_t deadline_ns() const { return now_ns_ + a_.rules_.return_within_ns; }
  int64_t DeadlineOn(const Device& device) const {
    return now_ns_ + std::max(a_.rules_.return_within_ns, device.return_within_ns);
  }
  int64_t DeadlineOn(DeviceId device) const { return DeadlineOn(a_.devices_.at(device)); }

  void NoteOverdue() {
    bool any = !a_.host_.TakeOverdue(now_ns_).empty();
    for (auto& [id, device] : a_.devices_) any |= !device.memory.TakeOverdue(now_ns_).empty();
    for (auto& [key, tenancy] : a_.tenancies_) {
      any |= !tenancy.host.TakeOverdue(now_ns_).empty();
      for (ClaimantId session : tenancy.memory.TakeOverdue(now_ns_))
        decisions_.overdue.push_back({tenancy.job, SessionId{session}, tenancy.device});
    }
    if (!any && decisions_.overdue.empty()) return;
    a_.TouchAll();
  }

  void AddRestored() {
    for (auto& [key, tenancy] : a_.tenancies_) {
      Note(tenancy, tenancy.memory.ConfirmRestored(&a_.last_serial_), true);
      Note(tenancy, tenancy.host.ConfirmRestored(&a_.last_serial_), false);
      if (tenancy.state == TenancyState::kAdmitted) AddAdmission(tenancy, "");
      // A job that hears nothing would begin without the agent.
      if (tenancy.state == TenancyState::kQueued)
        Queue(tenancy, std::max(tenancy.position, uint32_t{1}), WaitsFor::kMemory);
    }
  }

  bool SomebodysPatienceEnded() const {
    return std::any_of(a_.tenancies_.begin(), a_.tenancies_.end(), [this](const auto& entry) {
      const Tenancy& tenancy = entry.second;
      const int64_t end_ns = tenancy.arrived_ns + a_.rules_.patience_ns;
      return tenancy.state == TenancyState::kQueued && end_ns > a_.last_decided_ns_ &&
             end_ns <= now_ns_;
    });
  }

  void Admit() {
    a_.queue_dirty_ = false;
    for (auto& [id, device] : a_.devices_) AdmitOn(id, device);
  }

  void AdmitOn(DeviceId id, Device& device) {
    std::vector<Applicant> applicants;
    for (auto& [key, tenancy] : a_.tenancies_) {
      if (tenancy.device != id) continue;
      if (tenancy.state == TenancyState::kAdmitted) {
        AddAdmission(tenancy, "");
        continue;
      }
      const base::Status admissible = CheckAdmissible(tenancy.terms, device.memory.capacity());
      const auto judged = admissible.ok() ? TenancyState::kQueued : TenancyState::kRejected;
      if (std::exchange(tenancy.state, judged) != judged) tenancy.state_sent = false;
      if (!admissible.ok()) {
        AddAdmission(tenancy, admissible.text());
        continue;
      }
      applicants.push_back(
          {tenancy.number, tenancy.arrived_ns, tenancy.terms, IsAdmittedElsewhere(tenancy)});
    }
    if (applicants.empty()) return;
    const std::vector<Terms> on_device = a_.TermsOf(&id, nullptr),
                             on_node = a_.TermsOf(nullptr, nullptr);
    AdmissionSituation situation = {
        device.memory.capacity(), a_.host_.capacity(), on_device, on_node,
        a_.rules_.patience_ns,    a_.draining_};
    if (!a_.owners_.empty()) DescribeOwners(id, applicants, &situation);
    const AdmissionPlan plan = PlanAdmissions(situation, applicants, now_ns_);
    for (const Admitted& admitted : plan.admitted) Begin(Numbered(admitted.number), admitted.terms);
    for (size_t i = 0; i < plan.queue.size(); ++i)
      Queue(Numbered(plan.queue[i].number), static_cast<uint32_t>(i + 1), plan.queue[i].what);
    device.dirty = true;
  }
  Tenancy& Numbered(uint64_t number) { return a_.tenancies_.at(a_.by_number_.at(number)); }

  void DescribeOwners(DeviceId id, const std::vector<Applicant>& applicants,
                      AdmissionSituation* out) const {
    out->owners = &a_.owners_;
    std::optional<JobId> counted;  // a job's tenancies are adjacent
    std::set<OwnerId> on_device;
    for (const auto& [key, tenancy] : a_.tenancies_) {
      if (!a_.Runs(tenancy)) continue;
      const OwnerPath path(a_.owners_, tenancy.granted_terms.owner);
      if (tenancy.device == id && !path.empty()) on_device.insert(path.back());
      if (counted == tenancy.job) continue;
      counted = tenancy.job;
      for (const OwnerId owner : path) ++out->jobs[owner];
    }
    for (const Applicant& applicant : applicants) {
      const OwnerPath path(a_.owners_, applicant.terms.owner);
      if (path.empty() || out->fair_parts.count(path.back()) != 0) continue;
      if (on_device.size() > on_device.count(path.back()))
        out->fair_parts[path.back()] = a_.FairPartOf(path.back(), id);
    }
  }

  bool IsAdmittedElsewhere(const Tenancy& tenancy) const {
    const auto first = a_.tenancies_.lower_bound({tenancy.job, DeviceId{0}});
    for (auto it = first; it != a_.tenancies_.end() && it->first.first == tenancy.job; ++it) {
      if (a_.Runs(it->second)) return true;
    }
    return false;
  }

  void Begin(Tenancy& tenancy, const Terms& terms) {
    tenancy.state = TenancyState::kAdmitted;
    tenancy.granted_terms = terms;
    // A job that woke without waiting knows its state already.
    tenancy.state_sent = tenancy.has_begun && std::exchange(tenancy.position, 0) == 0;
    tenancy.position = 0;
    tenancy.has_begun = true;
    a_.RestoreReportedHoldings(tenancy);
    a_.TouchWithLink(tenancy);
    AddAdmission(tenancy, "");
  }

  std::string ReasonForWaiting(const Tenancy& tenancy, WaitsFor what) const {
    if (a_.frozen_) return "the agent has just begun: jobs that ran before it come first";
    if (a_.draining_) return "the node is being drained";
    if (what == WaitsFor::kOwnersJobs)
      return "its user, or account, has as many jobs here as it may";
    if (what == WaitsFor::kOwnersLimit)
      return "its user's, or account's, jobs here have all that they may together";
    if (what == WaitsFor::kOwnersPart)
      return "jobs of its user, or account, have as much of the device as is its part";
    const std::vector<Terms> on_device = a_.TermsOf(&tenancy.device, nullptr);
    const int64_t device_bytes = a_.MemoryOf(tenancy.device);
    const int64_t free_bytes =
        FreeFor(tenancy.terms.priority, device_bytes, on_device, &Terms::memory) -
        ReservedForOthers(a_.owners_, device_bytes, tenancy.terms.owner, on_device);
    const Share& memory = tenancy.terms.memory;
    const bool by_floor = memory.floor >= memory.guaranteed;
    return std::string(by_floor ? "its floor is " : "its guarantee is ") +
           InBytes(std::max(memory.guaranteed, memory.floor)) + ", " +
           InBytes(std::max<int64_t>(free_bytes, 0)) + " are not budgeted to others";
  }

  void Queue(Tenancy& tenancy, uint32_t position, WaitsFor what) {
    if (tenancy.position == position && tenancy.state_sent) return;
    tenancy.position = position;
    tenancy.state_sent = false;
    AddAdmission(tenancy, ReasonForWaiting(tenancy, what));
  }

  void AddAdmission(Tenancy& tenancy, std::string reason) {
    if (tenancy.state_sent) return;
    tenancy.state_sent = true;
    decisions_.admissions.push_back({tenancy.job, tenancy.device, tenancy.state, tenancy.position,
                                     now_ns_ - tenancy.arrived_ns, std::move(reason)});
  }

  // Memory that one tenancy releases can go to another at once. Converges: every round moves some.
  void DivideAll() {
    constexpr int most_rounds = 8;
    for (int round = 0; round < most_rounds && DivideOnce(); ++round) {
    }
  }

  bool DivideOnce() {
    bool any_dirty = false, any_ruling = false;
    for (auto& [id, device] : a_.devices_) any_dirty |= device.dirty;
    if (!any_dirty) return false;
    ForEachDirty([this](Tenancy& tenancy) { a_.PutClaims(tenancy); });
    for (auto& [id, device] : a_.devices_) {
      if (device.dirty) any_ruling |= Apply(device.memory, &Tenancy::memory, DeadlineOn(device));
      if (std::exchange(device.link_dirty, false)) DivideLink(id);
    }
    any_ruling |= Apply(a_.host_, &Tenancy::host, deadline_ns());
    std::set<Key> still_dirty;
    ForEachDirty([&](Tenancy& tenancy) {
      // Its next claims include what its processes have now.
      if (DivideAmongProcesses(tenancy)) still_dirty.insert({tenancy.job, tenancy.device});
      next_wake_ns_ = std::min(next_wake_ns_, a_.WakeOf(tenancy));
    });
    a_.dirty_ = std::move(still_dirty);
    any_ruling |= !a_.dirty_.empty();
    for (auto& [id, device] : a_.devices_) device.dirty = any_ruling && device.dirty;
    return any_ruling;
  }

  template <class Work>
  void ForEachDirty(const Work& work) {
    for (const Key& key : a_.dirty_) {
      Tenancy& tenancy = a_.tenancies_.at(key);
      if (tenancy.state == TenancyState::kAdmitted) work(tenancy);
    }
  }

  bool Apply(SharedCapacity& capacity, SharedCapacity Tenancy::*part, int64_t until_ns) {
    const std::vector<Ruling> rulings = capacity.Decide(until_ns, &a_.last_serial_);
    for (const Ruling& ruling : rulings) {
      Tenancy& tenancy = Numbered(ruling.claimant);
      (tenancy.*part).SetCapacity(ruling.amount);
      if (part == &Tenancy::memory) reasons_[ruling.claimant] = ruling.reason;
      a_.Touch(tenancy);
    }
    return !rulings.empty();
  }

  bool DivideAmongProcesses(Tenancy& tenancy) {
    const std::vector<Ruling> memory =
        tenancy.memory.Decide(DeadlineOn(tenancy.device), &a_.last_serial_);
    const std::vector<Ruling> host = tenancy.host.Decide(deadline_ns(), &a_.last_serial_);
    Note(tenancy, memory, true);
    Note(tenancy, host, false);
    a_.ObeyForTenancy(tenancy);
    return !memory.empty() || !host.empty();
  }

  void DivideLink(DeviceId id) {
    std::vector<Tenancy*> tenancies;
    std::vector<Claim> claims;
    for (auto& [key, tenancy] : a_.tenancies_) {
      if (tenancy.device != id || !a_.Runs(tenancy)) continue;
      Claim claim = a_.MemoryClaim(tenancy);
      const Share& link = tenancy.granted_terms.link;
      claim.floor = std::max<int64_t>(link.floor, 1);
      claim.guaranteed = link.guaranteed;
      claim.limit = claim.wanted = link.limit;
      claim.in_use = 0;
      claim.active = claim.active || tenancy.waits_for_turn;  // its memory leaves and comes
      tenancies.push_back(&tenancy);
      claims.push_back(claim);
    }
    const std::vector<int64_t> shares = FairShares(kWholeLink, claims, a_.link_owners_);
    for (size_t i = 0; i < tenancies.size(); ++i)
      tenancies[i]->link_permille = static_cast<int32_t>(shares[i]);
    for (Tenancy* tenancy : tenancies) {
      for (auto& [session, process] : tenancy->processes) {
        if (!tenancy->memory.HasGrant(static_cast<ClaimantId>(session))) continue;
        if (IsWorthSending(process.sent_link, LinkOf(*tenancy)) ||
            process.sent_workspace_limit != tenancy->granted_terms.workspace_limit)
          Changed({tenancy->job, session, tenancy->device});
      }
    }
  }
  static int32_t LinkOf(const Tenancy& tenancy) {
    return tenancy.link_permille /
           static_cast<int32_t>(std::max<size_t>(1, tenancy.processes.size()));
  }

  GrantDecision& Changed(const TenantProcess& process) {
    const auto [place, is_new] = changed_.try_emplace(process);
    if (is_new) {
      place->second.process = process;
      place->second.serial = ++a_.last_serial_;
      place->second.reason = RulingReason::kChanged;
      place->second.deadline_ns = DeadlineOn(process.device);
    }
    return place->second;
  }

  void Note(Tenancy& tenancy, const std::vector<Ruling>& rulings, bool is_memory) {
    for (const Ruling& ruling : rulings) {
      GrantDecision& grant = Changed({tenancy.job, SessionId{ruling.claimant}, tenancy.device});
      grant.serial = std::max(grant.serial, ruling.serial);
      grant.deadline_ns = std::min(grant.deadline_ns, ruling.deadline_ns);
      if (is_memory) grant.reason = ReasonFor(tenancy, ruling);
    }
  }
  RulingReason ReasonFor(const Tenancy& tenancy, const Ruling& ruling) const {
    const auto found = reasons_.find(tenancy.number);
    const bool is_own =
        ruling.reason == RulingReason::kFirst || ruling.reason == RulingReason::kKept;
    return is_own || found == reasons_.end() ? ruling.reason : found->second;
  }

  void AddGrants() {
    for (auto& [process, grant] : changed_) {
      Tenancy& tenancy = *a_.Find(process.job, process.device);
      ProcessState& state = tenancy.processes.at(process.session);
      const ClaimantId id = static_cast<ClaimantId>(process.session);
      if (!tenancy.memory.HasGrant(id))
        continue;  // the host part came first; both are announced with the device's part
      if (state.sent_serial == 0 && grant.reason != RulingReason::kKept)
        grant.reason = RulingReason::kFirst;
      grant.memory_bytes = tenancy.memory.GrantedTo(id);
      grant.host_bytes = tenancy.host.GrantedTo(id);
      grant.link_permille = state.sent_link = LinkOf(tenancy);
      grant.workspace_limit_bytes = state.sent_workspace_limit =
          tenancy.granted_terms.workspace_limit;
      state.sent_serial = grant.serial;
      decisions_.grants.push_back(grant);
    }
  }

  Arbiter& a_;
  const int64_t now_ns_;
  Decisions decisions_;
  std::map<uint64_t, RulingReason> reasons_;  // by tenancy
  int64_t next_wake_ns_ = INT64_MAX;
  std::map<TenantProcess, GrantDecision> changed_;
};

Decisions Arbiter::Decide(int64_t now_ns) {
  if (!IsDirty() && now_ns < next_wake_ns_) return {};
  const bool woken = now_ns >= next_wake_ns_ || queue_dirty_ || frozen_;
  Deciding deciding(this, now_ns);
  Decisions decisions = deciding.Run();
  last_decided_ns_ = now_ns;
  next_wake_ns_ =
      woken ? FindNextWake() : std::min({next_wake_ns_, NextDeadline(), deciding.next_wake_ns()});
  return decisions;
}

bool Arbiter::IsDirty() const {
  return queue_dirty_ || std::any_of(devices_.begin(), devices_.end(),
                                     [](const auto& one) { return one.second.dirty; });
}

int64_t Arbiter::FindNextWake() const {
  int64_t next = NextDeadline();
  for (const auto& [key, tenancy] : tenancies_) next = std::min(next, WakeOf(tenancy));
  return next;
}

int64_t Arbiter::NextDeadline() const {
  int64_t next = host_.NextDeadline();
  for (const auto& [id, device] : devices_) next = std::min(next, device.memory.NextDeadline());
  return next;
}

int64_t Arbiter::WakeOf(const Tenancy& tenancy) const {
  const int64_t next = std::min(tenancy.memory.NextDeadline(), tenancy.host.NextDeadline());
  return tenancy.state == TenancyState::kQueued
             ? std::min(next, tenancy.arrived_ns + rules_.patience_ns)
             : next;
}

}  // namespace spillway::agent
