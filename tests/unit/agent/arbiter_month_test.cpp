// Thirty days of random arrivals, phases, restarts and disobedience on one node.
#include <gtest/gtest.h>

#include <queue>

#include "agent/arbiter/arbiter.h"
#include "base/prng.h"
#include "base/units.h"
#include "tests/unit/agent/units.h"

namespace spillway::agent {
namespace {

using base::kGibibyte;

constexpr int64_t kHour = 3600 * kSecond;
constexpr int64_t kMonth = 30 * 24 * kHour;
constexpr int kDevices = 4;
constexpr int64_t kDeviceBytes = 80 * kGibibyte;
constexpr int64_t kHostBytes = 512 * kGibibyte;

class Month {
 public:
  explicit Month(uint64_t seed) : random_(seed), arbiter_(ArbiterRules{}) {
    for (uint32_t i = 0; i < kDevices; ++i) arbiter_.SetDevice(DeviceId{i}, kDeviceBytes);
    arbiter_.SetHost(kHostBytes);
    In(0, [this] { Arrive(); });
  }

  void Run() {
    while (!events_.empty() && !testing::Test::HasFailure()) {
      now_ns_ = events_.top().at_ns;
      const std::function<void()> act = events_.top().act;
      events_.pop();
      act();
      ++events_seen_;
      Decide();
    }
  }

  int64_t events_seen() const { return events_seen_; }
  int64_t jobs() const { return static_cast<int64_t>(last_job_); }
  int64_t admitted() const { return admitted_; }
  int64_t longest_wait_ns() const { return longest_wait_ns_; }
  bool is_over() const { return arbiter_.Tenancies().empty(); }

 private:
  struct Event {
    int64_t at_ns;
    uint64_t number;
    std::function<void()> act;
    bool operator<(const Event& other) const {
      return std::pair(at_ns, number) > std::pair(other.at_ns, other.number);
    }
  };
  struct Process {
    int64_t holds_bytes = 0;
    Demand demand;
    GrantDecision grant;
    bool begun = false;
    bool lies = false;  // reports arbitrary use
  };

  int64_t Below(int64_t end) {
    return static_cast<int64_t>(random_.Below(static_cast<uint64_t>(end)));
  }
  void In(int64_t delay_ns, std::function<void()> act) {
    events_.push({now_ns_ + delay_ns, ++last_event_, std::move(act)});
  }

  void Arrive() {
    if (now_ns_ < kMonth) In(1 + Below(20 * 60 * kSecond), [this] { Arrive(); });
    const JobId job{++last_job_};
    Terms terms;
    terms.memory = {kGibibyte, Below(2) != 0 ? 0 : Below(40) * kGibibyte,
                    (40 + Below(41)) * kGibibyte};
    terms.host = {0, Below(3) != 0 ? 0 : Below(60) * kGibibyte, 200 * kGibibyte};
    terms.link = {0, 0, kWholeLink};
    terms.weight = 1 + static_cast<int32_t>(Below(4));
    terms.priority = Below(10) == 0 ? 1 : 0;
    const int processes = Below(4) == 0 ? 3 : 1;
    for (int i = 0; i < processes; ++i) {
      const TenantProcess key{job, SessionId{++last_session_},
                              DeviceId{static_cast<uint32_t>(random_.Below(kDevices))}};
      Process& process = processes_[key];
      process.demand = {Below(60) * kGibibyte, 0, 0, true};
      process.lies = Below(8) == 0;
      arbiter_.Join(key, terms, process.demand, now_ns_);
      since_[key] = now_ns_;
    }
  }

