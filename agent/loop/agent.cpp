#include "agent/loop/agent.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "agent/arbiter/amounts.h"
#include "agent/device/device_list.h"
#include "agent/identity/socket_peer.h"
#include "agent/loop/log.h"
#include "agent/report/pages.h"
#include "base/clock.h"
#include "protocol/socket_channel.h"

namespace spillway::agent {
namespace {

constexpr int64_t kPublishNs = 1'000'000'000;
constexpr int64_t kLongestWaitMs = 1000;
constexpr int kMostAccepted = 16;  // before the sessions have their turn
constexpr int kMostEvents = 256;

// What an event is about: a session's channel, its process, or one of ours.
enum class About : uint64_t { kChannel = 0, kProcess = 1, kListener = 2, kSignals = 3 };
uint64_t Token(About about, SessionId session = SessionId{0}) {
  return static_cast<uint64_t>(session) << 2 | static_cast<uint64_t>(about);
}

int64_t NowNs() { return static_cast<int64_t>(base::MonotonicNs()); }

int64_t HostBytes(const Config& config) {
  if (config.host_bytes > 0) return config.host_bytes;
  struct sysinfo machine {};
  sysinfo(&machine);
  return static_cast<int64_t>(machine.totalram) * machine.mem_unit / 2;
}

uint64_t RandomNumber() {
  uint64_t number = 0;
  while (number == 0 && getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}

}  // namespace

Agent::Agent(AgentOptions options, const Config& config) : options_(std::move(options)) {
  std::vector<std::string> problems;
  std::vector<NodeDevice> devices = ListDevices(config, &problems);
  for (const std::string& problem : problems) LogWarning(problem);
  for (const NodeDevice& device : devices)
    LogInfo("device " + device.name + " " + device.model + " with " + InBytes(device.memory_bytes));
  Config used = config;
  if (!options_.socket.empty()) used.socket = options_.socket;
  NodeServices* const services = this;
  node_ =
      std::make_unique<Node>(used, std::move(devices), HostBytes(config), RandomNumber(), services, NowNs());
}

// The daemon's whole life.
int Agent::Run() {
  if (!Open()) return 1;
  service_.Ready("serving " + node_->config().socket);
  LogInfo("serving " + node_->config().socket + (http_ ? ", pages at " + node_->config().http : ""));
  while (!stopping_) {
    Wait();
    node_->Settle(NowNs());
    FollowGone();
    Publish();
  }
  service_.Stopping();
  node_->Stop();
  if (!inherited_listener_) unlink(node_->config().socket.c_str());
  LogInfo("stopped; jobs keep what they have");
  return 0;
}

bool Agent::Open() {
  poll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  sigset_t handled;
  sigemptyset(&handled);
  for (int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) sigaddset(&handled, signal);
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  signals_.Reset(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  const Config& config = node_->config();
  for (const Supervisor::Socket& socket : service_.TakeSockets()) {
    listener_.Reset(socket.file);
    inherited_listener_ = true;
  }
  if (!listener_) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(config.socket).parent_path(), ignored);
    listener_ = protocol::ListenOn(config.socket, static_cast<unsigned>(config.socket_mode));
  }
  if (!listener_) {
    LogError("cannot listen on " + config.socket + ": " + strerror(errno));
    return false;
  }
  Publish();
  if (!config.http.empty()) {
    http_ = std::make_unique<HttpServer>(config.http, &latest_);
    const std::string problem = http_->Start();
    if (!problem.empty()) LogError("no pages: " + problem);
    if (!problem.empty()) return false;
  }
  Watch(listener_.get(), Token(About::kListener));
  Watch(signals_.get(), Token(About::kSignals));
  return true;
}

void Agent::Watch(int file, uint64_t token) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = token;
  if (epoll_ctl(poll_.get(), EPOLL_CTL_ADD, file, &event) != 0)
    LogError(std::string("epoll_ctl: ") + strerror(errno));
}

