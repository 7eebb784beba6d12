// The node and real lease clients in one thread on one clock: a seed drives demands, kills, stops, cut connections, garbage, agent
// restarts, operators and clock jumps. Safety at every moment; then the faults stop, and everything has to come right.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/prng.h"
#include "interposer/lease/lease_client.h"
#include "tests/unit/agent/fake_node.h"
#include "tests/unit/protocol/samples.h"

namespace spillway::agent {
namespace {

using protocol::MemoryChannel;

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kCapacity = 16 * kGiB;
constexpr size_t kMostProcesses = 24;

class World;

// A process with memory on the device, under a lease.
class Process : public interposer::LeaseSubject, public interposer::LeaseConnector {
 public:
  Process(World* world, std::shared_ptr<FakeProcess> identity, pid_t leader)
      : identity(std::move(identity)), world_(*world), client_({leader, 0, 0}, this, this) {
    client_.Use(0, kFirstDevice, kCapacity);
  }

  interposer::DeviceUse Read(uint32_t) override {
    interposer::DeviceUse use;
    use.active = active;
    use.wanted_bytes = wanted_bytes;
    use.resident_bytes = held_bytes;
    return use;
  }
  void SetBudget(const protocol::Grant& grant, int64_t) override {
    budget_bytes = grant.budget_bytes;
    has_grant = true;
  }
  void Admission(const protocol::Admission&) override {}
  std::unique_ptr<protocol::Channel> Connect() override;

  void Step(int64_t now_ns, base::Prng& random) {
    if (stopped || now_ns < next_step_ns_) return;
    if (held_bytes > budget_bytes)
      held_bytes = std::max(budget_bytes, held_bytes - static_cast<int64_t>(random.Below(kGiB)));
    if (held_bytes <= budget_bytes) held_bytes = std::min(budget_bytes, wanted_bytes);
    client_.Step(now_ns);
    next_step_ns_ = now_ns + static_cast<int64_t>(random.Below(20)) * kMillisecond;
  }
  bool is_served() const { return client_.is_served(); }

  std::shared_ptr<FakeProcess> identity;
  int64_t wanted_bytes = 0, held_bytes = 0, budget_bytes = 0;
  bool active = true, stopped = false, has_grant = false;
  SessionId session{};

 private:
  World& world_;
  interposer::LeaseClient client_;
  int64_t next_step_ns_ = 0;
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) { StartAgent(); }

  std::unique_ptr<protocol::Channel> Connect(Process* process) {
    if (node_ == nullptr) return nullptr;
    auto [near, far] = MemoryChannel::Pair(16);
    const auto session =
        node_->Connected(std::move(far), std::make_unique<FakePeer>(process->identity), now_ns_);
    if (session) sessions_[*session] = process->identity;
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

  // No faults any more. Everybody wants something and obeys; it comes to rest, and books and world agree to the byte.
  void ComeRight() {
    if (node_ == nullptr) StartAgent();
    attackers_.clear();
    node_->SetConfig(Settings());
    for (auto& process : processes_) process->stopped = false;
    Operate(protocol::Control{protocol::Action::kUndrain, ""});
    for (int i = 0; i < 4000; ++i) Pass(20 * kMillisecond);
    int64_t promised = 0;
    for (const auto& process : processes_) {
      ASSERT_TRUE(process->is_served()) << "process " << process->identity->pid;
      ASSERT_TRUE(process->has_grant) << "process " << process->identity->pid << " waits for ever";
      ASSERT_LE(process->held_bytes, process->budget_bytes);
      promised += process->budget_bytes;
    }
    EXPECT_EQ(promised, node_->arbiter().PromisedOn(DeviceId{0}));
    EXPECT_LE(promised, kCapacity);
    EXPECT_EQ(node_->session_count(), processes_.size()) << "sessions are left of processes that are gone";
    for (auto& process : processes_) process->identity->alive = false;
    for (auto& process : processes_) node_->PeerEnded(process->session, now_ns_);
    EXPECT_EQ(node_->arbiter().PromisedOn(DeviceId{0}), 0);
    EXPECT_EQ(services_.started.size(), services_.ended.size() + jobs_of_killed_agents_);
  }

  int kills() const { return kills_; }
  int restarts() const { return restarts_; }

 private:
  static Config Settings() {
    Config config = FakeConfig();
    config.resume_ms = 3000;
    config.patience_s = 5;
    config.limits.connections_per_second_per_user = 1000;
    return config;
  }
  void StartAgent() {
    node_ =
        std::make_unique<Node>(Settings(), FakeDevices(), 1024 * kGiB, random_.Next(), &services_, now_ns_);
  }
  // With it go its ends of all channels.
  void KillAgent() {
    ++restarts_;
    jobs_of_killed_agents_ += node_->Report(now_ns_).jobs.size();
    node_.reset();
    sessions_.clear();
    attackers_.clear();
    // Who is stopped for longer than the agent waits for it is not known to the next one: that is said in the documents.
    for (auto& process : processes_) process->stopped = false;
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
        return CutOff();
      case 8:
      case 9:
        return Attack();
      case 10:
        if (random_.Below(10) == 0 && node_ != nullptr) return KillAgent();
        if (node_ == nullptr) StartAgent();
        return;
      case 11:
        if (Process* process = Any())
          process->stopped = IsKnown(*process) && !process->stopped && random_.Below(2) == 0;
        return;
      case 12:
        return OperateAtRandom();
      case 13:
        if (random_.Below(20) == 0) now_ns_ += 3600'000 * kMillisecond;
        return;
      default:
        return;
    }
  }

