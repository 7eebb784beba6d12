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
      if (!IsImpatient(a) && a.terms.priority != b.terms.priority) return a.terms.priority > b.terms.priority;
      return a.number < b.number;
    });
    bool closed = situation_.draining;
    for (const Applicant& applicant : queue) {
      if (!closed && Admit(applicant)) continue;
      closed = closed || IsImpatient(applicant);
      plan_.queue.push_back(applicant.number);
    }
    return std::move(plan_);
  }

 private:
  bool IsImpatient(const Applicant& applicant) const {
    return now_ns_ - applicant.arrived_ns >= situation_.patience_ns;
  }

  bool Admit(const Applicant& applicant) {
    Terms terms = applicant.terms;
    const int64_t room = RoomFor(terms.priority, situation_.memory_bytes, on_device_, &Terms::memory);
    if (applicant.is_admitted_elsewhere)
      terms.memory.guaranteed = std::min(terms.memory.guaranteed, std::max<int64_t>(room, 0));
    if (AtLeastFloor(terms.memory) > room) return false;
    Fit(&terms.host, RoomFor(terms.priority, situation_.host_bytes, on_node_, &Terms::host));
    Fit(&terms.link, RoomFor(terms.priority, kWholeLink, on_device_, &Terms::link));
    on_device_.push_back(terms);
    on_node_.push_back(terms);
    plan_.admitted.push_back({applicant.number, terms});
    return true;
  }
  static void Fit(Share* share, int64_t room) {
    share->guaranteed = std::min(share->guaranteed, std::max<int64_t>(room, 0));
    share->floor = std::min(share->floor, share->guaranteed);
  }

  const AdmissionSituation& situation_;
  const int64_t now_ns_;
  std::vector<Terms> on_device_, on_node_;
  AdmissionPlan plan_;
};

}  // namespace

AdmissionPlan PlanAdmissions(const AdmissionSituation& situation, std::span<const Applicant> applicants,
                             int64_t now_ns) {
  return Planner(situation, now_ns).Plan(applicants);
}

int64_t RoomFor(int32_t priority, int64_t capacity, std::span<const Terms> tenants, Share Terms::*resource) {
  int64_t room = capacity;
  for (const Terms& tenant : tenants) {
    const Share& share = tenant.*resource;
    room -= tenant.priority >= priority ? AtLeastFloor(share) : share.floor;
  }
  return room;
}

std::string WhyNever(const Terms& terms, int64_t memory_bytes) {
  const Share& memory = terms.memory;
  if (memory.guaranteed > memory_bytes)
    return InBytes(memory.guaranteed) + " are to be guaranteed, the device has " + InBytes(memory_bytes);
  if (memory.floor > memory_bytes)
    return "a job needs at least " + InBytes(memory.floor) + ", the device has " + InBytes(memory_bytes);
  if (memory.limit < memory.floor)
    return "its limit of " + InBytes(memory.limit) + " is below the least of " + InBytes(memory.floor);
  if (memory.limit < memory.guaranteed)
    return "its limit of " + InBytes(memory.limit) + " is below its guarantee of " +
           InBytes(memory.guaranteed);
  return "";
}

}  // namespace spillway::agent