int64_t Agent::WaitMs() const {
  const int64_t now_ns = NowNs();
  int64_t until_ns = std::min(node_->NextWake(), next_publish_ns_);
  if (service_.watchdog_interval_ns() > 0) until_ns = std::min(until_ns, next_ping_ns_);
  return std::clamp<int64_t>((until_ns - now_ns + 999'999) / 1'000'000, 0, kLongestWaitMs);
}

void Agent::Wait() {
  epoll_event events[kMostEvents];
  const int count = epoll_wait(poll_.get(), events, kMostEvents, static_cast<int>(WaitMs()));
  for (int i = 0; i < count; ++i) Handle(events[i].data.u64);
  if (service_.watchdog_interval_ns() == 0 || NowNs() < next_ping_ns_) return;
  service_.Alive();
  next_ping_ns_ = NowNs() + service_.watchdog_interval_ns();
}

void Agent::Handle(uint64_t token) {
  const SessionId session{token >> 2};
  switch (static_cast<About>(token & 3)) {
    case About::kChannel:
      return node_->Readable(session, NowNs());
    case About::kProcess:
      return node_->PeerEnded(session, NowNs());
    case About::kListener:
      return AcceptSome();
    case About::kSignals:
      return TakeSignal();
  }
}

void Agent::AcceptSome() {
  for (int i = 0; i < kMostAccepted; ++i) {
    base::UniqueFd socket = protocol::AcceptFrom(listener_.get());
    if (!socket && (errno == EMFILE || errno == ENFILE))
      LogWarning("no file descriptors left for new sessions");
    if (!socket) return;
    std::unique_ptr<SocketPeer> peer = SocketPeer::Of(socket.get());
    if (peer == nullptr) continue;
    const int channel_file = socket.get(), process_file = peer->file();
    const auto session = node_->Connected(std::make_unique<protocol::SocketChannel>(std::move(socket)),
                                          std::move(peer), NowNs());
    if (!session) continue;
    Watch(channel_file, Token(About::kChannel, *session));
    Watch(process_file, Token(About::kProcess, *session));
  }
}

// Closed files have left epoll by themselves; what is detached still has its process there.
void Agent::FollowGone() {
  for (const Node::Gone& gone : node_->TakeGone()) {
    if (gone.process_lives)
      LogNote("session " + std::to_string(static_cast<uint64_t>(gone.session)) +
              " is cut off, its process lives");
  }
}

void Agent::TakeSignal() {
  signalfd_siginfo taken;
  while (read(signals_.get(), &taken, sizeof taken) == sizeof taken) {
    if (taken.ssi_signo == SIGHUP) {
      Reload();
    } else if (taken.ssi_signo == SIGUSR1) {
      spillway::agent::SetLogLevel("debug");
      LogInfo("log level debug, by signal");
    } else {
      stopping_ = true;
    }
  }
}

void Agent::Publish() {
  if (NowNs() < next_publish_ns_) return;
  next_publish_ns_ = NowNs() + kPublishNs;
  latest_.Set(std::make_shared<NodeReport>(node_->Report(NowNs())));
}

std::optional<JobIdentity> Agent::IdentityOf(const Peer& peer, pid_t leader_pid) {
  return processes_.IdentityOf(peer.pid(), peer.uid(), leader_pid);
}
std::string Agent::PageFor(const protocol::Ask& ask, const NodeReport& report) {
  return ask.question == protocol::Question::kConfig ? ShowConfig(node_->config()) : PageOf(ask, report);
}
void Agent::JobStarted(const JobReport& job) { LogInfo(StartLine(job)); }
void Agent::JobEnded(const JobReport& job) { LogInfo(EndLine(job)); }
void Agent::Warn(const std::string& line) { LogWarning(line); }
void Agent::Note(const std::string& line) { LogNote(line); }

std::string Agent::Reload() {
  service_.Reloading(NowNs() / 1000);
  const ConfigResult result = ReadConfigFiles(options_.config_path);
  service_.Ready("serving " + node_->config().socket);
  node_->NoteReload(result.errors.empty());
  for (const std::string& error : result.errors) LogError(error);
  if (!result.errors.empty()) return "nothing was changed: " + result.errors.front();
  Config next = result.config;
  if (!options_.socket.empty()) next.socket = options_.socket;
  for (const std::string& line : DifferencesBetween(node_->config(), next)) LogInfo("reload: " + line);
  for (const std::string& name : NeedRestart(node_->config(), next)) LogWarning(name + " takes a restart");
  spillway::agent::SetLogLevel(next.log_level);
  node_->SetConfig(next);
  return "";
}

std::string Agent::SetLogLevel(const std::string& level) {
  return spillway::agent::SetLogLevel(level) ? "" : "the levels are trace, debug, info, warn and error";
}

}  // namespace spillway::agent
