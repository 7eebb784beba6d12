#include "agent/arbiter/arbiter.h"

#include <algorithm>

#include "agent/arbiter/amounts.h"
#include "base/units.h"

namespace spillway::agent {
namespace {

constexpr int64_t kGranularity = 2 * base::kMebibyte;  // of device memory

ClaimantId IdOf(SessionId session) { return static_cast<ClaimantId>(session); }

OwnerClaim MemoryClaimOf(const OwnerTerms& terms, int64_t device_bytes) {
  return {terms.above, terms.GuaranteedOn(device_bytes), terms.LimitOn(device_bytes), terms.weight};
}
OwnerClaim HostClaimOf(const OwnerTerms& terms) {
  return {.above = terms.above, .limit = terms.host_limit_bytes, .weight = terms.weight};
}

}  // namespace

Arbiter::Arbiter(const ArbiterRules& rules) : rules_(rules), host_(0, rules.step_bytes) {}

void Arbiter::SetRules(const ArbiterRules& rules) {
  rules_ = rules;
  TouchAll();
}

void Arbiter::SetDevice(DeviceId id, int64_t memory_bytes) {
  const auto [place, is_new] =
      devices_.try_emplace(id, Device{SharedCapacity(memory_bytes, rules_.step_bytes)});
  Device& device = place->second;
  for (const auto& [owner, terms] : owners_)
    device.memory.SetOwner(owner, MemoryClaimOf(terms, memory_bytes));
  device.memory.SetCapacity(memory_bytes);
  device.dirty = device.link_dirty = queue_dirty_ = true;
}

void Arbiter::SetHost(int64_t bytes) {
  host_.SetCapacity(bytes);
  queue_dirty_ = true;
  TouchAll();
}

void Arbiter::SetOwner(OwnerId owner, const OwnerTerms& terms) {
  const auto [place, is_new] = owners_.try_emplace(owner, terms);
  if (!is_new && place->second == terms) return;
  place->second = terms;
  for (auto& [id, device] : devices_)
    device.memory.SetOwner(owner, MemoryClaimOf(terms, device.memory.capacity()));
  host_.SetOwner(owner, HostClaimOf(terms));
  link_owners_[owner] = {.above = terms.above, .weight = terms.weight};
  if (is_new && terms.guaranteed_bytes == 0) return;  // no job's yet
  queue_dirty_ = true;
  TouchAll();
}

void Arbiter::RemoveOwner(OwnerId owner) {
  owners_.erase(owner);
  for (auto& [id, device] : devices_) device.memory.RemoveOwner(owner);
  host_.RemoveOwner(owner);
  link_owners_.erase(owner);
  queue_dirty_ = true;
}

void Arbiter::SetDraining(bool draining) {
  draining_ = draining;
  queue_dirty_ = true;
}

void Arbiter::SetFrozen(bool frozen) {
  if (frozen_ && !frozen) FitRestoredTerms();
  frozen_ = frozen;
  queue_dirty_ = true;
  TouchAll();
}

Arbiter::Tenancy* Arbiter::Find(JobId job, DeviceId device) {
  const auto found = tenancies_.find({job, device});
  return found == tenancies_.end() ? nullptr : &found->second;
}
const Arbiter::Tenancy* Arbiter::Find(JobId job, DeviceId device) const {
  return const_cast<Arbiter*>(this)->Find(job, device);
}

Arbiter::Tenancy& Arbiter::TenancyFor(const TenantProcess& process, const Terms& terms,
                                      int64_t now_ns) {
  if (Tenancy* known = Find(process.job, process.device)) return *known;
  Tenancy tenancy{process.job, process.device, ++last_number_, now_ns, terms, terms};
  by_number_[tenancy.number] = {process.job, process.device};
  return tenancies_.emplace(Key{process.job, process.device}, std::move(tenancy)).first->second;
}

void Arbiter::Join(const TenantProcess& process, const Terms& terms, const Demand& demand,
                   int64_t now_ns, const Held& reported_held) {
  Tenancy& tenancy = TenancyFor(process, terms, now_ns);
  tenancy.processes[process.session] = {demand, -1, 0, reported_held};
  tenancy.state_sent = false;
  if (tenancy.state == TenancyState::kAdmitted) RestoreReportedHoldings(tenancy);
  queue_dirty_ = true;
  UpdateDormancy(tenancy);
  TouchWithLink(tenancy);
}

void Arbiter::Rejoin(const TenantProcess& process, const Terms& terms, const Demand& demand,
                     const Held& held, int64_t now_ns) {
  Tenancy& tenancy = TenancyFor(process, terms, now_ns);
  tenancy.state = TenancyState::kAdmitted;
  tenancy.state_sent = false;
  tenancy.processes[process.session] = {demand, -1, 0};
  const ProcessState& state = tenancy.processes[process.session];
  tenancy.memory.Restore(IdOf(process.session), ProcessMemoryClaim(tenancy, process.session, state),
                         held.memory_bytes);
  tenancy.host.Restore(IdOf(process.session), ProcessHostClaim(tenancy, process.session, state),
                       held.host_bytes);
  RestoreTenancy(devices_[process.device].memory, tenancy, MemoryClaim(tenancy), tenancy.memory);
  RestoreTenancy(host_, tenancy, HostClaim(tenancy), tenancy.host);
  tenancy.has_begun = true;
  tenancy.is_dormant = false;
  TouchWithLink(tenancy);
}

// A tenancy has what its processes have together. Later processes use a departed one's surplus.
void Arbiter::RestoreTenancy(SharedCapacity& whole, const Tenancy& tenancy, const Claim& claim,
                             SharedCapacity& processes) {
  const int64_t more = processes.budgeted() - whole.BudgetedTo(tenancy.number);
  if (!whole.HasGrant(tenancy.number)) {
    whole.Restore(tenancy.number, claim, processes.budgeted());
  } else if (more > 0) {
    whole.Acknowledge(tenancy.number, more);
  } else {
    return;
  }
  processes.SetCapacity(whole.GrantedTo(tenancy.number));
}

// A process that ran without an agent holds memory that could be budgeted to others. It is believed
// as far as it could get that memory by wanting it. Memory budgeted to others stays theirs.
void Arbiter::RestoreReportedHoldings(Tenancy& tenancy) {
  for (const auto& [session, process] : tenancy.processes) {
    if (!tenancy.memory.HasGrant(IdOf(session))) RestoreReportedHoldings(tenancy, session, process);
  }
}

void Arbiter::RestoreReportedHoldings(Tenancy& tenancy, SessionId session,
                                      const ProcessState& process) {
  SharedCapacity& device = devices_[tenancy.device].memory;
  const Terms& terms = tenancy.granted_terms;
  const auto within = [&](const SharedCapacity& whole, const SharedCapacity& processes,
                          const Share& share, int64_t bytes) {
    const int64_t own =
        std::max<int64_t>(0, whole.BudgetedTo(tenancy.number) - processes.budgeted());
    const int64_t free =
        std::min(whole.capacity() - whole.budgeted(), whole.FreeWithin(terms.owner));
    return std::min({bytes, own + free, share.limit - processes.budgeted()});
  };
  const Held& says = process.reported_held;
  const Claim claim = ProcessMemoryClaim(tenancy, session, process);
  const int64_t memory_bytes = within(device, tenancy.memory, terms.memory, says.memory_bytes);
  if (memory_bytes < std::max<int64_t>(claim.floor, 1)) return;
  const int64_t host_bytes =
      std::max<int64_t>(within(host_, tenancy.host, terms.host, says.host_bytes), 0);
  tenancy.memory.Restore(IdOf(session), claim, memory_bytes);
  tenancy.host.Restore(IdOf(session), ProcessHostClaim(tenancy, session, process), host_bytes);
  RestoreTenancy(device, tenancy, MemoryClaim(tenancy), tenancy.memory);
  RestoreTenancy(host_, tenancy, HostClaim(tenancy), tenancy.host);
}

// Keeps the tenancy's arrival and budgets. Leave and Join would count the process's part twice if
// the tenancy has more processes, and would clear a deadline.
void Arbiter::Succeed(const TenantProcess& before, SessionId now, const Demand& demand,
                      const Held& held) {
  Tenancy* tenancy = Find(before.job, before.device);
  if (tenancy == nullptr || tenancy->processes.erase(before.session) == 0) return;
  tenancy->processes[now] = {demand, -1, 0, held};  // `held` counts when the job begins
  tenancy->state_sent = false;
  if (tenancy->state == TenancyState::kRejected)
    tenancy->state = TenancyState::kQueued;  // to be judged anew
  tenancy->memory.Succeed(IdOf(before.session), IdOf(now), held.memory_bytes);
  tenancy->host.Succeed(IdOf(before.session), IdOf(now), held.host_bytes);
  if (tenancy->state == TenancyState::kAdmitted) RestoreReportedHoldings(*tenancy);
  queue_dirty_ = true;
  ObeyForTenancy(*tenancy);
  UpdateDormancy(*tenancy);
  TouchWithLink(*tenancy);
}

void Arbiter::Holds(const TenantProcess& process, const Held& held) {
  Tenancy* tenancy = Find(process.job, process.device);
  if (tenancy == nullptr) return;
  const auto found = tenancy->processes.find(process.session);
  if (found != tenancy->processes.end()) found->second.reported_held = held;
}

void Arbiter::Leave(const TenantProcess& process) {
  Tenancy* tenancy = Find(process.job, process.device);
  if (tenancy == nullptr || tenancy->processes.erase(process.session) == 0) return;
  tenancy->memory.Remove(IdOf(process.session));
  tenancy->host.Remove(IdOf(process.session));
  TouchWithLink(*tenancy);
  if (!tenancy->processes.empty()) {
    UpdateDormancy(*tenancy);
    return ObeyForTenancy(*tenancy);
  }
  devices_[process.device].memory.Remove(tenancy->number);
  host_.Remove(tenancy->number);
  by_number_.erase(tenancy->number);
  dirty_.erase({process.job, process.device});
  tenancies_.erase({process.job, process.device});
  queue_dirty_ = true;
}

void Arbiter::Use(const TenantProcess& process, const Demand& demand) {
  Tenancy* tenancy = Find(process.job, process.device);
  if (tenancy == nullptr) return;
  const auto found = tenancy->processes.find(process.session);
  if (found == tenancy->processes.end() || found->second.demand == demand) return;
  const bool wakes_or_sleeps = found->second.demand.active != demand.active;
  const bool changes_claim = found->second.demand.has_claim != demand.has_claim;
  found->second.demand = demand;
  if (changes_claim) UpdateDormancy(*tenancy);
  wakes_or_sleeps || changes_claim ? TouchWithLink(*tenancy) : Touch(*tenancy);
}

// Note [Without a claim]
// A process that holds nothing and does nothing has no floor, guarantee or weight. A job with only
// such processes is dormant: it keeps its grant while nobody else wants it, and admission ignores
// it. When a process wakes, the job must be admitted again, before jobs that came later. Others
// give back memory for it as for a new job.
void Arbiter::UpdateDormancy(Tenancy& tenancy) {
  const bool has_claim =
      std::any_of(tenancy.processes.begin(), tenancy.processes.end(),
                  [](const auto& process) { return process.second.demand.has_claim; });
  if (tenancy.state != TenancyState::kAdmitted || tenancy.is_dormant == !has_claim) return;
  tenancy.is_dormant = !has_claim;
  queue_dirty_ = true;
  if (!has_claim) return;
  tenancy.state = TenancyState::kQueued;
  tenancy.position = 0;
  tenancy.arrived_ns = last_decided_ns_;
}

// The share of the owner's jobs if they wanted everything.
int64_t Arbiter::FairPartOf(OwnerId owner, DeviceId id) const {
  const SharedCapacity& memory = devices_.at(id).memory;
  std::vector<Claim> claims;
  std::vector<bool> is_own;
  for (const auto& [key, tenancy] : tenancies_) {
    if (tenancy.device != id || !Runs(tenancy)) continue;
    claims.push_back(MemoryClaim(tenancy));
    const OwnerPath path(owners_, claims.back().owner);
    is_own.push_back(!path.empty() && path.back() == owner);
  }
  claims.push_back({.limit = memory.capacity(), .wanted = memory.capacity(), .owner = owner});
  is_own.push_back(true);
  OwnerClaims owners;
  for (const auto& [number, terms] : owners_)
    owners[number] = MemoryClaimOf(terms, memory.capacity());
  const std::vector<int64_t> shares = FairShares(memory.capacity(), claims, owners);
  int64_t part = 0;
  for (size_t i = 0; i < shares.size(); ++i) part += is_own[i] ? shares[i] : 0;
  return part;
}

bool Arbiter::Obeyed(const TenantProcess& process, uint64_t serial, int64_t held_bytes,
                     int64_t host_bytes) {
  Tenancy* tenancy = Find(process.job, process.device);
  if (tenancy == nullptr) return false;
  const int64_t before = tenancy->memory.budgeted() + tenancy->host.budgeted();
  tenancy->memory.Obeyed(IdOf(process.session), serial, held_bytes);
  tenancy->host.Obeyed(IdOf(process.session), serial, host_bytes);
  if (tenancy->memory.budgeted() + tenancy->host.budgeted() == before) return false;
  ObeyForTenancy(*tenancy);
  Touch(*tenancy);
  return true;
}

void Arbiter::ObeyForTenancy(Tenancy& tenancy) {
  constexpr uint64_t all = UINT64_MAX;
  devices_[tenancy.device].memory.Obeyed(tenancy.number, all, tenancy.memory.budgeted());
  host_.Obeyed(tenancy.number, all, tenancy.host.budgeted());
}

void Arbiter::Touch(const Tenancy& tenancy) {
  dirty_.insert({tenancy.job, tenancy.device});
  devices_[tenancy.device].dirty = true;
}

void Arbiter::TouchWithLink(const Tenancy& tenancy) {
  Touch(tenancy);
  devices_[tenancy.device].link_dirty = true;
}

void Arbiter::TouchAll() {
  for (auto& [id, device] : devices_) device.dirty = device.link_dirty = true;
  for (auto& [key, tenancy] : tenancies_) dirty_.insert(key);
}

base::Status Arbiter::CheckTerms(JobId job, DeviceId id, const Terms& terms) const {
  const auto device = devices_.find(id);
  const Tenancy* tenancy = Find(job, id);
  if (device == devices_.end() || tenancy == nullptr)
    return base::Error{"the job does not use this device"};
  const int64_t capacity = device->second.memory.capacity();
  base::Status admissible = CheckAdmissible(terms, capacity);
  if (!admissible.ok() || tenancy->state != TenancyState::kAdmitted) return admissible;
  const std::vector<Terms> others = TermsOf(&id, tenancy);
  const int64_t free_bytes = FreeFor(terms.priority, capacity, others, &Terms::memory) -
                             ReservedForOthers(owners_, capacity, terms.owner, others);
  if (terms.memory.guaranteed <= free_bytes) return base::Ok();
  return base::Error{InBytes(terms.memory.guaranteed) + " cannot be guaranteed, others leave " +
                     InBytes(std::max<int64_t>(free_bytes, 0))};
}

Terms Arbiter::Fitting(const Tenancy& tenancy, Terms terms) const {
  const std::vector<Terms> on_device = TermsOf(&tenancy.device, &tenancy),
                           on_node = TermsOf(nullptr, &tenancy);
  const auto fit = [&](Share Terms::*share, int64_t capacity, const std::vector<Terms>& others) {
    int64_t free_bytes = FreeFor(terms.priority, capacity, others, share);
    if (share == &Terms::memory)
      free_bytes -= ReservedForOthers(owners_, capacity, terms.owner, others);
    const int64_t most = std::max(free_bytes, (tenancy.granted_terms.*share).guaranteed);
    (terms.*share).guaranteed = std::min((terms.*share).guaranteed, most);
  };
  fit(&Terms::memory, MemoryOf(tenancy.device), on_device);
  fit(&Terms::host, host_.capacity(), on_node);
  fit(&Terms::link, kWholeLink, on_device);
  return terms;
}

void Arbiter::ChangeTermsToFit(JobId job, DeviceId device, const Terms& terms) {
  const Tenancy* tenancy = Find(job, device);
  if (tenancy == nullptr || tenancy->granted_terms == terms) return;
  const bool has_begun = tenancy->state == TenancyState::kAdmitted;
  ChangeTerms(job, device, has_begun ? Fitting(*tenancy, terms) : terms);
}

void Arbiter::ChangeTerms(JobId job, DeviceId device, const Terms& terms) {
  Tenancy* tenancy = Find(job, device);
  if (tenancy == nullptr || (tenancy->terms == terms && tenancy->granted_terms == terms)) return;
  tenancy->terms = tenancy->granted_terms = terms;
  queue_dirty_ = true;
  TouchWithLink(*tenancy);
}

void Arbiter::SetParts(JobId job, DeviceId device, const OwnerClaims& parts) {
  Tenancy* tenancy = Find(job, device);
  if (tenancy == nullptr || tenancy->parts == parts) return;
  for (const auto& [part, bounds] : tenancy->parts) {
    if (parts.count(part) == 0) tenancy->memory.RemoveOwner(part);
  }
  for (const auto& [part, bounds] : parts) tenancy->memory.SetOwner(part, bounds);
  tenancy->parts = parts;
  Touch(*tenancy);
}

void Arbiter::SetWaitsForTurn(JobId job, DeviceId device, bool waits) {
  Tenancy* tenancy = Find(job, device);
  if (tenancy == nullptr || std::exchange(tenancy->waits_for_turn, waits) == waits) return;
  Touch(*tenancy);
}

void Arbiter::SetReturnWithin(DeviceId device, int64_t return_within_ns) {
  const auto found = devices_.find(device);
  if (found != devices_.end()) found->second.return_within_ns = return_within_ns;
}

// Returned jobs report the terms that they ask for; what they were guaranteed is unknown. Where the
// sum is too much, a job that holds less than it asks for had a smaller guarantee.
void Arbiter::FitRestoredTerms() {
  for (auto& [key, tenancy] : tenancies_) {
    if (tenancy.state != TenancyState::kAdmitted) continue;
    const Terms asked = tenancy.granted_terms;
    const auto had = [](Share& share, int64_t budgeted) {
      share.guaranteed = std::min(share.guaranteed, budgeted);
    };
    had(tenancy.granted_terms.memory, devices_[tenancy.device].memory.BudgetedTo(tenancy.number));
    had(tenancy.granted_terms.host, host_.BudgetedTo(tenancy.number));
    had(tenancy.granted_terms.link, 0);
    if (tenancy.granted_terms != asked) tenancy.granted_terms = Fitting(tenancy, asked);
  }
}

std::vector<Terms> Arbiter::TermsOf(const DeviceId* device, const Tenancy* except) const {
  std::vector<Terms> terms;
  for (const auto& [key, tenancy] : tenancies_) {
    const bool counts = Runs(tenancy) && &tenancy != except;
    if (counts && (device == nullptr || tenancy.device == *device))
      terms.push_back(tenancy.granted_terms);
  }
  return terms;
}

int64_t Arbiter::WithHeadroom(int64_t bytes) const {
  return base::round_up(bytes + bytes / 8 + rules_.headroom_bytes, kGranularity);
}

int64_t Arbiter::MemoryWanted(const Tenancy& tenancy) const {
  int64_t sum = 0;
  std::map<OwnerId, int64_t> bounded;
  for (const auto& [session, process] : tenancy.processes) {
    if (!process.demand.has_claim) continue;
    const int64_t wanted_bytes = WithHeadroom(process.demand.wanted_bytes);
    const bool has_bound = tenancy.parts.count(process.demand.part) != 0;
    (has_bound ? bounded[process.demand.part] : sum) += wanted_bytes;
  }
  for (const auto& [part, wanted_bytes] : bounded)
    sum += std::min(wanted_bytes, tenancy.parts.at(part).limit);
  return sum;
}

Claim Arbiter::MemoryClaim(const Tenancy& tenancy) const {
  Claim claim;
  claim.active = false;
  claim.wanted = MemoryWanted(tenancy);
  for (const auto& [session, process] : tenancy.processes) {
    if (!process.demand.has_claim) continue;
    claim.active = claim.active || process.demand.active;
    claim.in_use +=
        std::min(process.demand.unmovable_bytes, tenancy.memory.BudgetedTo(IdOf(session)));
    claim.has += std::min(process.demand.idle_bytes, tenancy.memory.BudgetedTo(IdOf(session)));
  }
  const Terms& terms = tenancy.granted_terms;
  claim.floor = tenancy.is_dormant ? 0 : terms.memory.floor;
  claim.guaranteed = tenancy.is_dormant ? 0 : terms.memory.guaranteed;
  claim.limit = terms.memory.limit;
  claim.owner = terms.owner;
  claim.weight = terms.weight;
  claim.priority = terms.priority;
  if (!tenancy.waits_for_turn) return claim;
  claim.active = false;
  claim.wanted = claim.guaranteed = 0;
  return claim;
}

// Memory that is granted on the device needs no host memory.
int64_t Arbiter::HostWanted(const Tenancy& tenancy, SessionId session,
                            const ProcessState& process) const {
  const Demand& demand = process.demand;
  const int64_t granted_bytes = tenancy.memory.GrantedTo(IdOf(session));
  const int64_t need_bytes =
      demand.host_need_bytes < 0 ? demand.wanted_bytes : demand.host_need_bytes - granted_bytes;
  return WithHeadroom(std::max(demand.host_bytes, need_bytes));
}

// An idle job lends no host memory: its evicted device memory lies there, and it needs room there
// as soon as it wakes and allocates. `in_use` follows the budgets, which our own rulings do not
// lower. If it followed the grants, an overdue claimant would be left with less at each revocation,
// down to nothing.
Claim Arbiter::HostClaim(const Tenancy& tenancy) const {
  Claim claim = MemoryClaim(tenancy);
  claim.active = true;
  claim.floor = tenancy.is_dormant ? 0 : tenancy.granted_terms.host.floor;
  claim.wanted = claim.in_use = claim.has = 0;
  for (const auto& [session, process] : tenancy.processes) {
    if (!process.demand.has_claim) continue;
    claim.in_use += std::min(process.demand.host_bytes, tenancy.host.BudgetedTo(IdOf(session)));
    claim.wanted += HostWanted(tenancy, session, process);
  }
  claim.guaranteed = tenancy.is_dormant ? 0 : tenancy.granted_terms.host.guaranteed;
  claim.limit = tenancy.granted_terms.host.limit;
  return claim;
}

Claim Arbiter::ProcessMemoryClaim(const Tenancy& tenancy, SessionId session,
                                  const ProcessState& process) const {
  Claim claim;
  claim.limit = tenancy.granted_terms.memory.limit;
  claim.owner = process.demand.part;
  claim.active = false;
  const auto part = tenancy.parts.find(claim.owner);
  if (part != tenancy.parts.end()) claim.limit = std::min(claim.limit, part->second.limit);
  if (!process.demand.has_claim) return claim;
  // also within its part's limit
  claim.floor = std::min(tenancy.granted_terms.memory.floor, claim.limit) /
                static_cast<int64_t>(std::max<size_t>(1, tenancy.processes.size()));
  claim.in_use = std::min(process.demand.unmovable_bytes, tenancy.memory.BudgetedTo(IdOf(session)));
  claim.has = std::min(process.demand.idle_bytes, tenancy.memory.BudgetedTo(IdOf(session)));
  claim.wanted = WithHeadroom(process.demand.wanted_bytes);
  claim.active = process.demand.active;
  return claim;
}

Claim Arbiter::ProcessHostClaim(const Tenancy& tenancy, SessionId session,
                                const ProcessState& process) const {
  Claim claim;
  claim.limit = tenancy.granted_terms.host.limit;
  claim.active = process.demand.has_claim;
  if (!process.demand.has_claim) return claim;
  claim.in_use = std::min(process.demand.host_bytes, tenancy.host.BudgetedTo(IdOf(session)));
  claim.wanted = HostWanted(tenancy, session, process);
  return claim;
}

void Arbiter::PutClaims(Tenancy& tenancy) {
  devices_[tenancy.device].memory.Put(tenancy.number, MemoryClaim(tenancy));
  host_.Put(tenancy.number, HostClaim(tenancy));
  for (const auto& [session, process] : tenancy.processes) {
    tenancy.memory.Put(IdOf(session), ProcessMemoryClaim(tenancy, session, process));
    tenancy.host.Put(IdOf(session), ProcessHostClaim(tenancy, session, process));
  }
}

bool Arbiter::Has(const TenantProcess& process) const {
  const Tenancy* tenancy = Find(process.job, process.device);
  return tenancy != nullptr && tenancy->processes.count(process.session) != 0;
}

int64_t Arbiter::BudgetedOn(DeviceId device) const {
  const auto found = devices_.find(device);
  return found == devices_.end() ? 0 : found->second.memory.budgeted();
}

int64_t Arbiter::MemoryOf(DeviceId device) const {
  const auto found = devices_.find(device);
  return found == devices_.end() ? 0 : found->second.memory.capacity();
}

int64_t Arbiter::BudgetedTo(const TenantProcess& process) const {
  const Tenancy* tenancy = Find(process.job, process.device);
  return tenancy == nullptr ? 0 : tenancy->memory.BudgetedTo(IdOf(process.session));
}

bool Arbiter::HasGrant(const TenantProcess& process) const {
  const Tenancy* tenancy = Find(process.job, process.device);
  return tenancy != nullptr && tenancy->memory.HasGrant(IdOf(process.session));
}

int64_t Arbiter::HostBudgetedTo(const TenantProcess& process) const {
  const Tenancy* tenancy = Find(process.job, process.device);
  return tenancy == nullptr ? 0 : tenancy->host.BudgetedTo(IdOf(process.session));
}

std::vector<TenancyView> Arbiter::Tenancies() const {
  std::vector<TenancyView> views;
  for (const auto& [key, tenancy] : tenancies_) {
    TenancyView view{tenancy.job, tenancy.device, tenancy.state, tenancy.position,
                     tenancy.granted_terms};
    view.granted_bytes = devices_.at(tenancy.device).memory.GrantedTo(tenancy.number);
    view.budgeted_bytes = devices_.at(tenancy.device).memory.BudgetedTo(tenancy.number);
    view.host_granted_bytes = host_.GrantedTo(tenancy.number);
    view.host_budgeted_bytes = host_.BudgetedTo(tenancy.number);
    view.host_wanted_bytes = HostClaim(tenancy).wanted;
    view.has_claim = !tenancy.is_dormant;
    view.overdue = devices_.at(tenancy.device).memory.IsOverdue(tenancy.number);
    view.processes_budgeted_bytes = tenancy.memory.budgeted();
    view.link_permille = tenancy.link_permille;
    view.processes = tenancy.processes.size();
    for (const auto& [session, process] : tenancy.processes) {
      view.wanted_bytes += process.demand.wanted_bytes;
      view.active = view.active || process.demand.active;
    }
    views.push_back(view);
  }
  return views;
}

}  // namespace spillway::agent
