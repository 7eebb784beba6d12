// Counts the grants that idle and waking jobs cost their neighbours, on a virtual clock. Processes
// confirm returned memory in pieces, as interposer/lease/lease_client.h does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "agent/arbiter/arbiter.h"
#include "base/prng.h"
#include "base/units.h"
#include "tests/unit/agent/units.h"

namespace spillway::agent {
namespace {

using base::kGibibyte;
using base::kMebibyte;

constexpr int64_t kTurnNs = 1'000'000;
constexpr int64_t kFloorBytes = kMebibyte;
constexpr int64_t kPieceBytes = 64 * kMebibyte;  // given back in one turn

// Jobs 1 to `jobs`, each of one process that wants more than its share.
class ToggledNode {
 public:
  ToggledNode(int64_t device_bytes, uint64_t jobs) : device_bytes_(device_bytes) {
    arbiter_.SetDevice(kDevice, device_bytes);
    arbiter_.SetHost(8 * device_bytes);
    Terms terms;
    terms.memory = {kFloorBytes, 0, device_bytes};
    terms.host = {0, 0, 8 * device_bytes};
    terms.link = {0, 0, kWholeLink};
    for (uint64_t job = 1; job <= jobs; ++job) {
      processes_[job].demand = {.wanted_bytes = device_bytes, .host_need_bytes = 0};
      arbiter_.Join(ProcessOf(job), terms, processes_[job].demand, now_ns_);
    }
    ComeToRest();
  }

  // Returns the number of grants until the node is at rest.
  int Toggle(uint64_t job) {
    Demand& demand = processes_.at(job).demand;
    demand.active = !demand.active;
    arbiter_.Use(ProcessOf(job), demand);
    return ComeToRest();
  }

