// Decides how much of each device, of the host and of the link every job's processes may use, and
// who has to wait.
//
// Called by the agent's node with facts (who came, what it wants, what it obeyed, who left); Decide
// turns them into decisions. One thread; pure: times are passed in, equal facts give equal
// decisions.
//
// A *tenancy* is one job on one device; a *process* is one process (session) of it. Memory of a
// device is divided among tenancies, a tenancy's among its processes, each by a Ration. Host memory
// likewise, on the whole node.
//
// Invariants
//  1. What is promised to the tenancies of a device never rises beyond the device's memory, and
//  what is promised to a tenancy's
//     processes counts with the tenancy until they have obeyed. Likewise host memory.
//  2. Every admitted process has at least its part of the floor, as soon as others have obeyed; a
//  guarantee comes back within
//     `return_within_ns` from those that obey.
//  3. What a decision costs depends on whom it concerns, not on how many there are, while a device
//  has enough for all.
//  4. What all jobs of an owner are promised never rises beyond its limits.
//  5. Who has no claim gets nothing that another wants, and keeps nobody waiting: see Note [Without
//  a claim].
//  6. While frozen, nobody is admitted and nothing changes hands: those whom an earlier instance of
//  the agent knew come back first.
// Never: takes memory from a job that has not said that it let go.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/arbiter/admission.h"
#include "agent/arbiter/ration.h"
#include "agent/arbiter/terms.h"
#include "base/result.h"

namespace spillway::agent {

struct ArbiterRules {
  int64_t return_within_ns = 2'000'000'000;
  int64_t patience_ns = 600'000'000'000;
  int64_t step_bytes = int64_t{64} << 20;  // smaller rises wait
  int64_t headroom_bytes = int64_t{256}
                           << 20;  // granted beyond what is wanted, with an eighth of it
};

struct TenantProcess {
  JobId job{};
  SessionId session{};
  DeviceId device{};
  auto operator<=>(const TenantProcess&) const = default;
};

// What a process says of itself; it is believed only within what was granted to it.
struct Demand {
  int64_t wanted_bytes = 0;
  int64_t unmovable_bytes = 0;
  int64_t host_bytes = 0;
  bool active = true;
  int64_t host_need_bytes = -1;  // with nothing of the device; -1: not said, what it wants counts
  bool has_claim = true;         // false: it holds nothing, and does nothing
  bool operator==(const Demand&) const = default;
};

// What an earlier instance of the agent had granted.
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
  int64_t deadline_ns = 0;
  RulingReason reason = RulingReason::kFirst;
};

struct Decisions {
  std::vector<AdmissionDecision> admissions;
  std::vector<GrantDecision> grants;
  std::vector<TenantProcess> overdue;
};

// For reports.
struct TenancyView {
  JobId job{};
  DeviceId device{};
  TenancyState state = TenancyState::kQueued;
  uint32_t position = 0;
  Terms terms;
  int64_t granted_bytes = 0, promised_bytes = 0, wanted_bytes = 0;
  int64_t host_granted_bytes = 0, host_promised_bytes = 0;
  int64_t processes_promised_bytes = 0;  // to its processes together; part of what it is promised
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
  // Known before terms name it, and as long as they do.
  void SetOwner(OwnerId owner, const OwnerTerms& terms);
  void RemoveOwner(OwnerId owner);
  void SetDraining(bool draining);
  void SetFrozen(bool frozen);

  // `says_it_holds`: of who began without an agent. It is believed when its job begins, or at once
  // where it has begun, within its limits, as far as that is nobody's.
  void Join(const TenantProcess& process, const Terms& terms, const Demand& demand, int64_t now_ns,
            const Held& says_it_holds = {});
  void Rejoin(const TenantProcess& process, const Terms& terms, const Demand& demand,
              const Held& held, int64_t now_ns);
  // The same process by another session of the same job and device, which holds no more than `held`
  // of what `before` was promised.
  void Succeed(const TenantProcess& before, SessionId now, const Demand& demand, const Held& held);
  // What it says now; of no interest once it has been granted something.
  void Holds(const TenantProcess& process, const Held& held);
  void Leave(const TenantProcess& process);
  void Use(const TenantProcess& process, const Demand& demand);
  // True when it changed what is promised.
  bool Obeyed(const TenantProcess& process, uint64_t serial, int64_t held_bytes,
              int64_t host_bytes);

