// Random jobs with guarantees of device and host memory. Some report arbitrary use. Nothing is
// budgeted twice, the arbiter comes to rest, and then every job has its guarantee.
#include <gtest/gtest.h>

#include <optional>

#include "agent/arbiter/arbiter.h"
#include "base/prng.h"
#include "base/units.h"
#include "tests/unit/agent/units.h"

namespace spillway::agent {
namespace {

using base::kGibibyte;
using base::kMebibyte;

constexpr int64_t kSmallDeviceBytes = 16 * kGibibyte, kSmallHostBytes = 32 * kGibibyte;
constexpr int kMostJobs = 7;

ArbiterRules RulesWithoutHeadroom() {
  ArbiterRules rules;
  rules.headroom_bytes = 0;
  return rules;
}

class Jobs {
 public:
  Jobs(uint64_t seed, bool has_priorities)
      : random_(seed), has_priorities_(has_priorities), arbiter_(RulesWithoutHeadroom()) {
    arbiter_.SetDevice(kDevice, kSmallDeviceBytes);
    arbiter_.SetHost(kSmallHostBytes);
  }

  void Run() {
    for (int step = 0; step < 200 && !testing::Test::HasFailure(); ++step) {
      Disturb();
      now_ns_ += static_cast<int64_t>(random_.Below(2 * kSecond));
      Decide();
    }
    ComeToRest();
    if (!has_priorities_) CheckGuarantees();
  }

 private:
  struct Process {
    Demand demand;
    bool lies = false;
    std::optional<GrantDecision> grant;
    int64_t holds_bytes = 0, holds_host_bytes = 0;
    bool obeyed = true;
  };

