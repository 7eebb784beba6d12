#include "agent/loop/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "agent/arbiter/amounts.h"
#include "agent/device/device_list.h"
#include "agent/device/nvml.h"
#include "agent/identity/socket_peer.h"
#include "agent/loop/boot_id.h"
#include "agent/loop/derived_settings.h"
#include "agent/loop/log.h"
#include "agent/loop/memory_reserve.h"
#include "agent/loop/passed_socket.h"
#include "agent/loop/state_file.h"
#include "agent/planning/plan_timelines.h"
#include "agent/planning/plan_worker.h"
#include "agent/planning/timeline_worker.h"
#include "agent/pool/driver_worker.h"
#include "agent/report/pages.h"
#include "base/clock.h"
#include "protocol/socket_channel.h"

namespace spillway::agent {
namespace {

constexpr int64_t kPublishNs = 1'000'000'000;
constexpr int64_t kWatchNs = 2'000'000'000;
constexpr int64_t kLongestWaitMs = 1000;
constexpr int64_t kShortageNs = 60'000'000'000;  // between two warnings
constexpr int64_t kReopenNs = 3'000'000'000;
constexpr int64_t kPauseNs = 100'000'000;
constexpr int kMostAccepted = 16;  // before the sessions get their turn
constexpr int kMostEvents = 256;
// Whoever sees the folder is meant to connect.
constexpr unsigned kJobSocketMode = 0666;

enum class About : uint64_t {
  kChannel = 0,
  kProcess = 1,
  kListener = 2,
  kSignals = 3,
  kSlabs = 4,
  kPlans = 5,
  kJobsListener = 6,
  kLimits = 7,
  kAllocation = 8
};
constexpr int kAboutBits = 4;
uint64_t Token(About about, SessionId session = SessionId{0}) {
  return static_cast<uint64_t>(session) << kAboutBits | static_cast<uint64_t>(about);
}

uint64_t TokenOf(const Listener& listener) {
  if (listener.entrance() == Entrance::kAllocation)
    return Token(About::kAllocation, SessionId{listener.number()});
  return Token(listener.entrance() == Entrance::kAll ? About::kListener : About::kJobsListener);
}

// A session takes two descriptors, a slab one.
void AllowManyFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

sigset_t HandledSignals() {
  sigset_t handled;
  sigemptyset(&handled);
  for (int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) sigaddset(&handled, signal);
  return handled;
}

AccessFiles AccessFilesOf(const Config& config) {
  return {config.http_token_file, config.http_certificate, config.http_key};
}

bool HasNoFiles() { return errno == EMFILE || errno == ENFILE; }

double SecondsSince1970() { return static_cast<double>(time(nullptr)); }

uint64_t RandomNumber() {
  uint64_t number = 0;
  while (number == 0 && getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}

}  // namespace

Agent::Agent(AgentOptions options, const Config& config)
    : options_(std::move(options)), used_memory_(config.find_devices) {
  // A signal that one thread does not block ends the process, so block them before any thread
  // starts.
  const sigset_t handled = HandledSignals();
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  std::vector<std::string> problems;
  devices_ = ListDevices(config, &problems);
  for (const std::string& problem : problems) LogWarning(problem);
  for (const NodeDevice& device : devices_)
    LogInfo("device " + device.name + " " + device.model + " with " + InBytes(device.memory_bytes));
  Config used = config;
  if (!options_.socket.empty()) used.socket = options_.socket;
  AllowManyFiles();
  config_read_s_ = SecondsSince1970();
  std::vector<NodeShares::KeptFile> kept;
  const base::Status taken = TakeInherited(used, &kept);
  if (!taken.ok()) LogError(taken.text());
  if (taken.ok() && Listen(used)) Begin(used, std::move(kept));
}

// An agent that finds another one at its socket ends here, before it opens the other one's files.
bool Agent::Listen(const Config& config) {
  // The command line may have replaced the socket.
  const std::vector<std::string> wrong = WrongJobSocketSettings(config, options_.config_path);
  for (const std::string& text : wrong) LogError(text);
  if (!wrong.empty()) return false;
  base::Status opened = listener_.Open(config.socket, static_cast<unsigned>(config.socket_mode));
  if (opened.ok() && (jobs_listener_.is_open() || !config.job_socket.empty()))
    opened = jobs_listener_.Open(config.job_socket, kJobSocketMode);
  if (!opened.ok()) LogError(opened.text());
  return opened.ok();
}

void Agent::Begin(const Config& used, std::vector<NodeShares::KeptFile> kept) {
  if (used.find_devices) process_watch_.emplace(kWatchNs);
  NodeServices* const services = this;
  FileKeeper* const keeper = this;
  shares_ = std::make_unique<NodeShares>(
      used, devices_, HostBytes(used), std::move(kept), keeper,
      [](const std::string& line) { LogWarning(line); },
      std::vector<std::string>{"/proc/self/exe", kSlabWorkerOption});
  plan_service_ =
      std::make_unique<PlanService>(PlanServiceRulesOf(used), PlanStoreOf(used),
                                    std::vector<std::string>{"/proc/self/exe", kPlanWorkerOption},
                                    [](const std::string& line) { LogWarning(line); });
  state_path_ = StatePathOf(used);
  OpenHeldRecords(used);
  limits_ = std::make_unique<LimitThread>(state_path_.empty() ? "" : state_path_ + ".limits");
  node_ = std::make_unique<Node>(used, devices_, HostBytes(used), RandomNumber(), services, NowNs(),
                                 shares_.get(), plan_service_.get(), held_.get(), limits_.get());
  base::Result<SavedState> state = state_path_.empty() ? SavedState{} : LoadState(state_path_);
  if (!state) LogWarning(state.text());
  SavedState saved = std::move(state).value_or({});
  if (saved.boot != BootId()) {
    saved.expected.clear();
    saved.allocations.clear();
  }
  node_->Restore(saved);
}

// Where nothing is on record, the driver's numbers confirm what processes report.
void Agent::OpenHeldRecords(const Config& config) {
  held_ = std::make_unique<HeldRecords>(state_path_.empty() ? "" : state_path_ + ".held");
  if (!held_->opened().ok()) LogWarning(held_->opened().text());
  if (!config.find_devices) return;
  for (const ProcessUse& use : Nvml().UsedByProcesses().uses) {
    for (const NodeDevice& device : devices_) {
      if (device.name == use.uuid) held_->Confirm(use.pid, device.uuid, use.bytes);
    }
  }
}

base::Status Agent::TakeInherited(const Config& config, std::vector<NodeShares::KeptFile>* kept) {
  base::Status first_error;
  for (const Supervisor::File& file : service_.TakeFiles()) {
    if (NodeShares::IsKeptName(file.name)) {
      kept->push_back({file.name, base::UniqueFd(file.file)});
      continue;
    }
    if (AllocationListeners::IsKnownName(file.name)) {
      allocations_.TakeOver(file);
      continue;
    }
    base::Status taken = TakeSocket(config, file);
    if (first_error.ok()) first_error = std::move(taken);
  }
  return first_error;
}

base::Status Agent::TakeSocket(const Config& config, const Supervisor::File& file) {
  std::optional<Entrance> known;
  if (listener_.IsKnownName(file.name)) known = Entrance::kAll;
  if (jobs_listener_.IsKnownName(file.name)) known = Entrance::kJobsOnly;
  const auto entrance = EntranceOf(AddressOf(file.file), known, {config.socket, config.job_socket});
  if (!entrance) return entrance.status();
  return (*entrance == Entrance::kAll ? listener_ : jobs_listener_).TakeOver(file);
}

int Agent::Run() {
  if (node_ == nullptr || !Open()) return 1;
  service_.Ready("serving " + node_->config().socket);
  LogInfo("serving " + node_->config().socket +
          (jobs_listener_.is_open() ? ", for jobs alone " + JobsAddress() : "") +
          (http_ ? ", pages at " + PagesAddress() : ""));
  while (!stopping_) {
    Wait();
    ResumeListening();
    node_->Settle(NowNs());
    LogDetachedSessions();
    shares_->KeepFiles();
    Publish();
    KeepState();
    ReopenAllocations();
    CheckMemoryReserve();
  }
  if (!reexecutes_) service_.Stopping();
  node_->Stop();
  if (reexecutes_) Reexecute();
  listener_.RemovePath(node_->config().socket);
  jobs_listener_.RemovePath(node_->config().job_socket);
  allocations_.RemovePaths();
  LogInfo("stopped; jobs keep what they have");
  return reexecutes_ ? 1 : 0;
}

std::string Agent::JobsAddress() const {
  const std::string& configured = node_->config().job_socket;
  return configured.empty() ? "the socket of its unit" : configured;
}

// What fails is tried again, and logged once: a folder may come back, or another agent end.
void Agent::ReopenAllocations() {
  if (NowNs() < next_reopen_ns_ || allocations_.size() == node_->allocations().size()) return;
  next_reopen_ns_ = NowNs() + kReopenNs;
  std::map<std::string, std::string> failures;
  for (const auto& [name, allocation] : node_->allocations()) {
    const base::Status opened = OpenListener(name).status();
    if (opened.ok()) continue;
    if (const auto known = reopen_failures_.find(name);
        known == reopen_failures_.end() || known->second != opened.text())
      LogWarning("allocation " + name + " has no socket: " + opened.text());
    failures[name] = opened.text();
  }
  reopen_failures_ = std::move(failures);
}

base::Result<std::string> Agent::OpenListener(const std::string& allocation) {
  const std::string& configured = node_->config().job_socket;
  base::Result<std::string> path = AllocationListeners::PathOf(
      allocation, configured.empty() && jobs_listener_.is_open() ? AddressOf(jobs_listener_.file())
                                                                 : configured);
  if (!path) return path;
  const base::Result<const Listener*> opened = allocations_.Open(allocation, *path);
  if (!opened) return opened.status();
  if (*opened != nullptr) Watch((*opened)->file(), TokenOf(**opened));
  return path;
}

base::Status Agent::CloseListener(const std::string& allocation) {
  return allocations_.Close(allocation);
}

std::string Agent::PagesAddress() const {
  const std::string& asked = node_->config().http;
  if (asked.empty()) return node_->config().http_socket;
  return asked.substr(0, asked.rfind(':') + 1) + std::to_string(http_->port());
}

bool Agent::Open() {
  poll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  const sigset_t handled = HandledSignals();
  signals_.Reset(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  const Config& config = node_->config();
  Publish();
  if (!OpenPages(config)) return false;
  for (const Listener* listener : Listeners()) Watch(listener->file(), TokenOf(*listener));
  ReopenAllocations();
  allocations_.DropNotOpened();
  Watch(signals_.get(), Token(About::kSignals));
  if (shares_->file() >= 0) Watch(shares_->file(), Token(About::kSlabs));
  Watch(plan_service_->file(), Token(About::kPlans));
  Watch(limits_->file(), Token(About::kLimits));
  return true;
}

bool Agent::OpenPages(const Config& config) {
  if (config.http.empty() && config.http_socket.empty()) return true;
  auto access = HttpAccess::Open(AccessFilesOf(config));
  if (!access) LogError("no pages: " + access.text());
  if (!access) return false;
  if ((*access)->has_token() && !(*access)->has_tls() && !IsLoopback(config.http))
    LogWarning("[http] token_file without certificate: tokens cross the network unencrypted");
  http_ = std::make_unique<HttpServer>(
      HttpPlaces{config.http, config.http_socket, static_cast<mode_t>(config.http_socket_mode)},
      *access, &latest_, &used_memory_,
      [service = plan_service_.get(),
       timelines = PlanTimelines({"/proc/self/exe", kTimelineOption})](const std::string& job) {
        return timelines.JsonOf(service->PlansOf(job));
      });
  const base::Status started = http_->Start();
  if (!started.ok()) LogError("no pages: " + started.text());
  return started.ok();
}

ConfigResult Agent::ReadConfigAgain() const {
  ConfigResult result = ReadConfigFiles(options_.config_path, options_.config_file);
  for (const std::string& error : result.errors) LogError(error);
  return result;
}

// With a refused configuration the new process would end for good.
bool Agent::CanReexecute() const {
  const ConfigResult result = ReadConfigAgain();
  if (!result.errors.empty())
    LogError("does not run anew with this configuration; goes on as it is");
  return result.errors.empty();
}

void Agent::Reexecute() {
  LogInfo("runs anew");
  http_.reset();
  plan_service_.reset();
  std::vector<Supervisor::File> files;
  for (const Listener* listener : Listeners()) files.push_back(listener->ToPassOn());
  for (const auto& [name, file] : shares_->FilesToKeep()) files.push_back({file, name});
  shares_->EndMaker();
  Supervisor::Reexecute(options_.arguments, files);
  LogError(std::string("cannot run anew: ") + strerror(errno));
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
  int64_t until_ns = std::min({node_->NextWake(), next_publish_ns_, listens_from_ns_});
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
  const SessionId session{token >> kAboutBits};
  switch (static_cast<About>(token & ((1 << kAboutBits) - 1))) {
    case About::kChannel:
      return node_->Readable(session, NowNs());
    case About::kProcess:
      return node_->PeerEnded(session, NowNs());
    case About::kListener:
      return AcceptSome(listener_);
    case About::kJobsListener:
      return AcceptSome(jobs_listener_);
    case About::kAllocation:
      if (const Listener* const listener = allocations_.Find(static_cast<uint64_t>(session)))
        AcceptSome(*listener);
      return;
    case About::kSignals:
      return TakeSignal();
    case About::kLimits:
      return limits_->Drain();
    case About::kSlabs:
    case About::kPlans:
      return;
  }
}

void Agent::AcceptSome(const Listener& listener) {
  if (!HasSpare()) return PauseListening();
  if (MemoryReserve::IsShort()) return RefuseConnections(listener, "memory");
  for (int i = 0; i < kMostAccepted; ++i) {
    base::UniqueFd socket = protocol::AcceptFrom(listener.file());
    if (!socket && HasNoFiles()) return RefuseConnections(listener, "file descriptors");
    if (!socket) return;
    std::unique_ptr<SocketPeer> peer = SocketPeer::Of(socket.get());
    if (peer == nullptr) {
      const bool has_no_files = HasNoFiles();  // its socket took the last one
      Take(std::move(socket));
      if (has_no_files) return RefuseConnections(listener, "file descriptors");
      continue;
    }
    const int channel_file = socket.get(), process_file = peer->file();
    const auto session =
        node_->Connected(std::make_unique<protocol::SocketChannel>(
                             std::move(socket), static_cast<protocol::FileSink*>(this)),
                         std::move(peer), NowNs(), listener.entrance(), listener.allocation());
    if (!session) continue;
    Watch(channel_file, Token(About::kChannel, *session));
    Watch(process_file, Token(About::kProcess, *session));
  }
}

// Without descriptors or memory no session can be accepted, and a pending one would wake the loop
// forever. Refused clients retry later.
void Agent::RefuseConnections(const Listener& listener, const char* what) {
  spare_.Reset();
  for (int i = 0; i < kMostAccepted; ++i) {
    base::UniqueFd refused = protocol::AcceptFrom(listener.file());
    if (!refused) break;
    Take(std::move(refused));
  }
  static_cast<void>(HasSpare());
  if (NowNs() < next_shortage_ns_) return;
  next_shortage_ns_ = NowNs() + kShortageNs;
  LogWarning(std::string("no ") + what + " left for new sessions: they are turned away");
}

bool Agent::HasSpare() {
  if (!spare_) spare_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  return static_cast<bool>(spare_);
}

// Until refused sockets are closed.
void Agent::PauseListening() {
  listens_from_ns_ = NowNs() + kPauseNs;
  WatchListeners(0);
}

void Agent::ResumeListening() {
  if (NowNs() < listens_from_ns_) return;
  listens_from_ns_ = INT64_MAX;
  WatchListeners(EPOLLIN);
}

void Agent::WatchListeners(uint32_t events) {
  for (const Listener* listener : Listeners()) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = TokenOf(*listener);
    epoll_ctl(poll_.get(), EPOLL_CTL_MOD, listener->file(), &event);
  }
}

std::vector<const Listener*> Agent::Listeners() const {
  std::vector<const Listener*> listeners = allocations_.All();
  if (jobs_listener_.is_open()) listeners.push_back(&jobs_listener_);
  listeners.push_back(&listener_);
  return listeners;
}

// Sessions go on; further demands wait.
void Agent::CheckMemoryReserve() {
  const bool is_short = MemoryReserve::IsShort() && !MemoryReserve::Refill();
  if (is_short == was_short_) return;
  was_short_ = is_short;
  is_short ? LogWarning("no memory left: the agent goes on with what it has")
           : LogInfo("there is memory again");
}

// Closed descriptors have left epoll. A detached session's process is still watched.
void Agent::LogDetachedSessions() {
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
      static_cast<void>(Reload());
    } else if (taken.ssi_signo == SIGUSR1) {
      spillway::agent::SetLogLevel("debug");
      LogInfo("log level debug, by signal");
    } else if (taken.ssi_signo != SIGUSR2 || CanReexecute()) {
      stopping_ = true;
      reexecutes_ = taken.ssi_signo == SIGUSR2;
    }
  }
}

