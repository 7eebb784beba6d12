// How the agent copes with many sessions. 1,000 processes each have a session that reports its use
// twice a second. One of them repeatedly asks for more memory, and measures the time to its grant.
//
// Then one user connects as fast as it can, first to another agent, then to this one. The other
// agent shows the machine's part of the delay.
//
// usage: agent_sessions SPILLWAYD [PROCESSES] [ROUND TRIPS]
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "base/clock.h"
#include "protocol/socket_channel.h"

namespace {

using namespace spillway;
using protocol::Received;

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr protocol::DeviceUuid kDevice = {1};

template <class M>
M Await(protocol::SocketChannel& channel) {
  for (;;) {
    pollfd watched{channel.file(), POLLIN, 0};
    if (poll(&watched, 1, 30'000) <= 0) break;
    const Received received = channel.Receive();
    if (received.what == Received::What::kNothing) continue;
    if (received.what != Received::What::kMessage) break;
    if (const M* message = std::get_if<M>(&received.message)) return *message;
    if (std::holds_alternative<protocol::Error>(received.message)) break;
  }
  std::fprintf(stderr, "agent_sessions: the agent ended a session\n");
  std::exit(1);
}

protocol::SocketChannel Begin(const std::string& socket, int64_t wanted_bytes) {
  protocol::SocketChannel channel(protocol::ConnectTo(socket));
  channel.Send(protocol::Hello{});
  Await<protocol::Welcome>(channel);
  protocol::Register asked;
  asked.uuid = kDevice;
  asked.wanted_bytes = wanted_bytes;
  channel.Send(asked);
  return channel;
}

protocol::Grant Obey(protocol::SocketChannel& channel) {
  const auto grant = Await<protocol::Grant>(channel);
  channel.Send(protocol::Obeyed{0, grant.serial, grant.budget_bytes, grant.host_bytes});
  return grant;
}

[[noreturn]] void BeTenant(const std::string& socket, int number, int ready) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  protocol::SocketChannel channel = Begin(socket, 8 << 20);
  Obey(channel);
  if (write(ready, "x", 1) != 1) std::exit(1);
  protocol::Usage usage;
  usage.wanted_bytes = 8 << 20;
  for (;; ++usage.iterations) {
    pollfd watched{channel.file(), POLLIN, 0};
    if (poll(&watched, 1, 400 + number % 200) > 0) Obey(channel);
    channel.Send(usage);
  }
}

double Percentile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

// A client that asks for more, gets it, and asks for less again.
std::vector<double> RoundTrips(const std::string& socket, int count) {
  protocol::SocketChannel channel = Begin(socket, kGiB);
  Obey(channel);
  std::vector<double> took_us;
  protocol::Usage usage;
  for (int i = 0; i < count; ++i) {
    usage.wanted_bytes = kGiB + (int64_t{128} << 20) * (i + 1);
    const uint64_t begin = base::MonotonicNs();
    channel.Send(usage);
    Obey(channel);
    took_us.push_back(static_cast<double>(base::MonotonicNs() - begin) / 1000);
    usleep(4000);
  }
  return took_us;
}

// As another user, whose connections may only be refused: at most 10,000 attempts a second.
pid_t StartFlood(const std::string& socket, std::atomic<int64_t>* attempts) {
  const pid_t flood = fork();
  if (flood != 0) return flood;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (setuid(65534) != 0) std::exit(1);
  const uint64_t begin = base::MonotonicNs();
  for (;;) {
    const auto due = static_cast<int64_t>((base::MonotonicNs() - begin) / 100'000);
    for (int64_t made = attempts->load(); made < due; ++made) {
      protocol::ConnectTo(socket);
      attempts->store(made + 1);
    }
    usleep(100);
  }
}

struct Delay {
  double median_us, p99_us;
};

Delay Print(const char* what, std::vector<double> took_us) {
  const Delay delay = {Percentile(took_us, 0.5), Percentile(took_us, 0.99)};
  std::printf("%-36s median %8.0f us   p99 %8.0f us   largest %8.0f us\n", what, delay.median_us,
              delay.p99_us, Percentile(took_us, 1));
  return delay;
}

double CpuSeconds(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string word;
  double ticks = 0;
  for (int field = 1; stat >> word && field <= 15; ++field) {
    if (field >= 14) ticks += std::atof(word.c_str());
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

long ResidentMib(pid_t pid) {
  std::ifstream statm("/proc/" + std::to_string(pid) + "/statm");
  long pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE) >> 20;
}

std::string WriteConfig(const std::string& folder) {
  std::string config = folder + "/spillway.toml";
  std::ofstream(config)
      << "[agent]\nresume_ms = 0\nlog_level = \"error\"\n[devices]\nfind = false\nreserve = 0\n"
         "[[device]]\nuuid = \"GPU-01000000-0000-0000-0000-000000000000\"\nmemory = \"4TiB\"\n"
         "[arbiter]\nheadroom = 0\n[defaults]\nfloor = 0\n"
         "[limits]\nconnections_per_second_per_user = 2000\nsessions_per_user = 4000\n";
  return config;
}

pid_t StartAgent(const char* executable, const std::string& config, const std::string& socket) {
  const pid_t agent = fork();
  if (agent != 0) return agent;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  execl(executable, "spillwayd", "--config", config.c_str(), "--socket", socket.c_str(),
        static_cast<char*>(nullptr));
  std::exit(1);
}

// The duration of a round trip with the agent at `socket` while `flooded`, this agent or another,
// is flooded.
Delay BesideFlood(const char* what, const std::string& flooded, const std::string& socket,
                  int count) {
  void* const shared = mmap(nullptr, sizeof(std::atomic<int64_t>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) std::exit(1);
  auto* const attempts = new (shared) std::atomic<int64_t>(0);
  const pid_t flood = StartFlood(flooded, attempts);
  const uint64_t begin = base::MonotonicNs();
  const Delay delay = Print(what, RoundTrips(socket, count));
  const double seconds = static_cast<double>(base::MonotonicNs() - begin) / 1e9;
  std::printf("the flood: %.0f connection attempts a second\n",
              static_cast<double>(attempts->load()) / seconds);
  kill(flood, SIGKILL);
  waitpid(flood, nullptr, 0);
  munmap(shared, sizeof(std::atomic<int64_t>));
  return delay;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2)
    return std::fprintf(stderr, "usage: agent_sessions SPILLWAYD [PROCESSES] [ROUND TRIPS]\n"), 2;
  const int processes = argc > 2 ? std::atoi(argv[2]) : 1000;
  const int count = argc > 3 ? std::atoi(argv[3]) : 3000;
  char folder[] = "/tmp/agent_sessions.XXXXXX";
  if (mkdtemp(folder) == nullptr || chmod(folder, 0755) != 0) return 1;
  const std::string socket = std::string(folder) + "/agent.sock",
                    other_socket = std::string(folder) + "/other.sock";
  const std::string config = WriteConfig(folder);
  const pid_t agent = StartAgent(argv[1], config, socket),
              other = StartAgent(argv[1], config, other_socket);
  while (!protocol::ConnectTo(socket) || !protocol::ConnectTo(other_socket)) usleep(10'000);

  Print("alone", RoundTrips(socket, count));
  int ready[2];
  if (pipe(ready) != 0) return 1;
  std::vector<pid_t> tenants;
  for (int i = 0; i < processes; ++i) {
    tenants.push_back(fork());
    if (tenants.back() == 0) BeTenant(socket, i, ready[1]);
    char done;
    if (read(ready[0], &done, 1) != 1) return 1;
  }
  const double cpu_before = CpuSeconds(agent);
  const uint64_t begin = base::MonotonicNs();
  Print("beside the other sessions", RoundTrips(socket, count));
  const double wall = static_cast<double>(base::MonotonicNs() - begin) / 1e9;
  std::printf("%d sessions, 2 reports a second each: agent %ld MiB, %.2f of a core\n", processes,
              ResidentMib(agent), (CpuSeconds(agent) - cpu_before) / wall);
  const Delay elsewhere =
      BesideFlood("and a user who floods another agent", other_socket, socket, count);
  const Delay here = BesideFlood("and a user who floods this one", socket, socket, count);
  std::printf("the flood delays by: median %.2f, p99 %.2f times\n",
              here.median_us / elsewhere.median_us, here.p99_us / elsewhere.p99_us);
  for (pid_t child : tenants) kill(child, SIGKILL);
  for (pid_t child : {agent, other}) kill(child, SIGKILL);
  while (wait(nullptr) > 0) {
  }
  std::filesystem::remove_all(folder);
  return 0;
}
