// Who of those that wait for a device may begin, and who is next.
//
// Pure. An applicant is admitted when its guarantee fits beside the guarantees of equal and higher priority and the floors of
// lower priority: lower guarantees can be preempted, floors cannot. A guarantee of host memory or of the link that does not fit is
// made smaller instead, as a job runs without it, only slower.
//
// Invariants
//  1. Admitted guarantees of one priority and above, and the floors below, never exceed the device.
//  2. Higher priority first, then earlier arrival; who fits may pass one that does not.
//  3. Nobody passes an applicant that has waited for `patience_ns`: it goes first, and the next free memory is its own.
//  4. A job that is admitted elsewhere does not wait while it holds other devices if its floor fits: it gets what guarantee there is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "agent/arbiter/terms.h"

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

struct AdmissionPlan {
  std::vector<Admitted> admitted;
  std::vector<uint64_t> queue;  // the first is next
};

struct AdmissionSituation {
  int64_t memory_bytes = 0;
  int64_t host_bytes = 0;
  std::span<const Terms> on_device;
  std::span<const Terms> on_node;  // also those on other devices
  int64_t patience_ns = 0;
  bool draining = false;  // nobody begins
};

AdmissionPlan PlanAdmissions(const AdmissionSituation& situation, std::span<const Applicant> applicants,
                             int64_t now_ns);

// The largest guarantee that fits at this priority beside the tenants; negative when not even nothing does.
int64_t RoomFor(int32_t priority, int64_t capacity, std::span<const Terms> tenants, Share Terms::*resource);

// Why these terms can never be admitted; empty when they can.
std::string WhyNever(const Terms& terms, int64_t memory_bytes);

}  // namespace spillway::agent