// A full disk is logged once and retried every second.
void Agent::KeepState() {
  if (state_path_.empty() || node_->saved_version() == kept_version_ || NowNs() < next_keep_ns_)
    return;
  SavedState state = node_->Saved();
  state.boot = BootId();
  base::Status kept = spillway::agent::SaveState(state_path_, state);
  if (kept.ok()) kept_version_ = node_->saved_version();
  if (!kept.ok()) next_keep_ns_ = NowNs() + kPublishNs;
  if (kept.text() != last_save_.text())
    kept.ok() ? LogInfo("what operators have set is kept again")
              : LogWarning("what operators have set would be lost with this agent: " + kept.text());
  last_save_ = std::move(kept);
}

base::Status Agent::SaveState() {
  if (state_path_.empty()) return base::Error{"[agent] state names no file"};
  next_keep_ns_ = 0;
  KeepState();
  return last_save_;
}

void Agent::Publish() {
  if (NowNs() < next_publish_ns_) return;
  next_publish_ns_ = NowNs() + kPublishNs;
  if (process_watch_) {
    node_->NoteProcesses(process_watch_->Latest());
    for (const std::string& note : process_watch_->TakeNotes()) LogWarning(note);
  }
  for (const std::string& note : limits_->TakeNotes()) LogWarning(note);
  auto report = std::make_shared<NodeReport>(node_->Report(NowNs()));
  report->config_read_s = config_read_s_;
  latest_.Set(std::move(report));
}