  // To this instance of the agent.
  bool IsKnown(const Process& process) const {
    const auto found = sessions_.find(process.session);
    return process.is_served() && found != sessions_.end() && found->second == process.identity;
  }
  Process* Any() { return processes_.empty() ? nullptr : processes_[random_.Below(processes_.size())].get(); }
  void Arrive() {
    if (processes_.size() >= kMostProcesses) return;
    const pid_t pid = ++last_pid_;
    const pid_t leader = random_.Below(4) == 0 && pid > 101 ? pid - 1 : 0;
    processes_.push_back(std::make_unique<Process>(
        this,
        std::make_shared<FakeProcess>(FakeProcess{pid, static_cast<uid_t>(1000 + random_.Below(3)), true}),
        leader));
    processes_.back()->wanted_bytes = static_cast<int64_t>(random_.Below(12 * kGiB));
  }
  void Kill() {
    if (processes_.empty()) return;
    ++kills_;
    const auto victim = processes_.begin() + static_cast<int64_t>(random_.Below(processes_.size()));
    (*victim)->identity->alive = false;
    const SessionId session = (*victim)->session;
    wires_.erase(victim->get());
    processes_.erase(victim);
    // The process's end is known by its pidfd, or by its channel's end, whichever comes first.
    if (node_ != nullptr && random_.Below(2) == 0) node_->PeerEnded(session, now_ns_);
  }
  void Demand() {
    if (Process* process = Any()) {
      process->wanted_bytes = static_cast<int64_t>(random_.Below(14 * kGiB));
      process->active = random_.Below(3) != 0;
    }
  }
  // The connection is lost while both sides live.
  void CutOff() {
    Process* process = Any();
    if (process != nullptr && node_ != nullptr && process->is_served()) wires_[process]->Sever();
  }
  // Somebody who speaks nonsense, or tells lies.
  void Attack() {
    if (node_ == nullptr) return;
    auto [near, far] = MemoryChannel::Pair(16);
    auto liar = std::make_shared<FakeProcess>(
        FakeProcess{9'000'000 + static_cast<pid_t>(random_.Below(5)), 2000, true});
    const auto session = node_->Connected(std::move(far), std::make_unique<FakePeer>(liar), now_ns_);
    if (!session) return;
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
      Operate(protocol::Control{random_.Below(2) == 0 ? protocol::Action::kDrain : protocol::Action::kUndrain,
                                ""});
  }
  void Operate(const protocol::Message& request) {
    auto [near, far] = MemoryChannel::Pair();
    const auto session = node_->Connected(
        std::move(far), std::make_unique<FakePeer>(std::make_shared<FakeProcess>(FakeProcess{1, 0, true})),
        now_ns_);
    if (!session) return;
    near->Send(protocol::Hello{.role = protocol::Role::kOperator});
    near->Send(request);
    near->Sever();
    node_->Readable(*session, now_ns_);
  }

  void Pass(int64_t duration_ns) {
    now_ns_ += duration_ns;
    for (auto& process : processes_) process->Step(now_ns_, random_);
    if (node_ != nullptr) {
      for (const auto& [session, process] : sessions_) node_->Readable(session, now_ns_);
      node_->Settle(now_ns_);
      for (const Node::Gone& gone : node_->TakeGone()) {
        if (!gone.process_lives) sessions_.erase(gone.session);
      }
      EndTheDead();
    }
    CheckSafety();
  }
  // Those that were cut off and then killed are only known by their pidfds.
  void EndTheDead() {
    for (const auto& [session, process] : sessions_) {
      if (!process->alive && random_.Below(4) == 0) node_->PeerEnded(session, now_ns_);
    }
  }
  void CheckSafety() {
    if (node_ != nullptr) {
      for (const TenancyView& view : node_->arbiter().Tenancies())
        ASSERT_LE(view.seats_promised_bytes, view.promised_bytes) << "at " << now_ns_;
    }
    int64_t held = 0;
    for (const auto& process : processes_) held += process->held_bytes;
    ASSERT_LE(held, kCapacity) << "the device is promised twice at " << now_ns_;
  }

  base::Prng random_;
  FakeServices services_;
  int64_t now_ns_ = 1'000'000 * kMillisecond;
  std::unique_ptr<Node> node_;
  std::map<SessionId, std::shared_ptr<FakeProcess>> sessions_;  // that the node knows, and whose they are
  std::map<Process*, MemoryChannel*> wires_;
  std::vector<std::unique_ptr<MemoryChannel>> attackers_;
  std::vector<std::unique_ptr<Process>> processes_;
  pid_t last_pid_ = 100;
  int kills_ = 0, restarts_ = 0;
  size_t jobs_of_killed_agents_ = 0;
};

std::unique_ptr<protocol::Channel> Process::Connect() { return world_.Connect(this); }

// SPILLWAY_CHAOS_SEEDS=FIRST..LAST runs other seeds, or more.
std::pair<uint64_t, uint64_t> Seeds() {
  unsigned long long first = 1, last = 10;
  const char* const asked = std::getenv("SPILLWAY_CHAOS_SEEDS");
  if (asked != nullptr && std::sscanf(asked, "%llu..%llu", &first, &last) < 2) last = first;
  return {first, last};
}

TEST(AgentLifeTest, TenThousandEventsHarmNobodyAndThenEverythingComesRight) {
  const auto [first, last] = Seeds();
  for (uint64_t seed = first; seed <= last; ++seed) {
    const auto begin = std::chrono::steady_clock::now();
    World world(seed);
    world.Run(10'000);
    if (!HasFailure()) world.ComeRight();

    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    EXPECT_GT(world.kills(), 100);
    EXPECT_GT(world.restarts(), 3);
    if (seed == first) {
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      std::printf("10,000 events in %.2f s\n", took.count());
    }
  }
}

}  // namespace
}  // namespace spillway::agent