  int64_t UpTo(int64_t most) {
    return static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most + 1)));
  }
  int64_t InMebibytes(int64_t most_bytes) { return UpTo(most_bytes / kMebibyte) * kMebibyte; }

  void Disturb() {
    const TenantProcess key{JobId{1 + random_.Below(kMostJobs)},
                            SessionId{1 + random_.Below(2 * kMostJobs)}, kDevice};
    const auto known = processes_.find(key);
    switch (random_.Below(8)) {
      case 0:
        if (known == processes_.end()) return;
        processes_.erase(known);
        return arbiter_.Leave(key);
      case 1:
      case 2:
        return Arrive(key);
      case 3:
        return arbiter_.ChangeTerms(key.job, kDevice, AllowedTerms(key.job));
      case 4:
      case 5:
        if (known == processes_.end()) return;
        Want(known->second);
        return arbiter_.Use(key, known->second.demand);
      default:
        if (known != processes_.end()) Obey(key, known->second, random_.Below(3) == 0);
    }
  }
  void Arrive(const TenantProcess& key) {
    for (const auto& [other, process] : processes_) {
      if (other.session == key.session) return;
    }
    Process& process = processes_[key];
    process.lies = random_.Below(3) == 0;
    Want(process);
    const Held says =
        process.lies ? Held{InMebibytes(2 * kSmallDeviceBytes), InMebibytes(2 * kSmallHostBytes)}
                     : Held{};
    arbiter_.Join(key, AllowedTerms(key.job), process.demand, now_ns_, says);
  }
  void Want(Process& process) {
    process.demand.wanted_bytes = InMebibytes(12 * kGibibyte);
    process.demand.active = random_.Below(4) != 0;
    process.demand.host_need_bytes = random_.Below(3) == 0 ? -1 : InMebibytes(20 * kGibibyte);
    process.demand.host_bytes =
        process.lies ? InMebibytes(2 * kSmallHostBytes) : process.holds_host_bytes / 2;
    process.demand.unmovable_bytes = process.lies ? InMebibytes(2 * kSmallDeviceBytes) : 0;
  }
  // Like the node, changes terms only when the arbiter accepts them.
  Terms AllowedTerms(JobId job) {
    Terms terms;
    terms.memory = {256 * kMebibyte, InMebibytes(4 * kGibibyte),
                    kGibibyte * 4 + InMebibytes(12 * kGibibyte)};
    terms.host = {0, InMebibytes(8 * kGibibyte), kGibibyte * 8 + InMebibytes(24 * kGibibyte)};
    terms.link = {0, 0, kWholeLink};
    terms.weight = 1 + static_cast<int32_t>(random_.Below(4));
    terms.priority = has_priorities_ ? static_cast<int32_t>(random_.Below(3)) : 0;
    for (const TenancyView& view : arbiter_.Tenancies()) {
      if (view.job != job) continue;
      if (view.state != TenancyState::kAdmitted || !arbiter_.CheckTerms(job, kDevice, terms).ok())
        return view.terms;
      // The host guarantee is not checked: an admitted job gets the host memory that others leave.
      terms.host.guaranteed = view.terms.host.guaranteed;
    }
    return terms;
  }

  void Obey(const TenantProcess& key, Process& process, bool half_way) {
    if (!process.grant) return;
    const auto obey = [&](int64_t& holds, int64_t budget) {
      const bool stops = half_way && holds > budget;
      holds = stops ? holds - (holds - budget) / 2 : budget;
      return !stops;
    };
    const bool is_done = obey(process.holds_bytes, process.grant->memory_bytes);
    process.obeyed = obey(process.holds_host_bytes, process.grant->host_bytes) && is_done;
    arbiter_.Obeyed(key, process.grant->serial, process.holds_bytes, process.holds_host_bytes);
  }

  bool Decide() {
    const Decisions decisions = arbiter_.Decide(now_ns_);
    for (const GrantDecision& grant : decisions.grants) {
      Process& process = processes_.at(grant.process);
      process.grant = grant;
      process.obeyed = false;
    }
    CheckAccounts();
    return !decisions.grants.empty();
  }
  void CheckAccounts() {
    ASSERT_LE(arbiter_.BudgetedOn(kDevice), kSmallDeviceBytes);
    ASSERT_LE(arbiter_.BudgetedOnHost(), kSmallHostBytes);
    int64_t held = 0, host_held = 0;
    for (const auto& [key, process] : processes_) {
      held += process.holds_bytes;
      host_held += process.holds_host_bytes;
      ASSERT_LE(process.holds_bytes, arbiter_.BudgetedTo(key));
      ASSERT_LE(process.holds_host_bytes, arbiter_.HostBudgetedTo(key));
    }
    ASSERT_LE(held, kSmallDeviceBytes);
    ASSERT_LE(host_held, kSmallHostBytes);
    for (const TenancyView& view : arbiter_.Tenancies()) {
      ASSERT_LE(view.processes_budgeted_bytes, view.budgeted_bytes);
      ASSERT_LE(view.host_granted_bytes, view.host_budgeted_bytes);
    }
  }

  void ComeToRest() {
    bool is_moving = true;
    for (int round = 0; round < 300 && is_moving && !testing::Test::HasFailure(); ++round) {
      is_moving = false;
      for (auto& [key, process] : processes_) {
        if (process.obeyed) continue;
        Obey(key, process, false);
        is_moving = true;
      }
      now_ns_ += kSecond;
      is_moving |= Decide();
    }
    ASSERT_FALSE(is_moving) << "it never comes to rest";
  }

  void CheckGuarantees() {
    for (const TenancyView& view : arbiter_.Tenancies()) {
      if (view.state != TenancyState::kAdmitted) continue;
      int64_t wanted = 0, host_wanted = 0;
      for (const auto& [key, process] : processes_) {
        if (key.job != view.job) continue;
        const Demand& demand = process.demand;
        const int64_t granted = process.grant ? process.grant->memory_bytes : 0;
        const int64_t need =
            demand.host_need_bytes < 0 ? demand.wanted_bytes : demand.host_need_bytes - granted;
        wanted += demand.wanted_bytes;
        host_wanted += std::max({demand.host_bytes, need, int64_t{0}});
      }
      const auto job = static_cast<uint64_t>(view.job);
      if (view.active) {
        EXPECT_GE(view.granted_bytes, std::min(view.terms.memory.guaranteed, wanted))
            << "of the device, job " << job;
      }
      EXPECT_GE(view.granted_bytes, std::min(view.terms.memory.floor, wanted))
          << "of the device, job " << job;
      EXPECT_GE(view.host_granted_bytes, std::min(view.terms.host.guaranteed, host_wanted))
          << "of the host, job " << job;
    }
  }

  base::Prng random_;
  const bool has_priorities_;
  Arbiter arbiter_;
  int64_t now_ns_ = 0;
  std::map<TenantProcess, Process> processes_;
};

TEST(ArbiterPropertyTest, EveryJobGetsItsGuaranteeOnceAllObeyWhateverLiarsReport) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Jobs(seed, false).Run();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(ArbiterPropertyTest, WithPrioritiesItBudgetsNothingTwiceAndComesToRest) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Jobs(seed, true).Run();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace spillway::agent
