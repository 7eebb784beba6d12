#include "agent/arbiter/admission.h"

#include <algorithm>

#include "agent/arbiter/amounts.h"

namespace spillway::agent {
namespace {

int64_t AtLeastFloor(const Share& share) { return std::max(share.guaranteed, share.floor); }

class Planner {
 public:
  Planner(const AdmissionSituation& situation, int64_t now_ns)
      : situation_(situation),
        now_ns_(now_ns),
        on_device_(situation.on_device.begin(), situation.on_device.end()),
        on_node_(situation.on_node.begin(), situation.on_node.end()) {}

  AdmissionPlan Plan(std::span<const Applicant> applicants) {
    std::vector<Applicant> queue(applicants.begin(), applicants.end());
    std::stable_sort(queue.begin(), queue.end(), [this](const Applicant& a, const Applicant& b) {
      if (IsImpatient(a) != IsImpatient(b)) return IsImpatient(a);
      if (!IsImpatient(a) && a.terms.priority != b.terms.priority)
        return a.terms.priority > b.terms.priority;
      return a.number < b.number;
    });
    bool closed = situation_.draining;
    for (const Applicant& applicant : queue) {
      const WaitsFor bound = OwnersBound(applicant);
      if (bound == WaitsFor::kMemory && !closed && Admit(applicant)) continue;
      closed = closed || (bound == WaitsFor::kMemory && IsImpatient(applicant));
      plan_.queue.push_back({applicant.number, bound});
    }
    return std::move(plan_);
  }

 private:
  bool IsImpatient(const Applicant& applicant) const {
    return now_ns_ - applicant.arrived_ns >= situation_.patience_ns;
  }

  // kMemory: no bound of its owners holds it back.
  WaitsFor OwnersBound(const Applicant& applicant) const {
    const Terms& terms = applicant.terms;
    if (situation_.owners == nullptr || terms.owner == kNobody) return WaitsFor::kMemory;
    const OwnerPath path(*situation_.owners, terms.owner);
    for (const OwnerId owner : path) {
      const OwnerTerms& bounds = situation_.owners->at(owner);
      if (!applicant.is_admitted_elsewhere && JobsOf(owner) >= bounds.jobs)
        return WaitsFor::kOwnersJobs;
      const int64_t limit_bytes = bounds.LimitOn(situation_.memory_bytes);
      if (limit_bytes == OwnerTerms::kAny) continue;
      const int64_t least =
          applicant.is_admitted_elsewhere ? terms.memory.floor : AtLeastFloor(terms.memory);
      if (SumOf(owner, AtLeastFloor) + least > limit_bytes) return WaitsFor::kOwnersLimit;
    }
    return IsWithinPart(applicant, path) ? WaitsFor::kMemory : WaitsFor::kOwnersPart;
  }
  bool IsWithinPart(const Applicant& applicant, const OwnerPath& path) const {
    if (path.empty() || IsImpatient(applicant)) return true;
    const auto part = situation_.fair_parts.find(path.back());
    if (part == situation_.fair_parts.end()) return true;
    const int64_t floors = SumOf(path.back(), [](const Share& share) { return share.floor; });
    return floors == 0 || floors + applicant.terms.memory.floor <= part->second;
  }
  int64_t JobsOf(OwnerId owner) const {
    const auto running = situation_.jobs.find(owner);
    const auto begins = begins_.find(owner);
    return (running == situation_.jobs.end() ? 0 : running->second) +
           (begins == begins_.end() ? 0 : begins->second);
  }
  template <class Amount>
  int64_t SumOf(OwnerId owner, const Amount& amount) const {
    int64_t sum = 0;
    for (const Terms& terms : on_device_) {
      if (OwnerPath(*situation_.owners, terms.owner).Has(owner)) sum += amount(terms.memory);
    }
    return sum;
  }

