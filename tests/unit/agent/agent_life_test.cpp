// The node, its host pool and real lease clients, in one thread on one clock.
//
// A seed drives demands, faults of clients, operators, clock jumps, and agent restarts with and
// without kept state. Nothing is ever budgeted or lent twice, and no user sees a byte of another
// user. Then the faults stop, and everything must recover.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/prng.h"
#include "tests/unit/agent/life_process.h"
#include "tests/unit/protocol/samples.h"

namespace spillway::agent {
namespace {

using protocol::MemoryChannel;

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kCapacity = 16 * kGiB;
constexpr int64_t kHostCapacity = 48 * kGiB;
constexpr size_t kMostProcesses = 24;

int OpenFiles() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) { StartAgent(); }

  std::unique_ptr<protocol::Channel> Connect(LifeProcess* process) {
    if (node_ == nullptr) return nullptr;
    auto [near, far] = MemoryChannel::Pair(16);
    const auto session =
        node_->Connected(std::move(far), std::make_unique<FakePeer>(process->identity), now_ns_);
    if (session) sessions_[*session] = process->identity;
    const bool only_asks_whether_it_is_there = process->is_served();
    if (only_asks_whether_it_is_there) return std::move(near);
    if (session) process->session = *session;
    wires_[process] = near.get();
    return std::move(near);
  }

  void Run(int events) {
    for (int i = 0; i < events && !testing::Test::HasFailure(); ++i) {
      Disturb();
      Pass(static_cast<int64_t>(random_.Below(30)) * kMillisecond);
    }
  }

  void RunUntilFaults(int faults) {
    while (faults_.all() < faults && !testing::Test::HasFailure()) Run(1000);
  }

  // Without faults the node comes to rest, and its records agree with the world to the byte.
  void ExpectRecovery() {
    if (node_ == nullptr) StartAgent();
    attackers_.clear();
    orphans_.clear();
    shares_.SetShortOfMemory(false);
    node_->SetConfig(Settings());
    for (auto& process : processes_) {
      process->stopped = false;
      process->LetGoOfReturned();
    }
    Operate(protocol::Control{protocol::Action::kUndrain, ""});
    for (int i = 0; i < 4000; ++i) Pass(20 * kMillisecond);
    int64_t budgeted = 0;
    for (const auto& process : processes_) {
      ASSERT_TRUE(process->is_served()) << "process " << process->identity->pid;
      ASSERT_TRUE(process->has_grant) << "process " << process->identity->pid << " waits for ever";
      ASSERT_LE(process->held_bytes, process->budget_bytes);
      budgeted += process->budget_bytes;
    }
    CheckSlabsOfAllProcesses();
    int64_t to_processes = 0, not_worth_telling = 0;
    for (const TenancyView& tenancy : node_->arbiter().Tenancies()) {
      to_processes += tenancy.processes_budgeted_bytes;
      not_worth_telling += std::min(ArbiterRules{}.step_bytes, tenancy.granted_bytes / 32);
    }
    EXPECT_EQ(budgeted, to_processes);
    // An ended process's memory stays with its job until another job lacks a grant's worth.
    const int64_t on_device = node_->arbiter().BudgetedOn(DeviceId{0});
    EXPECT_LE(budgeted, on_device);
    EXPECT_LE(on_device - budgeted, not_worth_telling);
    EXPECT_LE(on_device, kCapacity);
    EXPECT_EQ(node_->session_count(), processes_.size())
        << "sessions are left of processes that are gone";
    for (auto& process : processes_) process->identity->alive = false;
    for (auto& process : processes_) node_->PeerEnded(process->session, now_ns_);
    processes_.clear();
    for (int i = 0; i < 100; ++i) Pass(20 * kMillisecond);
    EXPECT_EQ(node_->arbiter().BudgetedOn(DeviceId{0}), 0);
    EXPECT_EQ(node_->arbiter().BudgetedOnHost(), 0);
    EXPECT_EQ(shares_.FreeBytes(), kHostCapacity) << "slabs are left of processes that are gone";
    EXPECT_EQ(services_.started.size(), services_.ended.size() + jobs_of_killed_agents_);
  }

  struct Faults {
    int kills = 0, cuts = 0, stops = 0, attacks = 0, restarts = 0, jumps = 0, shortages = 0;
    int all() const { return kills + cuts + stops + attacks + restarts + jumps + shortages; }
  };
  const Faults& faults() const { return faults_; }

