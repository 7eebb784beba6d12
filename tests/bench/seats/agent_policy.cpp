#include <algorithm>
#include <optional>

#include "agent/arbiter/arbiter.h"
#include "tests/bench/seats/policy.h"

namespace spillway::seats {
namespace {

using namespace agent;

constexpr DeviceId kDevice{0};
// As agent/node/sessions/device_turns and its jobs have them.
constexpr int64_t kIdleNs = 100'000'000, kShortestLookNs = 20'000'000;
constexpr int64_t kFloorBytes = int64_t{64} << 20;
constexpr int64_t kHostBytes = int64_t{1} << 50;  // plenty

TenantProcess ProcessOf(size_t job) { return {JobId{job + 1}, SessionId{job + 1}, kDevice}; }

Terms TermsOf(const Job& job) {
  Terms terms;
  terms.memory = {kFloorBytes, 0, job.kind.need_bytes};
  terms.host = {0, 0, kHostBytes};
  terms.link = {0, 0, kWholeLink};
  return terms;
}

class AgentPolicy : public Policy {
 public:
  explicit AgentPolicy(const std::optional<TurnRules>& rules)
      : takes_turns_(rules.has_value()), arbiter_(ArbiterRules{}) {
    if (rules) turns_.SetRules(*rules);
  }

  void Decide(Device& device) override {
    if (processes_.empty()) Join(device);
    const bool has_news = Report(device);
    if (takes_turns_ && (has_news || device.now_ns() >= next_look_ns_)) DivideTurns(device);
    for (const GrantDecision& grant : arbiter_.Decide(device.now_ns()).grants) {
      const size_t i = static_cast<size_t>(grant.process.job) - 1;
      processes_[i].serial = grant.serial;
      device.jobs()[i].budget_bytes = grant.memory_bytes;
      processes_[i].confirmed_bytes = -1;
    }
    for (size_t i = 0; i < processes_.size(); ++i) Permit(device.jobs()[i], i);
  }

 private:
  struct Process {
    uint64_t serial = 0;
    int64_t confirmed_bytes = -1;
    bool is_active = false;
  };

  void Join(const Device& device) {
    arbiter_.SetDevice(kDevice, device.memory_bytes());
    arbiter_.SetHost(kHostBytes);
    processes_.resize(device.jobs().size());
    for (size_t i = 0; i < processes_.size(); ++i) {
      const Job& job = device.jobs()[i];
      processes_[i].is_active = job.HasWork();
      arbiter_.Join(ProcessOf(i), TermsOf(job), DemandOf(job, i), device.now_ns());
    }
  }

  Demand DemandOf(const Job& job, size_t i) const {
    Demand demand;
    demand.wanted_bytes = job.kind.need_bytes;
    demand.active = processes_[i].is_active;
    return demand;
  }

  // True: a job woke or went idle.
  bool Report(const Device& device) {
    bool has_news = false;
    for (size_t i = 0; i < processes_.size(); ++i) {
      const Job& job = device.jobs()[i];
      Process& process = processes_[i];
      const bool is_active = job.HasWork() || device.now_ns() - job.worked_ns < kIdleNs;
      if (is_active != process.is_active) {
        has_news = true;
        process.is_active = is_active;
        arbiter_.Use(ProcessOf(i), DemandOf(job, i));
      }
      const int64_t held_bytes = std::max(job.resident_bytes, job.budget_bytes);
      if (process.serial == 0 || held_bytes == process.confirmed_bytes) continue;
      process.confirmed_bytes = held_bytes;
      arbiter_.Obeyed(ProcessOf(i), process.serial, held_bytes, 0);
    }
    return has_news;
  }

  void DivideTurns(const Device& device) {
    if (device.now_ns() < looked_ns_ + kShortestLookNs) {
      next_look_ns_ = looked_ns_ + kShortestLookNs;
      return;
    }
    looked_ns_ = device.now_ns();
    const TurnDevice facts = {device.memory_bytes(), device.rates().in};
    turns_.Update({&facts, 1}, TurnJobs(device), device.now_ns());
    next_look_ns_ = turns_.NextWake();
    int64_t swap_ns = 0;
    for (size_t i = 0; i < processes_.size(); ++i) {
      const TurnView view = turns_.ViewOf(JobId{i + 1}, kDevice);
      arbiter_.SetWaitsForTurn(JobId{i + 1}, kDevice, view.standing == TurnStanding::kWaits);
      swap_ns = std::max(swap_ns, view.swap_ns);
    }
    const int64_t return_within_ns = ArbiterRules{}.return_within_ns + 2 * swap_ns;
    arbiter_.SetReturnWithin(kDevice, turns_.IsOn(kDevice) ? return_within_ns : 0);
  }

  std::vector<TurnJob> TurnJobs(const Device& device) const {
    const std::vector<TenancyView> tenancies = arbiter_.Tenancies();  // by job
    std::vector<TurnJob> jobs;
    for (size_t i = 0; i < processes_.size(); ++i) {
      const Job& job = device.jobs()[i];
      TurnPart part;
      part.choice = TurnsChoice::kAlways;
      part.need_bytes = job.kind.need_bytes;
      part.stays_bytes = kFloorBytes;
      part.budgeted_bytes = arbiter_.BudgetedTo(ProcessOf(i));
      TurnJob facts;
      facts.id = JobId{i + 1};
      facts.active = processes_[i].is_active;
      facts.heard_ns = device.now_ns();
      facts.is_overdue = tenancies[i].overdue;
      facts.operations = job.progress_ns;
      facts.parts.push_back(part);
      jobs.push_back(facts);
    }
    return jobs;
  }

  TurnStanding StandingOf(size_t i) const { return turns_.ViewOf(JobId{i + 1}, kDevice).standing; }
  void Permit(Job& job, size_t i) const {
    job.may_compute = StandingOf(i) != TurnStanding::kWaits;
    job.streams = StandingOf(i) == TurnStanding::kShares;
  }

  const bool takes_turns_;
  Turns turns_;
  Arbiter arbiter_;
  std::vector<Process> processes_;
  int64_t looked_ns_ = -kShortestLookNs, next_look_ns_ = 0;
};

}  // namespace

std::unique_ptr<Policy> MakeShares() { return std::make_unique<AgentPolicy>(std::nullopt); }
std::unique_ptr<Policy> MakeTurns(const agent::TurnRules& rules) {
  return std::make_unique<AgentPolicy>(rules);
}

}  // namespace spillway::seats