  void Begin(const TenantProcess& key) {
    processes_[key].begun = true;
    longest_wait_ns_ = std::max(longest_wait_ns_, now_ns_ - since_[key]);
    ++admitted_;
    const int64_t runs_ns = kSecond + Below(2 * kHour);
    In(runs_ns, [this, key] { End(key); });
    In(Below(runs_ns), [this, key] { ChangeDemand(key); });
    In(Below(runs_ns), [this, key] { ChangeDemand(key); });
  }
  void End(const TenantProcess& key) {
    processes_.erase(key);
    arbiter_.Leave(key);
  }
  void ChangeDemand(const TenantProcess& key) {
    const auto found = processes_.find(key);
    if (found == processes_.end()) return;
    const int64_t need_bytes = Below(2) != 0 ? -1 : Below(90) * kGibibyte;
    found->second.demand = {Below(70) * kGibibyte, Below(kGibibyte), Below(kGibibyte),
                            Below(3) != 0, need_bytes};
    if (found->second.lies) {
      found->second.demand.unmovable_bytes = Below(2 * kDeviceBytes);
      found->second.demand.host_bytes = Below(2 * kHostBytes);
    }
    arbiter_.Use(key, found->second.demand);
  }
  // Some processes shrink by halves, five seconds apart.
  void Read(const GrantDecision& grant) {
    const auto found = processes_.find(grant.process);
    if (found == processes_.end()) return;
    found->second.grant = grant;
    Obey(grant.process);
  }
  void Obey(const TenantProcess& key) {
    const auto found = processes_.find(key);
    if (found == processes_.end()) return;
    Process& process = found->second;
    const int64_t budget_bytes = process.grant.memory_bytes;
    const bool half_way = process.holds_bytes > budget_bytes && Below(10) == 0;
    process.holds_bytes =
        half_way ? process.holds_bytes - (process.holds_bytes - budget_bytes) / 2 : budget_bytes;
    arbiter_.Obeyed(key, process.grant.serial, process.holds_bytes, process.grant.host_bytes);
    if (half_way) In(5 * kSecond, [this, key] { Obey(key); });
  }

  void Decide() {
    const Decisions decisions = arbiter_.Decide(now_ns_);
    ASSERT_TRUE(arbiter_.Decide(now_ns_).grants.empty())
        << "equal facts, another decision, at " << now_ns_;
    for (const GrantDecision& grant : decisions.grants) {
      if (!processes_[grant.process].begun) Begin(grant.process);
      // As on a socket, a process reads its grants in order.
      int64_t& reads_at_ns = reads_at_ns_[grant.process];
      reads_at_ns = std::max(reads_at_ns, now_ns_ + Below(3) * kSecond);
      events_.push({reads_at_ns, ++last_event_, [this, grant] { Read(grant); }});
      ASSERT_LE(grant.memory_bytes, kDeviceBytes);
    }
    if (arbiter_.NextWake() != INT64_MAX) {
      if (arbiter_.NextWake() > now_ns_ && arbiter_.NextWake() != next_wake_ns_) {
        next_wake_ns_ = arbiter_.NextWake();
        events_.push({next_wake_ns_, ++last_event_, [] {}});
      }
    }
    CheckAccounts();
  }

  void CheckAccounts() {
    for (uint32_t i = 0; i < kDevices; ++i) {
      ASSERT_LE(arbiter_.BudgetedOn(DeviceId{i}), kDeviceBytes)
          << "device " << i << " at " << now_ns_;
    }
    ASSERT_LE(arbiter_.BudgetedOnHost(), kHostBytes);
    if (events_seen_ % 16 != 0) return;
    for (const TenancyView& view : arbiter_.Tenancies())
      ASSERT_LE(view.processes_budgeted_bytes, view.budgeted_bytes);
    std::map<DeviceId, int64_t> held;
    for (const auto& [key, process] : processes_) {
      held[key.device] += process.holds_bytes;
      ASSERT_LE(process.holds_bytes, arbiter_.BudgetedTo(key));
    }
    for (const auto& [device, bytes] : held) ASSERT_LE(bytes, arbiter_.BudgetedOn(device));
  }

  base::Prng random_;
  Arbiter arbiter_;
  int64_t now_ns_ = 0, next_wake_ns_ = 0;
  std::priority_queue<Event> events_;
  std::map<TenantProcess, Process> processes_;
  std::map<TenantProcess, int64_t> since_, reads_at_ns_;
  uint64_t last_event_ = 0, last_job_ = 0, last_session_ = 0;
  int64_t events_seen_ = 0, admitted_ = 0, longest_wait_ns_ = 0;
};

TEST(ArbiterMonthTest, AMonthOfJobsKeepsAccountsExactAndStarvesNoJob) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Month month(seed);
    month.Run();

    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    EXPECT_GT(month.jobs(), 3000);
    EXPECT_TRUE(month.is_over()) << "everybody was admitted and has ended";
    EXPECT_LT(month.longest_wait_ns(), 12 * kHour);
    std::printf("seed %llu: %lld jobs, %lld processes admitted, %lld events, longest wait %lld s\n",
                static_cast<unsigned long long>(seed), static_cast<long long>(month.jobs()),
                static_cast<long long>(month.admitted()),
                static_cast<long long>(month.events_seen()),
                static_cast<long long>(month.longest_wait_ns() / kSecond));
  }
}

}  // namespace
}  // namespace spillway::agent