  bool Admit(const Applicant& applicant) {
    Terms terms = applicant.terms;
    int64_t free_bytes =
        FreeFor(terms.priority, situation_.memory_bytes, on_device_, &Terms::memory);
    if (situation_.owners != nullptr)
      free_bytes -=
          ReservedForOthers(*situation_.owners, situation_.memory_bytes, terms.owner, on_device_);
    if (applicant.is_admitted_elsewhere)
      terms.memory.guaranteed = std::min(terms.memory.guaranteed, std::max<int64_t>(free_bytes, 0));
    if (AtLeastFloor(terms.memory) > free_bytes) return false;
    Fit(&terms.host, FreeFor(terms.priority, situation_.host_bytes, on_node_, &Terms::host));
    Fit(&terms.link, FreeFor(terms.priority, kWholeLink, on_device_, &Terms::link));
    on_device_.push_back(terms);
    on_node_.push_back(terms);
    plan_.admitted.push_back({applicant.number, terms});
    if (situation_.owners == nullptr || applicant.is_admitted_elsewhere) return true;
    for (const OwnerId owner : OwnerPath(*situation_.owners, terms.owner)) ++begins_[owner];
    return true;
  }
  static void Fit(Share* share, int64_t free_bytes) {
    share->guaranteed = std::min(share->guaranteed, std::max<int64_t>(free_bytes, 0));
    share->floor = std::min(share->floor, share->guaranteed);
  }

  const AdmissionSituation& situation_;
  const int64_t now_ns_;
  std::vector<Terms> on_device_, on_node_;
  AdmissionPlan plan_;
  std::map<OwnerId, int64_t> begins_;
};

}  // namespace

AdmissionPlan PlanAdmissions(const AdmissionSituation& situation,
                             std::span<const Applicant> applicants, int64_t now_ns) {
  return Planner(situation, now_ns).Plan(applicants);
}

int64_t FreeFor(int32_t priority, int64_t capacity, std::span<const Terms> tenants,
                Share Terms::*resource) {
  int64_t free_bytes = capacity;
  for (const Terms& tenant : tenants) {
    const Share& share = tenant.*resource;
    free_bytes -= tenant.priority >= priority ? AtLeastFloor(share) : share.floor;
  }
  return free_bytes;
}

int64_t ReservedForOthers(const Owners& owners, int64_t device_bytes, OwnerId whose,
                          std::span<const Terms> tenants) {
  const bool any = std::any_of(owners.begin(), owners.end(), [](const auto& owner) {
    return owner.second.guaranteed_bytes != 0;
  });
  if (!any) return 0;
  std::map<OwnerId, int64_t> budgeted;  // for an account, its users' jobs too
  for (const Terms& terms : tenants) {
    for (const OwnerId owner : OwnerPath(owners, terms.owner))
      budgeted[owner] += AtLeastFloor(terms.memory);
  }
  const OwnerPath own(owners, whose);
  int64_t reserved = 0;
  const auto reserve = [&](OwnerId id, const OwnerTerms& terms) {
    if (own.Has(id)) return;
    const int64_t more = std::max<int64_t>(0, terms.GuaranteedOn(device_bytes) - budgeted[id]);
    reserved += more;
    if (terms.above != kNobody) budgeted[terms.above] += more;
  };
  for (const bool has_above : {true, false}) {
    for (const auto& [id, terms] : owners) {
      if ((terms.above != kNobody) == has_above) reserve(id, terms);
    }
  }
  return reserved;
}

base::Status CheckAdmissible(const Terms& terms, int64_t memory_bytes) {
  const Share& memory = terms.memory;
  if (memory.guaranteed > memory_bytes)
    return base::Error{"its guarantee of " + InBytes(memory.guaranteed) +
                       " is more than the device has, " + InBytes(memory_bytes) +
                       ": lower `guaranteed`"};
  if (memory.floor > memory_bytes)
    return base::Error{"its floor of " + InBytes(memory.floor) + " is more than the device has, " +
                       InBytes(memory_bytes) + ": lower `floor` in [defaults] or a rule"};
  if (memory.limit < memory.floor)
    return base::Error{"its limit of " + InBytes(memory.limit) + " is below its floor of " +
                       InBytes(memory.floor)};
  if (memory.limit < memory.guaranteed)
    return base::Error{"its limit of " + InBytes(memory.limit) + " is below its guarantee of " +
                       InBytes(memory.guaranteed)};
  return base::Ok();
}

}  // namespace spillway::agent
