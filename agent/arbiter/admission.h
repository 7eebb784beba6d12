// Who of those that wait for a device may begin, and who is next.
//
// Pure. An applicant is admitted when its guarantee fits beside the guarantees of equal and higher
// priority and the floors of lower priority: lower guarantees can be preempted, floors cannot. A
// guarantee of host memory or of the link that does not fit is made smaller instead, as a job runs
// without it, only slower.
//
// Invariants
//  1. Admitted guarantees of one priority and above, and the floors below, never exceed the device.
//  2. Higher priority first, then earlier arrival; who fits may pass one that does not.
//  3. Nobody passes an applicant that has waited for `patience_ns`: it goes first, and the next
//  free memory is its own.
//  4. What is guaranteed to an owner is kept free for its jobs. No more of its jobs run than it may
//  have, with no more guaranteed and as
//     floors than its limit.
//  5. Nor floors of more than its fair part of the device, but for one job, and for who has waited
//  for `patience_ns`: floors are never
//     asked back, and would leave the jobs of others with no more than their own. Who waits for its
//     own owner's sake holds up nobody.
//  6. A job that is admitted elsewhere does not wait while it holds other devices if its floor
//  fits: it gets what guarantee there is.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "agent/arbiter/terms.h"
#include "base/result.h"

namespace spillway::agent {

struct Applicant {
  uint64_t number = 0;  // in order of arrival
  int64_t arrived_ns = 0;
  Terms terms;
  bool is_admitted_elsewhere = false;
};

struct Admitted {
  uint64_t number = 0;
  Terms terms;  // as granted
};

enum class WaitsFor : uint8_t { kRoom, kOwnersJobs, kOwnersLimit, kOwnersPart };

struct Waiting {
  uint64_t number = 0;
  WaitsFor what = WaitsFor::kRoom;
  bool operator==(const Waiting&) const = default;
};

struct AdmissionPlan {
  std::vector<Admitted> admitted;
  std::vector<Waiting> queue;  // the first is next
};

using Owners = std::map<OwnerId, OwnerTerms>;

struct AdmissionSituation {
  int64_t memory_bytes = 0;
  int64_t host_bytes = 0;
  std::span<const Terms> on_device;
  std::span<const Terms> on_node;  // also those on other devices
  int64_t patience_ns = 0;
  bool draining = false;  // nobody begins
  const Owners* owners = nullptr;
  std::map<OwnerId, int64_t> jobs = {};        // that run on the node, of each owner
  std::map<OwnerId, int64_t> fair_parts = {};  // of the device, of those at the top
};

AdmissionPlan PlanAdmissions(const AdmissionSituation& situation,
                             std::span<const Applicant> applicants, int64_t now_ns);

// The largest guarantee that fits at this priority beside the tenants; negative when not even
// nothing does.
int64_t RoomFor(int32_t priority, int64_t capacity, std::span<const Terms> tenants,
                Share Terms::*resource);

// The owner itself, and the one above it.
class OwnerPath {
 public:
  OwnerPath(const Owners& owners, OwnerId owner) {
    for (auto known = owners.find(owner); known != owners.end() && size_ < ids_.size();
         known = owners.find(known->second.above))
      ids_[size_++] = known->first;
  }
  const OwnerId* begin() const { return ids_.data(); }
  const OwnerId* end() const { return ids_.data() + size_; }
  bool empty() const { return size_ == 0; }
  OwnerId back() const { return ids_[size_ - 1]; }
  bool Has(OwnerId owner) const { return std::find(begin(), end(), owner) != end(); }

 private:
  std::array<OwnerId, 2> ids_ = {};
  size_t size_ = 0;
};

// What is guaranteed on a device to owners, but for that one and those above it, and not to their
// jobs already.
int64_t ReservedForOthers(const Owners& owners, int64_t device_bytes, OwnerId whose,
                          std::span<const Terms> tenants);

// An error: why these terms can never be admitted.
base::Status CheckAdmissible(const Terms& terms, int64_t memory_bytes);

}  // namespace spillway::agent
