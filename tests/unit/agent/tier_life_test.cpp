// Jobs that take turns and store evicted memory in files, under the node, in one thread on one
// clock. Their lease clients are real.
//
// A seed drives kills, stops, cut connections, agent restarts, full and failing disks, memory that
// does not leave, and operators. Nothing is ever budgeted twice, no process reads a byte that it
// did not write, and no job waits for longer than turns may last. Then the faults stop, and every
// job must finish its work.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "tests/unit/agent/tier_disk.h"
#include "tests/unit/agent/tier_process.h"

namespace spillway::agent {
namespace {

using protocol::MemoryChannel;

constexpr int64_t kMillisecond = 1'000'000, kSecondNs = 1000 * kMillisecond;
constexpr int64_t kCapacity = 16 * kGiB;
constexpr int64_t kHostCapacity = 24 * kGiB;
constexpr int64_t kQuota = 20 * kGiB, kDiskCapacity = 28 * kGiB;
constexpr size_t kMostProcesses = 5;
// A turn of any job here, with the swap before it, the wait for memory, and a late report.
constexpr int64_t kLongestTurnNs = 14 * kSecondNs;
constexpr int64_t kStarvingNs = 4 * kLongestTurnNs;
constexpr int64_t kLongestWaitNs = kStarvingNs + kMostProcesses * kLongestTurnNs;
constexpr int64_t kSettledNs = 2 * kSecondNs;

// Budgets as an agent's file keeps them over its restarts.
class TierRecord final : public HeldRecord {
 public:
  void AgentRestarts() {
    std::map<HolderOnDevice, Held> all = NotReturned();
    all.merge(noted_);
    before_ = std::move(all);
    noted_.clear();
    told_.clear();
  }

  Held Before(const HolderOnDevice& holder) const override {
    const auto known = before_.find(holder);
    return known == before_.end() ? Held{} : known->second;
  }
  void Note(const HolderOnDevice& holder, const Held& budgeted) override {
    told_.insert(holder);
    noted_.erase(holder);
    if (budgeted.memory_bytes > 0 || budgeted.host_bytes > 0) noted_[holder] = budgeted;
  }
  std::map<HolderOnDevice, Held> NotReturned() const override {
    std::map<HolderOnDevice, Held> absent = before_;
    std::erase_if(absent, [this](const auto& entry) { return told_.contains(entry.first); });
    return absent;
  }
  void ForgetBefore() override { before_.clear(); }

 private:
  std::map<HolderOnDevice, Held> before_, noted_;
  std::set<HolderOnDevice> told_;
};

// Tells of processes that the node itself knows without a session of theirs.
class TierServices final : public FakeServices {
 public:
  void WatchProcess(SessionId session, const Peer& peer) override {
    newly_watched.emplace_back(session, processes.at(peer.pid()));
  }
  std::vector<std::pair<SessionId, std::shared_ptr<FakeProcess>>> newly_watched;
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    config_ = FakeConfig();
    config_.resume_ms = 3000;
    config_.patience_s = 5;
    config_.usage_interval_ms = 100;
    config_.turn_quantum_ms = 300;
    config_.turn_cost_factor = 1;
    config_.turn_stuck_s = 5;
    config_.spill_after_ms = static_cast<int64_t>(random_.Below(3)) * 400;
    config_.limits.connections_per_second_per_user = 1000;
    SetTurns(random_.Below(3) == 0 ? TurnsChoice::kAuto : TurnsChoice::kAlways);
    StartAgent();
  }

  void Run(int64_t duration_ns) {
    for (const int64_t end_ns = now_ns_ + duration_ns; IsSound() && now_ns_ < end_ns;) {
      Disturb();
      Pass(static_cast<int64_t>(10 + random_.Below(60)) * kMillisecond);
    }
  }

  void ExpectRecovery() {
    if (node_ == nullptr) StartAgent();
    disk_.SetCapacity(kDiskCapacity);
    writes_fail_ = false;
    for (auto& process : processes_) {
      process->stopped = false;
      for (TierPart& part : process->parts) part.is_stuck = false;
      process->work_ns += 2 * kSecondNs;
    }
    const int64_t end_ns = now_ns_ + 300 * kSecondNs;
    while (IsSound() && now_ns_ < end_ns && IsAnyAtWork()) Pass(50 * kMillisecond);
    for (const auto& process : processes_)
      EXPECT_LE(process->work_ns, 0) << process->identity->pid << " does not finish";
    // A minute after the last work turns end, and the memory is shared anew.
    for (int i = 0; i < 1000 && IsSound(); ++i) Pass(90 * kMillisecond);
    if (IsSound()) ExpectAgreement();
    if (IsSound()) ExpectNothingIsLeft();
  }