  int ComeToRest() {
    int told = 0, turns = 0;
    for (bool is_moving = true; is_moving; now_ns_ += kTurnNs) {
      const Decisions decisions = arbiter_.Decide(now_ns_);
      for (const GrantDecision& grant : decisions.grants) Take(grant);
      told += static_cast<int>(decisions.grants.size());
      is_moving = Obey() || !decisions.grants.empty();
      EXPECT_LE(Held(), device_bytes_);
      EXPECT_LE(arbiter_.BudgetedOn(kDevice), device_bytes_);
      EXPECT_TRUE(decisions.overdue.empty());
      if (++turns > 100'000) ADD_FAILURE() << "it never comes to rest";
      if (testing::Test::HasFailure()) return told;
    }
    return told;
  }

  void CheckShares() const {
    const int64_t awake = std::count_if(processes_.begin(), processes_.end(),
                                        [](const auto& one) { return one.second.demand.active; });
    const int64_t asleep_bytes = (static_cast<int64_t>(processes_.size()) - awake) * kFloorBytes;
    for (const auto& [job, process] : processes_) {
      if (!process.demand.active) continue;
      const int64_t share_bytes = (device_bytes_ - asleep_bytes) / awake;
      const int64_t had_bytes = process.grant->memory_bytes;
      EXPECT_LE(share_bytes - had_bytes, std::min(ArbiterRules().step_bytes, share_bytes / 32))
          << "job " << job;
    }
  }

 private:
  struct Process {
    Demand demand;
    std::optional<GrantDecision> grant;
    int64_t holds_bytes = 0, said_bytes = 0;
  };
  static TenantProcess ProcessOf(uint64_t job) { return {JobId{job}, SessionId{job}, kDevice}; }

  void Take(const GrantDecision& grant) {
    Process& process = processes_.at(static_cast<uint64_t>(grant.process.job));
    process.grant = grant;
    process.said_bytes = INT64_MAX;
  }
  bool Obey() {
    bool any = false;
    for (auto& [job, process] : processes_) {
      if (!process.grant) continue;
      const int64_t budget_bytes = process.grant->memory_bytes;
      process.holds_bytes = std::max(budget_bytes, process.holds_bytes - kPieceBytes);
      if (process.holds_bytes == process.said_bytes) continue;
      process.said_bytes = process.holds_bytes;
      arbiter_.Obeyed(ProcessOf(job), process.grant->serial, process.holds_bytes,
                      process.grant->host_bytes);
      any = true;
    }
    return any;
  }
  int64_t Held() const {
    int64_t sum = 0;
    for (const auto& [job, process] : processes_) sum += process.holds_bytes;
    return sum;
  }

  const int64_t device_bytes_;
  Arbiter arbiter_{ArbiterRules{.return_within_ns = 10 * base::kNanosPerSecond}};
  std::map<uint64_t, Process> processes_;
  int64_t now_ns_ = 0;
};

// Returns the most grants that one change costs.
int MostGrantsForATogglingJob(int64_t device_bytes, uint64_t jobs) {
  ToggledNode node(device_bytes, jobs);
  int most = 0;
  for (int i = 0; i < 10; ++i) most = std::max(most, node.Toggle(1));
  return most;
}

// Regression: each neighbour received a grant for 80 KiB.
TEST(ArbiterToggleTest, ThousandNeighboursReceiveNoGrantWhenOneJobFallsAsleep) {
  EXPECT_LE(MostGrantsForATogglingJob(80 * kGibibyte, 1000), 2);
}

// Regression: returned memory was granted in pieces of 64 MiB: 5,122 grants.
TEST(ArbiterToggleTest, LargeTransfersNeedFewGrants) {
  EXPECT_LE(MostGrantsForATogglingJob(640 * kGibibyte, 2), 40);
  EXPECT_LE(MostGrantsForATogglingJob(80 * kGibibyte, 4), 60);
}

TEST(ArbiterToggleTest, FewGrantsKeepAllJobsNearTheirShareWhenJobsSleepOrWake) {
  for (const uint64_t jobs : {4, 20, 100, 1000}) {
    ToggledNode node(80 * kGibibyte, jobs);
    base::Prng random(jobs);
    constexpr int toggles = 300;
    int told = 0;
    for (int i = 0; i < toggles && !HasFailure(); ++i) {
      told += node.Toggle(1 + random.Below(jobs));
      node.CheckShares();
    }
    EXPECT_LE(told, 60 * toggles) << jobs << " jobs";
    std::printf("%lu jobs: %.1f grants told for one that falls asleep or wakes\n", jobs,
                double(told) / toggles);
  }
}

void Settle(Arbiter* arbiter) {
  for (Decisions decisions = arbiter->Decide(0); !decisions.grants.empty();
       decisions = arbiter->Decide(0)) {
    for (const GrantDecision& grant : decisions.grants)
      arbiter->Obeyed(grant.process, grant.serial, grant.memory_bytes, grant.host_bytes);
  }
}

TEST(ArbiterToggleTest, MemoryOfAnEndedProcessStaysWithItsJobUntilAnotherLacksAGrantsWorth) {
  // Given forty jobs that lack the memory of a job of two processes
  constexpr int64_t wanted_bytes = 400 * kMebibyte, needed_bytes = wanted_bytes + wanted_bytes / 8;
  constexpr uint64_t jobs = 40, of_two = 100;
  Arbiter arbiter{ArbiterRules{.headroom_bytes = 0}};
  arbiter.SetDevice(kDevice, (jobs + 1) * kGibibyte);
  const Terms terms = {
      .memory = {kFloorBytes, 0, (jobs + 1) * kGibibyte}, .host = {}, .link = {0, 0, kWholeLink}};
  const auto join = [&](uint64_t job, uint64_t session, int64_t bytes) {
    arbiter.Join({JobId{job}, SessionId{session}, kDevice}, terms, {.wanted_bytes = bytes}, 0);
    Settle(&arbiter);
  };
  const auto granted = [&] { return arbiter.Tenancies().back().granted_bytes; };
  join(of_two, 1, wanted_bytes);
  join(of_two, 2, wanted_bytes);
  for (uint64_t job = 1; job <= jobs; ++job) join(job, 10 + job, (jobs + 1) * kGibibyte);
  ASSERT_EQ(granted(), 2 * needed_bytes);

  // When one of the two ends, each of the forty could have 11 MiB more: not worth a grant
  arbiter.Leave({JobId{of_two}, SessionId{2}, kDevice});
  Settle(&arbiter);
  EXPECT_EQ(granted(), 2 * needed_bytes);
  EXPECT_EQ(arbiter.Tenancies().back().processes_budgeted_bytes, needed_bytes);

  join(jobs + 1, 99, (jobs + 1) * kGibibyte);
  EXPECT_EQ(granted(), needed_bytes);
}

}  // namespace
}  // namespace spillway::agent
