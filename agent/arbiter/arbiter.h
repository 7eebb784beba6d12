// Decides how much device memory, host memory and link each process gets, and which jobs wait.
// Pure: times are passed in, equal facts give equal decisions.
//
// A *tenancy* is one job on one device; a *process* is one session of it. One SharedCapacity
// divides a device's memory among tenancies, another a tenancy's part among its processes. Host
// memory is divided likewise, over the whole node.
//
// Invariants
//  1. Budgets to the tenancies of a device never rise beyond its memory. What a tenancy's processes
//     were budgeted counts with the tenancy until they obey. Likewise host memory.
//  2. Every admitted process has at least its part of the floor as soon as others have obeyed. A
//     guarantee is returned within `return_within_ns` by processes that obey.
//  3. While a device has enough for all, a decision's cost depends only on the affected jobs.
//  4. The budgets to all jobs of an owner never rise beyond its limits.
//  5. A process without a claim gets nothing that another wants, and blocks nobody: Note [Without a
//     claim].
//  6. A tenancy that waits for its turn counts as idle, wants nothing beyond its floor, and has no
//     guarantee: Note [Turns or shares] in agent/turns.
//  7. While frozen, nothing changes hands: jobs known to an earlier instance of the agent return
//     first.
// Never: takes memory from a job that has not confirmed that it let go.
#pragma once

#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/arbiter/admission.h"
#include "agent/arbiter/shared_capacity.h"
#include "agent/arbiter/terms.h"
#include "base/result.h"

namespace spillway::agent {

struct ArbiterRules {
  int64_t return_within_ns = 2'000'000'000;
  int64_t patience_ns = 600'000'000'000;
  int64_t step_bytes = int64_t{64} << 20;       // smaller raises wait
  int64_t headroom_bytes = int64_t{256} << 20;  // beyond the demand, beside an eighth of it
};

struct TenantProcess {
  JobId job{};
  SessionId session{};
  DeviceId device{};
  auto operator<=>(const TenantProcess&) const = default;
};

// A process's own report, believed only within its grant.
struct Demand {
  int64_t wanted_bytes = 0;
  int64_t unmovable_bytes = 0;
  int64_t host_bytes = 0;
  bool active = true;
  int64_t host_need_bytes = -1;  // without device memory; -1: wanted_bytes counts
  bool has_claim = true;
  OwnerId part = kNobody;  // of its job (a Slurm step): SetParts
  int64_t idle_bytes = 0;  // of device memory that it has while it is idle
  bool operator==(const Demand&) const = default;
};

// Granted by an earlier instance of the agent.
struct Held {
  int64_t memory_bytes = 0;
  int64_t host_bytes = 0;
};

enum class TenancyState : uint8_t { kQueued, kAdmitted, kRejected };

struct AdmissionDecision {
  JobId job{};
  DeviceId device{};
  TenancyState state = TenancyState::kQueued;
  uint32_t position = 0;  // from 1 while queued
  int64_t waited_ns = 0;
  std::string reason;
};

struct GrantDecision {
  TenantProcess process;
  uint64_t serial = 0;
  int64_t memory_bytes = 0;
  int64_t host_bytes = 0;
  int32_t link_permille = 0;
  int64_t workspace_limit_bytes = std::numeric_limits<int64_t>::max();
  int64_t deadline_ns = 0;
  RulingReason reason = RulingReason::kFirst;
};

struct Decisions {
  std::vector<AdmissionDecision> admissions;
  std::vector<GrantDecision> grants;
  std::vector<TenantProcess> overdue;
};

struct TenancyView {
  JobId job{};
  DeviceId device{};
  TenancyState state = TenancyState::kQueued;
  uint32_t position = 0;
  Terms terms;
  int64_t granted_bytes = 0, budgeted_bytes = 0, wanted_bytes = 0;
  int64_t host_granted_bytes = 0, host_budgeted_bytes = 0, host_wanted_bytes = 0;
  int64_t processes_budgeted_bytes = 0;
  int32_t link_permille = 0;
  bool active = false, overdue = false;
  bool has_claim = true;
  size_t processes = 0;
};

class Arbiter {
 public:
  explicit Arbiter(const ArbiterRules& rules);
  Arbiter(Arbiter&&) = default;

  void SetRules(const ArbiterRules& rules);
  void SetDevice(DeviceId device, int64_t memory_bytes);
  void SetHost(int64_t bytes);
  // Call it before any terms name the owner.
  void SetOwner(OwnerId owner, const OwnerTerms& terms);
  void RemoveOwner(OwnerId owner);
  void SetDraining(bool draining);
  void SetFrozen(bool frozen);

  // `reported_held`: from a process that began without an agent. Believed once its job is admitted,
  // within the job's limits, as far as the memory is free.
  void Join(const TenantProcess& process, const Terms& terms, const Demand& demand, int64_t now_ns,
            const Held& reported_held = {});
  void Rejoin(const TenantProcess& process, const Terms& terms, const Demand& demand,
              const Held& held, int64_t now_ns);
  // The same process in a new session of the same job and device. It holds no more than `held` of
  // what `before` was budgeted.
  void Succeed(const TenantProcess& before, SessionId now, const Demand& demand, const Held& held);
  // Updates `reported_held`. Without effect once the process has a grant.
  void Holds(const TenantProcess& process, const Held& held);
  void Leave(const TenantProcess& process);
  void Use(const TenantProcess& process, const Demand& demand);
  bool Obeyed(const TenantProcess& process, uint64_t serial, int64_t held_bytes,
              int64_t host_bytes);

