// The node's own part of a grant's cost, beside many jobs that want more host memory than exists. A
// job joins, and all others must give a little back. Then it repeatedly asks for more, is granted
// it and obeys. Repeatable to the instruction:
//
//     valgrind --tool=callgrind --toggle-collect='*Bench::Come*' node_round_trip 1000 100
//     valgrind --tool=callgrind --toggle-collect='*Bench::RoundTrip*' node_round_trip 1000 100
//
// usage: node_round_trip [JOBS] [ROUND TRIPS]
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "tests/unit/agent/fake_node.h"

namespace spillway::agent {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr pid_t kFirstPid = 100;

struct Job {
  SessionId session;
  std::unique_ptr<protocol::MemoryChannel> channel;
};

class Bench {
 public:
  Bench() : node_(Settings(), Devices(), 12 * kGiB, 1, &services_, now_ns_) {}

  Job Begin(int64_t wanted_bytes) {
    auto [near, far] = protocol::MemoryChannel::Pair(16);
    auto process = std::make_shared<FakeProcess>(FakeProcess{++last_pid_});
    const auto session =
        node_.Connected(std::move(far), std::make_unique<FakePeer>(std::move(process)), now_ns_);
    Job job{session.value(), std::move(near)};
    job.channel->Send(protocol::Hello{});
    protocol::Register asked;
    asked.uuid = kFirstDevice;
    asked.wanted_bytes = wanted_bytes;
    job.channel->Send(asked);
    Turn(job);
    return job;
  }

  bool Obey(const Job& job) {
    bool is_granted = false;
    for (protocol::Received heard;
         (heard = job.channel->Receive()).what == protocol::Received::What::kMessage;) {
      const auto* const grant = std::get_if<protocol::Grant>(&heard.message);
      if (grant == nullptr) continue;
      job.channel->Send(protocol::Obeyed{0, grant->serial, grant->budget_bytes, grant->host_bytes});
      is_granted = true;
    }
    if (is_granted) Turn(job);
    return is_granted;
  }

  // Continues until no more grants are sent.
  [[gnu::noinline]] Job Come(int64_t wanted_bytes, const std::vector<Job>& others) {
    Job job = Begin(wanted_bytes);
    for (bool any = true; any;) {
      any = Obey(job);
      for (const Job& other : others) any |= Obey(other);
    }
    return job;
  }

  [[gnu::noinline]] bool RoundTrip(const Job& job, const protocol::Usage& usage) {
    now_ns_ += 4'000'000;
    job.channel->Send(usage);
    Turn(job);
    return Obey(job);
  }

 private:
  static Config Settings() {
    Config config = FakeConfig();
    config.limits.sessions = config.limits.sessions_per_user = 100'000;
    config.limits.connections_per_second_per_user = 100'000;
    return config;
  }
  static std::vector<NodeDevice> Devices() {
    return {{kFirstDevice, "GPU-1", "Simulated", 4096 * kGiB}};
  }
  void Turn(const Job& job) {
    node_.Readable(job.session, now_ns_);
    node_.Settle(now_ns_);
  }

  FakeServices services_;
  int64_t now_ns_ = 1'000'000'000;
  pid_t last_pid_ = kFirstPid;
  Node node_;
};

int Run(int jobs, int round_trips) {
  Bench bench;
  std::vector<Job> others;
  for (int i = 0; i < jobs; ++i) others.push_back(bench.Come(8 * kMebibyte, others));
  const uint64_t came_ns = base::MonotonicNs();
  const Job job = bench.Come(kGiB, others);
  protocol::Usage usage;
  const uint64_t begin_ns = base::MonotonicNs();
  for (int i = 0; i < round_trips; ++i) {
    usage.wanted_bytes = kGiB + 128 * kMebibyte * (i + 1);
    if (bench.RoundTrip(job, usage)) continue;
    std::fprintf(stderr, "node_round_trip: nothing was granted\n");
    return 1;
  }
  std::printf("%d jobs: %.1f us of the node for one that comes, %.1f us for a word and its grant\n",
              jobs, static_cast<double>(begin_ns - came_ns) / 1000,
              static_cast<double>(base::MonotonicNs() - begin_ns) / 1000 / round_trips);
  return 0;
}

}  // namespace
}  // namespace spillway::agent

int main(int argc, char** argv) {
  return spillway::agent::Run(argc > 1 ? std::atoi(argv[1]) : 1000,
                              argc > 2 ? std::atoi(argv[2]) : 1000);
}