 private:
  static Config Settings() {
    Config config = FakeConfig();
    config.resume_ms = 3000;
    config.patience_s = 5;
    config.limits.connections_per_second_per_user = 1000;
    return config;
  }
  void StartAgent() {
    node_ = std::make_unique<Node>(Settings(), FakeDevices(), kHostCapacity, random_.Next(),
                                   &services_, now_ns_, &shares_);
    budgeted_before_ = host_budgeted_before_ = 0;
  }
  void KillAgent() {
    ++faults_.restarts;
    jobs_of_killed_agents_ += node_->Report(now_ns_).jobs.size();
    node_.reset();
    sessions_.clear();
    attackers_.clear();
    shares_.Restart(random_.Below(4) != 0);
    // Without a record the next agent does not know processes that were stopped for longer than it
    // waits.
    for (auto& process : processes_) process->stopped = false;
  }

  // Now, or in the middle of the next turn: messages may be unsaved, and messages from clients
  // unread.
  void KillAgentSoon() {
    if (random_.Below(2) == 0) return KillAgent();
    dies_after_ = random_.Below(sessions_.size() + 1);
  }

  void Disturb() {
    switch (random_.Below(20)) {
      case 0:
      case 1:
        return Arrive();
      case 2:
        return Kill();
      case 3:
      case 4:
      case 5:
      case 6:
        return Demand();
      case 7:
        return CloseConnection();
      case 8:
      case 9:
        return Attack();
      case 10:
        if (random_.Below(10) == 0 && node_ != nullptr) return KillAgentSoon();
        if (node_ == nullptr) StartAgent();
        return;
      case 11:
        if (LifeProcess* process = Any()) {
          process->stopped = IsKnown(*process) && !process->stopped && random_.Below(2) == 0;
          faults_.stops += process->stopped;
        }
        return;
      case 12:
        return OperateAtRandom();
      case 13:
        if (random_.Below(20) != 0) return;
        now_ns_ += (random_.Below(2) == 0 ? 3600'000 : 700) * kMillisecond;
        ++faults_.jumps;
        return;
      case 14: {
        const bool is_short = random_.Below(3) == 0;
        shares_.SetShortOfMemory(is_short);
        faults_.shortages += is_short;
        orphans_.clear();
        return;
      }
      default:
        return;
    }
  }

  bool IsKnown(const LifeProcess& process) const {
    const auto found = sessions_.find(process.session);
    return process.is_served() && found != sessions_.end() && found->second == process.identity;
  }
  LifeProcess* Any() {
    return processes_.empty() ? nullptr : processes_[random_.Below(processes_.size())].get();
  }
  void Arrive() {
    if (processes_.size() >= kMostProcesses) return;
    const pid_t pid = ++last_pid_;
    auto identity = std::make_shared<FakeProcess>(
        FakeProcess{pid, static_cast<uid_t>(1000 + random_.Below(3)), true});
    pid_t leader = 0;
    if (const LifeProcess* kin = random_.Below(4) == 0 ? Any() : nullptr) {
      leader = kin->leader();
      identity->uid = kin->identity->uid;
    }
    processes_.push_back(
        std::make_unique<LifeProcess>([this](LifeProcess* process) { return Connect(process); },
                                      std::move(identity), leader, random_.Below(4) == 0));
    processes_.back()->wanted_bytes = static_cast<int64_t>(random_.Below(12 * kGiB));
    processes_.back()->host_wanted_bytes = static_cast<int64_t>(random_.Below(8 * kGiB));
  }
  void Kill() {
    if (processes_.empty()) return;
    ++faults_.kills;
    const auto victim = processes_.begin() + static_cast<int64_t>(random_.Below(processes_.size()));
    (*victim)->identity->alive = false;
    // Another instance of the agent numbers sessions anew.
    const SessionId session = (*victim)->session;
    const auto known = sessions_.find(session);
    const bool is_known = known != sessions_.end() && known->second == (*victim)->identity;
    if (random_.Below(3) == 0) {
      for (SlabView& slab : (*victim)->LeaveSlabs())
        orphans_.emplace_back((*victim)->pattern(), std::move(slab));
    }
    wires_.erase(victim->get());
    processes_.erase(victim);
    // The process's end is known by its pidfd or by the end of its channel, whichever comes first.
    if (node_ != nullptr && is_known && random_.Below(2) == 0) node_->PeerEnded(session, now_ns_);
  }
  void Demand() {
    if (LifeProcess* process = Any()) {
      process->wanted_bytes = static_cast<int64_t>(random_.Below(14 * kGiB));
      process->host_wanted_bytes = static_cast<int64_t>(random_.Below(10 * kGiB));
      process->active = random_.Below(3) != 0;
    }
  }
  void CloseConnection() {
    LifeProcess* process = Any();
    if (process == nullptr || node_ == nullptr || !process->is_served()) return;
    wires_[process]->Sever();
    ++faults_.cuts;
  }
  void Attack() {
    if (node_ == nullptr) return;
    auto [near, far] = MemoryChannel::Pair(16);
    auto liar = std::make_shared<FakeProcess>(
        FakeProcess{9'000'000 + static_cast<pid_t>(random_.Below(5)), 2000, true});
    const auto session =
        node_->Connected(std::move(far), std::make_unique<FakePeer>(liar), now_ns_);
    if (!session) return;
    ++faults_.attacks;
    sessions_[*session] = liar;
    near->Send(protocol::Hello{});
    const std::vector<protocol::Message> samples = protocol::Samples();
    for (int i = 0; i < 6; ++i) {
      const protocol::Frame frame = Encode(samples[random_.Below(samples.size())]);
      std::vector<uint8_t> bytes(frame.begin(), frame.end());
      for (uint64_t changes = random_.Below(4); changes > 0; --changes)
        bytes[random_.Below(bytes.size())] = static_cast<uint8_t>(random_.Next());
      near->SendBytes(std::move(bytes));
    }
    liar->alive = false;
    attackers_.push_back(std::move(near));
    if (attackers_.size() > 4) attackers_.erase(attackers_.begin());
  }
  void OperateAtRandom() {
    if (node_ == nullptr || last_pid_ == 100) return;
    const std::string job =
        "local-" + std::to_string(101 + random_.Below(static_cast<uint64_t>(last_pid_ - 100)));
    protocol::SetBudget wanted;
    wanted.job = job;
    wanted.limit_bytes = static_cast<int64_t>(1 + random_.Below(16)) * kGiB;
    wanted.guaranteed_bytes = static_cast<int64_t>(random_.Below(3)) * kGiB;
    wanted.priority_plus_one = 1 + static_cast<int32_t>(random_.Below(3));
    Operate(wanted);
    if (random_.Below(4) == 0)
      Operate(protocol::Control{
          random_.Below(2) == 0 ? protocol::Action::kDrain : protocol::Action::kUndrain, ""});
  }
  void Operate(const protocol::Message& request) {
    auto [near, far] = MemoryChannel::Pair();
    const auto session = node_->Connected(
        std::move(far),
        std::make_unique<FakePeer>(std::make_shared<FakeProcess>(FakeProcess{1, 0, true})),
        now_ns_);
    if (!session) return;
    near->Send(protocol::Hello{.role = protocol::Role::kOperator});
    near->Send(request);
    near->Sever();
    node_->Readable(*session, now_ns_);
  }

  void Pass(int64_t duration_ns) {
    now_ns_ += duration_ns;
    for (auto& [pattern, slab] : orphans_) slab.Fill(pattern);
    for (auto& process : processes_) process->Step(now_ns_, random_);
    if (node_ != nullptr) {
      for (const auto& [session, process] : sessions_) {
        if (dies_after_ && (*dies_after_)-- == 0) break;
        node_->Readable(session, now_ns_);
      }
      if (std::exchange(dies_after_, std::nullopt)) return KillAgent();
      node_->Settle(now_ns_);
      shares_.KeepFiles();
      for (const Node::Gone& gone : node_->TakeGone()) {
        if (!gone.process_lives) sessions_.erase(gone.session);
      }
      EndDeadSessions();
    }
    CheckSafety();
  }
  // Only the pidfd tells of processes that were cut off and then killed.
  void EndDeadSessions() {
    for (const auto& [session, process] : sessions_) {
      if (!process->alive && random_.Below(4) == 0) node_->PeerEnded(session, now_ns_);
    }
  }
  void CheckSafety() {
    int64_t held = 0, host_held = 0;
    for (const auto& process : processes_) {
      held += process->held_bytes;
      host_held += process->host_held_bytes();
    }
    ASSERT_LE(held, kCapacity) << "the device is budgeted twice at " << now_ns_;
    ASSERT_LE(host_held, kHostCapacity) << "the host is budgeted twice at " << now_ns_;
    if (!processes_.empty())
      processes_[checked_ % processes_.size()]->CheckSlab(checked_ / processes_.size());
    ++checked_;
    if (node_ != nullptr) CheckAccounts();
  }
  void CheckAccounts() {
    const Arbiter& arbiter = node_->arbiter();
    for (const TenancyView& view : arbiter.Tenancies())
      ASSERT_LE(view.processes_budgeted_bytes, view.budgeted_bytes) << "at " << now_ns_;
    const int64_t budgeted = arbiter.BudgetedOn(DeviceId{0}),
                  host_budgeted = arbiter.BudgetedOnHost();
    ASSERT_LE(budgeted, std::max(kCapacity, budgeted_before_)) << "at " << now_ns_;
    ASSERT_LE(host_budgeted, std::max(kHostCapacity, host_budgeted_before_)) << "at " << now_ns_;
    ASSERT_LE(shares_.TotalBytes(), kHostCapacity) << "at " << now_ns_;
    budgeted_before_ = budgeted;
    host_budgeted_before_ = host_budgeted;
  }
  // Unless its quota or the pool is used up.
  void CheckSlabsOfAllProcesses() {
    for (const auto& process : processes_) {
      const pid_t leader = process->leader();
      const PoolJob job = {process->identity->uid, "local-" + std::to_string(leader)};
      const bool has_all = process->MissingSlabBytes(0) == 0 ||
                           shares_.FreeQuotaOf(job) < kSlabUnit || shares_.FreeBytes() < kSlabUnit;
      EXPECT_TRUE(has_all) << "process " << process->identity->pid << " lacks "
                           << process->MissingSlabBytes(0) / kSlabUnit << " slabs";
    }
  }

  base::Prng random_;
  FakeServices services_;
  LifeShares shares_{kHostCapacity};
  int64_t now_ns_ = 1'000'000 * kMillisecond;
  std::unique_ptr<Node> node_;
  std::map<SessionId, std::shared_ptr<FakeProcess>> sessions_;  // those that the node knows
  std::map<LifeProcess*, MemoryChannel*> wires_;
  std::vector<std::unique_ptr<MemoryChannel>> attackers_;
  std::vector<std::unique_ptr<LifeProcess>> processes_;
  std::vector<std::pair<uint64_t, SlabView>>
      orphans_;                       // slabs mapped by children of processes that are gone
  std::optional<size_t> dies_after_;  // the agent dies after so many sessions of this turn
  int64_t budgeted_before_ = 0, host_budgeted_before_ = 0;
  size_t checked_ = 0;
  pid_t last_pid_ = 100;
  Faults faults_;
  size_t jobs_of_killed_agents_ = 0;
};

// SPILLWAY_CHAOS_SEEDS=FIRST..LAST selects other seeds.
std::pair<uint64_t, uint64_t> Seeds() {
  unsigned long long first = 1, last = 6;
  const char* const asked = std::getenv("SPILLWAY_CHAOS_SEEDS");
  if (asked != nullptr && std::sscanf(asked, "%llu..%llu", &first, &last) < 2) last = first;
  return {first, last};
}

// Seeds that once found a bug; a literal test tells each story.
constexpr uint64_t kTold[] = {
    65,   // NodeTest.ReturningProcessOfSeveralIsNotCountedTwice
    432,  // ArbiterToggleTest.MemoryOfAnEndedProcessStaysWithItsJobUntilAnotherLacksAGrantsWorth
};

// About a quarter of the events are faults.
void Live(uint64_t seed, int faults = 0) {
  const int files_before = OpenFiles();
  {
    World world(seed);
    faults == 0 ? world.Run(10'000) : world.RunUntilFaults(faults);
    if (!testing::Test::HasFailure()) world.ExpectRecovery();
    const World::Faults& met = world.faults();
    EXPECT_GT(met.kills, 100);
    EXPECT_GT(met.restarts, 3);
    if (faults != 0)
      std::printf(
          "seed %llu: %d kills, %d cut connections, %d stops, %d attacks of six frames, %d agents "
          "killed, %d "
          "jumps of "
          "the clock, %d shortages of memory\n",
          static_cast<unsigned long long>(seed), met.kills, met.cuts, met.stops, met.attacks,
          met.restarts, met.jumps, met.shortages);
  }
  EXPECT_EQ(OpenFiles(), files_before) << "files are left open";
  EXPECT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
}

TEST(AgentLifeTest, TenThousandEventsBreakNoInvariantAndTheNodeRecovers) {
  const auto [first, last] = Seeds();
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t seed = first; seed <= last && !HasFailure(); ++seed) Live(seed);
  for (const uint64_t seed : kTold) {
    if (!HasFailure()) Live(seed);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("seeds %llu to %llu, 10,000 events each, in %.1f s\n",
              static_cast<unsigned long long>(first), static_cast<unsigned long long>(last),
              took.count());
}

TEST(AgentLifeTest, TenThousandFaultsOfOneSeedBreakNoInvariantAndTheNodeRecovers) {
  Live(1, 10'000);
}

}  // namespace
}  // namespace spillway::agent
