// Decides which waiting jobs may begin on a device, and in which order the others wait. Pure.
//
// An applicant is admitted when its guarantee fits beside guarantees of equal and higher priority
// and floors of lower priority. Lower guarantees can be preempted, floors cannot.
//
// Invariants
//  1. Admitted guarantees of one priority and above, and the floors below, never exceed the device.
//  2. Higher priority goes first, then earlier arrival. A job that fits may pass one that does not.
//  3. No job passes one that has waited for `patience_ns`: that one gets the next free memory.
//  4. An owner's guarantee is kept free for its jobs. The number of its jobs, and the sum of their
//     guarantees and floors, stay within the owner's limits.
//  5. The floors of an owner's jobs stay within its fair part: floors are never revoked. Exempt are
//     an owner's only job and jobs that have waited for `patience_ns`. A job that waits because of
//     its own owner blocks no other job.
//  6. A job that is admitted on another device waits here only for its floor: its guarantee is
//     reduced.
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

enum class WaitsFor : uint8_t { kMemory, kOwnersJobs, kOwnersLimit, kOwnersPart };

struct Waiting {
  uint64_t number = 0;
  WaitsFor what = WaitsFor::kMemory;
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
  std::span<const Terms> on_node;  // also on other devices
  int64_t patience_ns = 0;
  bool draining = false;  // nobody is admitted
  const Owners* owners = nullptr;
  std::map<OwnerId, int64_t> jobs = {};        // jobs that run on the node
  std::map<OwnerId, int64_t> fair_parts = {};  // of the device, by topmost owner
};

AdmissionPlan PlanAdmissions(const AdmissionSituation& situation,
                             std::span<const Applicant> applicants, int64_t now_ns);

// Negative: even zero does not fit.
int64_t FreeFor(int32_t priority, int64_t capacity, std::span<const Terms> tenants,
                Share Terms::*resource);

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

// Owners' guarantees on a device beyond their jobs' own, without those of `whose` and its account.
int64_t ReservedForOthers(const Owners& owners, int64_t device_bytes, OwnerId whose,
                          std::span<const Terms> tenants);

base::Status CheckAdmissible(const Terms& terms, int64_t memory_bytes);

}  // namespace spillway::agent
