// Shared by the arbiter's tests: a device of 16 GiB and jobs that obey.
#pragma once

#include <gtest/gtest.h>

#include "agent/arbiter/arbiter.h"
#include "base/units.h"
#include "tests/unit/agent/units.h"

namespace spillway::agent {

using base::kGibibyte;
using base::kMebibyte;

inline constexpr DeviceId kOther{1};

inline ArbiterRules Rules() {
  ArbiterRules rules;
  rules.step_bytes = 64 * kMebibyte;
  rules.headroom_bytes = 0;
  return rules;
}

inline Terms Plain(int64_t guaranteed_gib = 0) {
  Terms terms;
  terms.memory = {512 * kMebibyte, guaranteed_gib * kGibibyte, 16 * kGibibyte};
  terms.host = {0, 0, 64 * kGibibyte};
  terms.link = {0, 0, kWholeLink};
  return terms;
}

inline TenantProcess ProcessOf(uint64_t job, uint64_t session = 0, DeviceId device = kDevice) {
  return {JobId{job}, SessionId{session != 0 ? session : job}, device};
}

// With the eighth that the arbiter adds, the demand is a whole number of gibibytes.
inline Demand Wants(int64_t gib, bool active = true) {
  return {gib * kGibibyte / 9 * 8, 0, 0, active};
}

class ArbiterTest : public testing::Test {
 protected:
  ArbiterTest() : arbiter_(Rules()) {
    arbiter_.SetDevice(kDevice, 16 * kGibibyte);
    arbiter_.SetDevice(kOther, 16 * kGibibyte);
    arbiter_.SetHost(64 * kGibibyte);
  }

  Decisions Decide() { return arbiter_.Decide(now_ns_); }
  void Obey(const GrantDecision& grant) {
    arbiter_.Obeyed(grant.process, grant.serial, grant.memory_bytes, grant.host_bytes);
  }
  void Settle() {
    for (Decisions decisions = Decide(); !decisions.grants.empty(); decisions = Decide()) {
      for (const GrantDecision& grant : decisions.grants) Obey(grant);
    }
  }
  TenancyView View(uint64_t job, DeviceId device = kDevice) const {
    for (const TenancyView& view : arbiter_.Tenancies()) {
      if (view.job == JobId{job} && view.device == device) return view;
    }
    ADD_FAILURE() << "no tenancy of job " << job;
    return {};
  }
  int64_t GibOf(uint64_t job) const {
    return (View(job).granted_bytes + kGibibyte / 100) / kGibibyte;  // tolerates rounding
  }

  Arbiter arbiter_;
  int64_t now_ns_ = 0;
};

}  // namespace spillway::agent