  // An error: why the terms would be refused.
  base::Status CheckTerms(JobId job, DeviceId device, const Terms& terms) const;
  // Only terms that pass CheckTerms.
  void ChangeTerms(JobId job, DeviceId device, const Terms& terms);
  // With as much of their guarantees as others leave, or as it has.
  void ChangeTermsToFit(JobId job, DeviceId device, const Terms& terms);

  Decisions Decide(int64_t now_ns);
  // The next moment at which time alone changes something; the largest value for never.
  int64_t NextWake() const { return next_wake_ns_; }

  bool Has(const TenantProcess& process) const;
  std::vector<TenancyView> Tenancies() const;  // by job, then device
  int64_t PromisedOn(DeviceId device) const;
  int64_t PromisedOnHost() const { return host_.promised(); }
  int64_t MemoryOf(DeviceId device) const;
  int64_t PromisedTo(const TenantProcess& process) const;
  bool HasGrant(const TenantProcess& process) const;
  int64_t HostPromisedTo(const TenantProcess& process) const;
  bool draining() const { return draining_; }

 private:
  struct ProcessState {
    Demand demand;
    int32_t told_link = -1;
    uint64_t told_serial = 0;
    Held says_it_holds = {};
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
    bool told_state = false;
    bool has_begun = false, is_dormant = false;
    int32_t link_permille = 0;
    Ration memory = Ration(0);  // among its processes
    Ration host = Ration(0);
    std::map<SessionId, ProcessState> processes = {};
  };
  struct Device {
    Ration memory;  // among tenancies
    bool dirty = true;
    bool link_dirty = true;  // who shares the link, or how
  };
  using Key = std::pair<JobId, DeviceId>;
  class Deciding;

  bool IsDirty() const;
  int64_t FindNextWake() const;
  int64_t WakeOfRations() const;
  int64_t WakeOf(const Tenancy& tenancy) const;
  Tenancy& TenancyFor(const TenantProcess& process, const Terms& terms, int64_t now_ns);
  Tenancy* Find(JobId job, DeviceId device);
  const Tenancy* Find(JobId job, DeviceId device) const;
  // Its claims, or what its processes have, may be out of date; and its part of the link.
  void Touch(const Tenancy& tenancy);
  void TouchWithLink(const Tenancy& tenancy);
  void TouchAll();
  void NoteClaims(Tenancy& tenancy);
  bool Runs(const Tenancy& tenancy) const {
    return tenancy.state == TenancyState::kAdmitted && !tenancy.is_dormant;
  }
  int64_t FairPartOf(OwnerId owner, DeviceId device) const;
  void PutClaims(Tenancy& tenancy);
  void PassUp(Tenancy& tenancy);
  void BelieveWithinFree(Tenancy& tenancy);
  void BelieveWithinFree(Tenancy& tenancy, SessionId session, const ProcessState& process);
  static void RestoreUp(Ration& whole, const Tenancy& tenancy, const Claim& claim,
                        Ration& processes);
  Terms Fitting(const Tenancy& tenancy, Terms terms) const;
  void FitRestored();
  std::vector<Terms> TermsOf(const DeviceId* device, const Tenancy* except) const;
  Claim MemoryClaim(const Tenancy& tenancy) const;
  Claim HostClaim(const Tenancy& tenancy) const;
  Claim ProcessMemoryClaim(const Tenancy& tenancy, SessionId session,
                           const ProcessState& process) const;
  Claim ProcessHostClaim(const Tenancy& tenancy, SessionId session,
                         const ProcessState& process) const;
  int64_t HostWanted(const Tenancy& tenancy, SessionId session, const ProcessState& process) const;
  int64_t WithHeadroom(int64_t bytes) const;

  ArbiterRules rules_;
  std::map<DeviceId, Device> devices_;
  Ration host_;
  std::map<Key, Tenancy> tenancies_;
  std::map<uint64_t, Key> by_number_;
  Owners owners_;
  OwnerClaims link_owners_;
  std::set<Key> dirty_;  // tenancies
  uint64_t last_number_ = 0;
  uint64_t last_serial_ = 0;
  bool draining_ = false;
  bool frozen_ = false;
  bool queue_dirty_ = false;
  int64_t last_decided_ns_ = INT64_MIN;
  int64_t next_wake_ns_ =
      INT64_MAX;  // as of the last decisions: it may be too early, never too late
};

}  // namespace spillway::agent