  struct Met {
    int kills = 0, stops = 0, cuts = 0, restarts = 0, full_disks = 0, failing_disks = 0, stuck = 0;
    int64_t turns = 0, longest_wait_ns = 0;
    size_t files = 0;
  };
  Met met() const {
    Met met = met_;
    met.files = disk_.files_made();
    return met;
  }

 private:
  static bool IsSound() { return !testing::Test::HasFailure(); }

  // Jobs and the agent.

  void SetTurns(TurnsChoice choice) { config_.defaults.turns = static_cast<int64_t>(choice); }
  void StartAgent() {
    node_ = std::make_unique<Node>(config_, FakeDevices(), kHostCapacity, random_.Next(),
                                   &services_, now_ns_, &disk_, nullptr, &record_);
    node_->Restore(saved_);
    since_ns_ = now_ns_;
    budgeted_before_ = {};
  }
  void KillAgent() {
    ++met_.restarts;
    if (random_.Below(4) != 0) saved_ = node_->Saved();
    node_.reset();
    sessions_.clear();
    record_.AgentRestarts();
    disk_.AgentRestarts();
    comes_back_ns_ = now_ns_ + static_cast<int64_t>(random_.Below(2000)) * kMillisecond;
  }
  std::unique_ptr<protocol::Channel> Connect(TierProcess* process) {
    if (node_ == nullptr) return nullptr;
    auto [near, far] = MemoryChannel::Pair(64);
    const auto session =
        node_->Connected(std::move(far), std::make_unique<FakePeer>(process->identity), now_ns_);
    if (session) sessions_[*session] = process->identity;
    if (process->is_served()) return std::move(near);  // it only asks whether the agent is there
    if (session) process->session = *session;
    wires_[process] = near.get();
    return std::move(near);
  }
  bool IsKnown(const TierProcess& process) const {
    const auto found = sessions_.find(process.session);
    return process.is_served() && found != sessions_.end() && found->second == process.identity;
  }
  TierProcess* Any() {
    return processes_.empty() ? nullptr : processes_[random_.Below(processes_.size())].get();
  }

  // Events.