std::optional<JobIdentity> Agent::IdentityOf(const Peer& peer, pid_t leader_pid) {
  return processes_.IdentityOf(peer.pid(), peer.uid(), leader_pid);
}
std::unique_ptr<Peer> Agent::PeerOf(pid_t pid) { return SocketPeer::OfProcess(pid, processes_); }
void Agent::WatchProcess(SessionId session, const Peer& peer) {
  Watch(peer.file(), Token(About::kProcess, session));
}
std::string Agent::PageFor(const protocol::Ask& ask, const NodeReport& report) {
  return ask.question == protocol::Question::kConfig ? ShowConfig(node_->config())
                                                     : PageOf(ask, report);
}
void Agent::JobStarted(const JobReport& job) {
  if (job.is_logged) LogInfo(StartOf(job));
}
void Agent::JobEnded(const JobReport& job) {
  if (job.is_logged) LogInfo(EndOf(job));
}
void Agent::Warn(const std::string& line) { LogWarning(line); }
void Agent::Note(const std::string& line) { LogNote(line); }
void Agent::Inform(const std::string& line) { LogInfo(line); }
std::string Agent::WhatNeedsRestart() { return needs_restart_; }

base::Status Agent::Reload() {
  service_.Reloading(NowNs() / 1000);
  ConfigResult result = ReadConfigAgain();
  const auto access = HttpAccess::Open(AccessFilesOf(result.config));
  if (!access) LogError(access.text());
  if (!access) result.errors.push_back(access.text());
  Config next = result.config;
  if (!options_.socket.empty()) next.socket = options_.socket;
  // A new address takes a restart, but its guards do not: the one that stays must not lose them.
  for (const std::string& wrong : WrongHttpSettings(WithoutRestart(node_->config(), next)))
    result.errors.push_back("until a restart " + wrong);
  service_.Ready("serving " + node_->config().socket);
  node_->NoteReload(result.errors.empty());
  if (!result.errors.empty()) return base::Error{"nothing was changed", result.errors.front()};
  if (http_ != nullptr) http_->SetAccess(*access);
  for (const std::string& line : DifferencesBetween(node_->config(), next))
    LogInfo("reload: " + line);
  needs_restart_.clear();
  for (const std::string& name : NeedRestart(node_->config(), next)) {
    LogWarning(name + " takes a restart");
    needs_restart_ += (needs_restart_.empty() ? "" : ", ") + name;
  }
  if (!needs_restart_.empty()) needs_restart_ = "only a restart takes over " + needs_restart_;
  next = WithoutRestart(node_->config(), std::move(next));
  spillway::agent::SetLogLevel(next.log_level);
  node_->SetConfig(next);
  shares_->SetRates(next, devices_);
  plan_service_->SetRules(PlanServiceRulesOf(next));
  config_read_s_ = SecondsSince1970();
  return base::Ok();
}

int64_t Agent::NowNs() const { return static_cast<int64_t>(base::MonotonicNs()); }

bool Agent::Keep(const std::string& name, int file) { return service_.Keep(name, file); }
bool Agent::Drop(const std::string& name) { return service_.Drop(name); }
// Until it is closed, a session's socket would wake the loop.
void Agent::Take(base::UniqueFd file) {
  epoll_ctl(poll_.get(), EPOLL_CTL_DEL, file.get(), nullptr);
  closer_.Take(std::move(file));
}

base::Status Agent::SetLogLevel(const std::string& level) {
  if (spillway::agent::SetLogLevel(level)) return base::Ok();
  return base::Error{"the levels are trace, debug, info, warn and error"};
}

}  // namespace spillway::agent