  base::Status CheckTerms(JobId job, DeviceId device, const Terms& terms) const;
  // The terms must pass CheckTerms.
  void ChangeTerms(JobId job, DeviceId device, const Terms& terms);
  // Guarantees are reduced to what others leave, or to what the job has if that is more.
  void ChangeTermsToFit(JobId job, DeviceId device, const Terms& terms);

  // The bounds of a job's parts there: the part's processes together get at most its limit, and at
  // least its guarantee of what the job gets.
  void SetParts(JobId job, DeviceId device, const OwnerClaims& parts);

  // Who waits for its turn on the device, and how long a return takes there (0: the rules'): a
  // whole job's memory leaves at the link's speed.
  void SetWaitsForTurn(JobId job, DeviceId device, bool waits);
  void SetReturnWithin(DeviceId device, int64_t return_within_ns);

  Decisions Decide(int64_t now_ns);
  // INT64_MAX: time alone changes nothing.
  int64_t NextWake() const { return next_wake_ns_; }

  bool Has(const TenantProcess& process) const;
  std::vector<TenancyView> Tenancies() const;  // by job, then device
  int64_t BudgetedOn(DeviceId device) const;
  int64_t BudgetedOnHost() const { return host_.budgeted(); }
  int64_t MemoryOf(DeviceId device) const;
  int64_t BudgetedTo(const TenantProcess& process) const;
  bool HasGrant(const TenantProcess& process) const;
  int64_t HostBudgetedTo(const TenantProcess& process) const;
  bool draining() const { return draining_; }

 private:
  struct ProcessState {
    Demand demand;
    int32_t sent_link = -1;
    uint64_t sent_serial = 0;
    Held reported_held = {};
    int64_t sent_workspace_limit = -1;
  };
  struct Tenancy {
    JobId job;
    DeviceId device;
    uint64_t number;
    int64_t arrived_ns;
    Terms terms;          // as asked for
    Terms granted_terms;  // guarantees as admitted
    TenancyState state = TenancyState::kQueued;
    uint32_t position = 0;
    bool state_sent = false;
    bool has_begun = false, is_dormant = false, waits_for_turn = false;
    int32_t link_permille = 0;
    SharedCapacity memory = SharedCapacity(0);  // among its processes
    SharedCapacity host = SharedCapacity(0);
    std::map<SessionId, ProcessState> processes = {};
    OwnerClaims parts = {};
  };
  struct Device {
    SharedCapacity memory;  // among tenancies
    bool dirty = true;
    bool link_dirty = true;
    int64_t return_within_ns = 0;  // 0: the rules'
  };
  using Key = std::pair<JobId, DeviceId>;
  class Deciding;

  bool IsDirty() const;
  int64_t FindNextWake() const;
  int64_t NextDeadline() const;
  int64_t WakeOf(const Tenancy& tenancy) const;
  Tenancy& TenancyFor(const TenantProcess& process, const Terms& terms, int64_t now_ns);
  Tenancy* Find(JobId job, DeviceId device);
  const Tenancy* Find(JobId job, DeviceId device) const;
  // Marks claims or holdings as out of date; TouchWithLink its share of the link too.
  void Touch(const Tenancy& tenancy);
  void TouchWithLink(const Tenancy& tenancy);
  void TouchAll();
  void UpdateDormancy(Tenancy& tenancy);
  bool Runs(const Tenancy& tenancy) const {
    return tenancy.state == TenancyState::kAdmitted && !tenancy.is_dormant;
  }
  int64_t FairPartOf(OwnerId owner, DeviceId device) const;
  void PutClaims(Tenancy& tenancy);
  void ObeyForTenancy(Tenancy& tenancy);
  void RestoreReportedHoldings(Tenancy& tenancy);
  void RestoreReportedHoldings(Tenancy& tenancy, SessionId session, const ProcessState& process);
  static void RestoreTenancy(SharedCapacity& whole, const Tenancy& tenancy, const Claim& claim,
                             SharedCapacity& processes);
  Terms Fitting(const Tenancy& tenancy, Terms terms) const;
  void FitRestoredTerms();
  std::vector<Terms> TermsOf(const DeviceId* device, const Tenancy* except) const;
  Claim MemoryClaim(const Tenancy& tenancy) const;
  Claim HostClaim(const Tenancy& tenancy) const;
  Claim ProcessMemoryClaim(const Tenancy& tenancy, SessionId session,
                           const ProcessState& process) const;
  Claim ProcessHostClaim(const Tenancy& tenancy, SessionId session,
                         const ProcessState& process) const;
  int64_t HostWanted(const Tenancy& tenancy, SessionId session, const ProcessState& process) const;
  int64_t WithHeadroom(int64_t bytes) const;
  int64_t MemoryWanted(const Tenancy& tenancy) const;

  ArbiterRules rules_;
  std::map<DeviceId, Device> devices_;
  SharedCapacity host_;
  std::map<Key, Tenancy> tenancies_;
  std::map<uint64_t, Key> by_number_;
  Owners owners_;
  OwnerClaims link_owners_;
  std::set<Key> dirty_;
  uint64_t last_number_ = 0;
  uint64_t last_serial_ = 0;
  bool draining_ = false;
  bool frozen_ = false;
  bool queue_dirty_ = false;
  int64_t last_decided_ns_ = INT64_MIN;
  int64_t next_wake_ns_ = INT64_MAX;  // may be too early, never too late
};

}  // namespace spillway::agent