  void Disturb() {
    if (node_ == nullptr && now_ns_ >= comes_back_ns_) StartAgent();
    switch (random_.Below(64)) {
      case 0:
      case 1:
      case 2:
        return Arrive();
      case 3:
        return random_.Below(2) == 0 ? Kill() : void();
      case 4:
      case 5:
      case 6:
        return GiveWork();
      case 7:
        return StopOrGoOn();
      case 8:
        return Cut();
      case 9:
        if (node_ != nullptr && random_.Below(8) == 0) KillAgent();
        return;
      case 10:
        return ChangeDisk();
      case 11:
        return HoldMemory();
      case 12:
        return Operate();
      case 13:
        return random_.Below(8) == 0 ? Reload() : void();
      default:
        return;
    }
  }
  void Arrive() {
    if (processes_.size() >= kMostProcesses) return;
    auto identity = std::make_shared<FakeProcess>(FakeProcess{++last_pid_, 1000, true});
    const TierProcess* const kin = random_.Below(6) == 0 ? Any() : nullptr;
    const auto need = [&] { return static_cast<int64_t>(2 * kGiB + random_.Below(12 * kGiB)); };
    const bool has_both = random_.Below(6) == 0;
    services_.processes[identity->pid] = identity;
    processes_.push_back(std::make_unique<TierProcess>(
        [this](TierProcess* process) { return Connect(process); }, std::move(identity),
        kin == nullptr ? 0 : kin->leader,
        std::vector<int64_t>{need(), has_both ? need() : int64_t{0}}));
    processes_.back()->speed = random_.Below(4) == 0 ? 1 : 8;
    processes_.back()->work_ns = static_cast<int64_t>(1 + random_.Below(30)) * kSecondNs;
  }
  void Kill() {
    if (processes_.empty()) return;
    ++met_.kills;
    const auto victim = processes_.begin() + static_cast<int64_t>(random_.Below(processes_.size()));
    End(victim->get());
    processes_.erase(victim);
  }
  // Its pidfd or its channel tells of its end, whichever comes first.
  void End(TierProcess* process) {
    process->identity->alive = false;
    services_.processes.erase(process->identity->pid);
    wires_.erase(process);
    if (node_ != nullptr && IsKnown(*process) && random_.Below(2) == 0)
      node_->PeerEnded(process->session, now_ns_);
    held_ns_.erase(process);
  }
  void GiveWork() {
    TierProcess* const process = Any();
    if (process != nullptr && process->work_ns <= 0)
      process->work_ns = static_cast<int64_t>(random_.Below(40'000)) * kMillisecond;
  }
  void StopOrGoOn() {
    TierProcess* const process = Any();
    if (process == nullptr) return;
    process->stopped = !process->stopped && random_.Below(2) == 0;
    met_.stops += process->stopped;
  }
  void Cut() {
    TierProcess* const process = Any();
    if (process == nullptr || node_ == nullptr || !process->is_served()) return;
    wires_[process]->Sever();
    ++met_.cuts;
  }
  void ChangeDisk() {
    const bool is_full = random_.Below(3) == 0;
    disk_.SetCapacity(is_full ? static_cast<int64_t>(random_.Below(8 * kGiB)) : kDiskCapacity);
    writes_fail_ = random_.Below(4) == 0;
    met_.full_disks += is_full;
    met_.failing_disks += writes_fail_;
  }
  void HoldMemory() {
    TierProcess* const process = Any();
    if (process == nullptr) return;
    for (TierPart& part : process->parts) part.is_stuck = !part.is_stuck && random_.Below(2) == 0;
    met_.stuck += process->parts[0].is_stuck;
  }
  void Operate() {
    const TierProcess* const process = Any();
    if (process == nullptr || node_ == nullptr) return;
    protocol::SetBudget wanted;
    wanted.job = "local-" + std::to_string(process->leader);
    wanted.weight = 1 + static_cast<int32_t>(random_.Below(3));
    wanted.priority_plus_one = 1 + static_cast<int32_t>(random_.Below(2));
    wanted.host_bytes = static_cast<int64_t>(1 + random_.Below(16)) * kGiB;
    auto [near, far] = MemoryChannel::Pair();
    const auto session = node_->Connected(
        std::move(far),
        std::make_unique<FakePeer>(std::make_shared<FakeProcess>(FakeProcess{1, 0, true})),
        now_ns_);
    if (!session) return;
    near->Send(protocol::Hello{.role = protocol::Role::kOperator});
    near->Send(wanted);
    near->Sever();
    node_->Readable(*session, now_ns_);
  }
  void Reload() {
    SetTurns(static_cast<TurnsChoice>(random_.Below(3)));
    config_.spill_after_ms = static_cast<int64_t>(random_.Below(3)) * 400;
    if (node_ != nullptr) node_->SetConfig(config_);
  }

  // Time.

  void Pass(int64_t duration_ns) {
    now_ns_ += duration_ns;
    for (auto& process : processes_) process->Step(now_ns_, random_, writes_fail_);
    if (node_ != nullptr) {
      for (const auto& [session, process] : sessions_) node_->Readable(session, now_ns_);
      node_->Settle(now_ns_);
      for (auto& [session, process] : std::exchange(services_.newly_watched, {}))
        sessions_[session] = std::move(process);
      for (const Node::Gone& gone : node_->TakeGone()) {
        if (!gone.process_lives) sessions_.erase(gone.session);
      }
      for (const auto& [session, process] : sessions_) {
        if (!process->alive && random_.Below(4) == 0) node_->PeerEnded(session, now_ns_);
      }
    }
    CheckMemory();
    CheckWaits();
    if (node_ != nullptr && ++passes_ % 4 == 0) CheckTurns(node_->Report(now_ns_));
  }

  // Safety.

  void CheckMemory() {
    for (size_t device = 0; device < 2; ++device) {
      int64_t held_bytes = 0;
      for (const auto& process : processes_) held_bytes += process->parts[device].held_bytes;
      ASSERT_LE(held_bytes, kCapacity)
          << "device " << device << " is budgeted twice at " << now_ns_;
      if (node_ == nullptr) continue;
      const int64_t budgeted_bytes =
          node_->arbiter().BudgetedOn(DeviceId{static_cast<uint32_t>(device)});
      ASSERT_LE(budgeted_bytes, std::max(kCapacity, budgeted_before_[device])) << "at " << now_ns_;
      budgeted_before_[device] = budgeted_bytes;
    }
    ASSERT_LE(disk_.OpenBytesOfThisAgent(), kQuota) << "at " << now_ns_;
  }

  // A job with work waits at most kLongestWaitNs while it runs, is connected, and nothing restarts.
  void CheckWaits() {
    for (const auto& process : processes_) {
      const bool may_wait = process->stopped || process->work_ns <= 0 || node_ == nullptr ||
                            !IsKnown(*process) || !process->has_grant ||
                            now_ns_ - since_ns_ < 2 * kSettledNs;
      int64_t& since_ns = held_ns_.try_emplace(process.get(), now_ns_).first->second;
      if (may_wait || process->computed_at_ns == process->now_ns()) since_ns = now_ns_;
      met_.longest_wait_ns = std::max(met_.longest_wait_ns, now_ns_ - since_ns);
      ASSERT_LE(now_ns_ - since_ns, kLongestWaitNs)
          << "process " << process->identity->pid << " waits too long at " << now_ns_;
    }
  }

  // No process of the job is stopped or cut off, and one has work.
  bool IsAbleToRun(const std::string& job) const {
    bool has_work = false;
    for (const auto& process : processes_) {
      if ("local-" + std::to_string(process->leader) != job) continue;
      if (process->stopped || !IsKnown(*process)) return false;
      has_work = has_work || process->work_ns > 0;
    }
    return has_work;
  }
  void CheckTurns(const NodeReport& report) {
    ASSERT_LE(report.host_budgeted_bytes, std::max(kHostCapacity, host_budgeted_before_))
        << "at " << now_ns_;
    host_budgeted_before_ = report.host_budgeted_bytes;
    std::array<int64_t, 2> needs{}, waiting{};
    std::array<int, 2> runners{}, kept_free{};
    for (const JobReport& job : report.jobs) {
      std::set<TurnStanding> standings;
      for (const TenancyReport& one : job.tenancies) {
        const TurnStanding standing = one.turn.standing;
        if (standing == TurnStanding::kShares) continue;
        standings.insert(standing);
        met_.turns = std::max(met_.turns, one.turns_begun);
        ASSERT_LE(one.turn.length_ns + one.turn.swap_ns, kLongestTurnNs);
        const auto device = static_cast<size_t>(one.view.device);
        kept_free[device] += one.turn.reason == TurnReason::kOtherDevice;
        runners[device] += standing == TurnStanding::kRuns;
        needs[device] += standing == TurnStanding::kRuns ? one.footprint_bytes : 0;
        waiting[device] += standing == TurnStanding::kWaits && IsAbleToRun(job.name);
      }
      ASSERT_LE(standings.size(), 1u)
          << job.name << " has its turn on one of its devices only, at " << now_ns_;
    }
    for (size_t device = 0; device < 2; ++device) {
      CheckLasts(needs_ns_[device], runners[device] > 1 && needs[device] > kCapacity, kSettledNs,
                 "the jobs that run together do not fit");
      CheckLasts(nobody_ns_[device],
                 runners[device] + kept_free[device] == 0 && waiting[device] > 0, 4 * kSettledNs,
                 "jobs wait, and none runs");
    }
  }
  // Facts need time to reach the agent.
  void CheckLasts(int64_t& since_ns, bool is_wrong, int64_t most_ns, const char* what) {
    if (!is_wrong || now_ns_ - since_ns > 100 * kSecondNs) since_ns = now_ns_;
    ASSERT_LE(now_ns_ - since_ns, most_ns) << what << ", at " << now_ns_;
  }

  // Recovery.

  bool IsAnyAtWork() const {
    return std::any_of(processes_.begin(), processes_.end(),
                       [](const auto& process) { return process->work_ns > 0; });
  }
  // Every process has heard what the agent thinks of it.
  void ExpectAgreement() {
    const NodeReport report = node_->Report(now_ns_);
    int64_t file_bytes = 0;
    for (const auto& process : processes_) {
      ASSERT_TRUE(IsKnown(*process)) << process->identity->pid;
      const std::string name = "local-" + std::to_string(process->leader);
      const auto job = std::find_if(report.jobs.begin(), report.jobs.end(),
                                    [&](const JobReport& one) { return one.name == name; });
      ASSERT_NE(job, report.jobs.end());
      for (const TenancyReport& one : job->tenancies) {
        const TierPart& part = process->parts[one.device_number];
        if (part.need_bytes == 0) continue;
        EXPECT_EQ(part.turn.Waits(), one.turn.standing == TurnStanding::kWaits) << name;
        EXPECT_LE(part.held_bytes, part.granted_bytes) << name;
        EXPECT_LE(part.granted_bytes, one.view.budgeted_bytes) << name;
      }
      for (const TierPart& part : process->parts) file_bytes += part.stored_bytes();
    }
    EXPECT_EQ(file_bytes > 0, report.spill_used_bytes > 0);
    EXPECT_LE(file_bytes, report.spill_used_bytes);
  }
  void ExpectNothingIsLeft() {
    for (auto& process : processes_) End(process.get());
    processes_.clear();
    for (int i = 0; i < 100; ++i) Pass(50 * kMillisecond);
    const NodeReport report = node_->Report(now_ns_);
    EXPECT_EQ(report.jobs.size(), 0u);
    EXPECT_EQ(report.sessions, 0u);
    EXPECT_EQ(report.devices[0].budgeted_bytes + report.devices[1].budgeted_bytes, 0);
    EXPECT_EQ(report.host_budgeted_bytes, 0);
    EXPECT_EQ(report.spill_used_bytes, 0);
    EXPECT_EQ(disk_.OpenBytes(), 0) << "a file is open that no process has";
  }

  base::Prng random_;
  Config config_;
  TierServices services_;
  TierDisk disk_{kQuota, kDiskCapacity};
  TierRecord record_;
  SavedState saved_;
  int64_t now_ns_ = 1'000'000 * kMillisecond;
  std::unique_ptr<Node> node_;
  int64_t since_ns_ = 0, comes_back_ns_ = 0;
  std::map<SessionId, std::shared_ptr<FakeProcess>> sessions_;  // those that the node knows
  std::map<TierProcess*, MemoryChannel*> wires_;
  std::vector<std::unique_ptr<TierProcess>> processes_;
  std::map<const TierProcess*, int64_t> held_ns_;  // since when its work waits
  std::array<int64_t, 2> budgeted_before_{}, needs_ns_{}, nobody_ns_{};
  int64_t host_budgeted_before_ = 0;
  bool writes_fail_ = false;
  uint64_t passes_ = 0;
  pid_t last_pid_ = 100;
  Met met_;
};

// SPILLWAY_CHAOS_SEEDS=FIRST..LAST selects other seeds.
std::pair<uint64_t, uint64_t> Seeds() {
  unsigned long long first = 1, last = 20;
  const char* const asked = std::getenv("SPILLWAY_CHAOS_SEEDS");
  if (asked != nullptr && std::sscanf(asked, "%llu..%llu", &first, &last) < 2) last = first;
  return {first, last};
}

TEST(TierLifeTest, NoJobOfARandomLifeWaitsForEverOrReadsAWrongByte) {
  const auto [first, last] = Seeds();
  const auto begin = std::chrono::steady_clock::now();
  World::Met all;
  for (uint64_t seed = first; seed <= last && !HasFailure(); ++seed) {
    World world(seed);
    world.Run(120 * kSecondNs);
    if (!HasFailure()) world.ExpectRecovery();
    EXPECT_FALSE(HasFailure()) << "seed " << seed;
    const World::Met met = world.met();
    all.kills += met.kills;
    all.stops += met.stops;
    all.cuts += met.cuts;
    all.restarts += met.restarts;
    all.full_disks += met.full_disks;
    all.failing_disks += met.failing_disks;
    all.stuck += met.stuck;
    all.turns += met.turns;
    all.files += met.files;
    all.longest_wait_ns = std::max(all.longest_wait_ns, met.longest_wait_ns);
  }
  EXPECT_GT(all.turns, static_cast<int64_t>(last - first)) << "hardly any turns";
  EXPECT_GT(all.files, last - first) << "hardly any files";
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf(
      "seeds %llu to %llu: %d kills, %d stops, %d cut connections, %d agents killed, %d full "
      "disks, "
      "%d failing disks, %d times memory that stays; %lld turns of a job at most, summed, %zu "
      "files, longest wait %lld s; in %.1f s\n",
      static_cast<unsigned long long>(first), static_cast<unsigned long long>(last), all.kills,
      all.stops, all.cuts, all.restarts, all.full_disks, all.failing_disks, all.stuck,
      static_cast<long long>(all.turns), all.files,
      static_cast<long long>(all.longest_wait_ns / kSecondNs), took.count());
}

}  // namespace
}  // namespace spillway::agent
