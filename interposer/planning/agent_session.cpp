#include "interposer/planning/agent_session.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/pause.h"
#include "base/quiet_thread.h"
#include "interposer/config/config.h"
#include "interposer/driver/device_budget.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/turn_gate.h"
#include "interposer/lease/host_slabs.h"
#include "interposer/planning/device_identity.h"
#include "interposer/planning/driver_section.h"
#include "interposer/planning/planner_thread.h"
#include "interposer/planning/session_messages.h"
#include "interposer/planning/usage_report.h"
#include "protocol/socket_channel.h"

namespace spillway::interposer {

using base::MonotonicNs;
using base::MutexLock;
using driver::Driver;

namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kAnswerPatienceNs = 5 * kSecondNs;
constexpr std::uint64_t kQueuePatienceNs = 3600 * kSecondNs;
// A little longer than LeaseClient waits for a grant. Then the job may grow again.
constexpr std::uint64_t kHeldBackNs = 6 * kSecondNs;
// The longest that an exit waits for the lease thread's lock.
constexpr std::uint64_t kExitPatienceNs = 20'000'000;
constexpr std::int64_t kLongestPauseMs = 100, kTurnPauseMs = 1;
constexpr std::int64_t kShortPauseNs = 1'000'000;
// While it may still grow, a job asks for twice the host memory that it needs, and at least this.
constexpr std::int64_t kFirstHostBytes = std::int64_t{1} << 30;

LeaseClient::Settings SettingsOf(const Config& config) {
  return {.leader_pid = config.job_pid.value_or(0),
          .own_host_limit_bytes = static_cast<std::int64_t>(config.host_limit_bytes.value_or(0))};
}

}  // namespace

AgentSession* AgentSession::Instance() {
  static AgentSession* const session =
      ProcessConfig().agent.empty() ? nullptr : new AgentSession(ProcessConfig().agent);
  return session;
}

AgentSession::AgentSession(const std::string& address)
    : address_(address), client_(SettingsOf(ProcessConfig()), this, this) {}

void AgentSession::Attach(JobMemory* memory) {
  const int number = memory->device();
  {
    const MutexLock lock(mutex_);
    Device* const device = Find(static_cast<std::uint32_t>(number));
    if (!device) return;
    device->memory = memory;
    device->own_budget_bytes = static_cast<std::int64_t>(memory->grants().budget_bytes());
    device->growth.Begin(MonotonicNs());
    device->idleness.Begin(MonotonicNs());
    spill_.Attach(memory);
    client_.Use(static_cast<std::uint32_t>(number), UuidOf(number), MemoryOf(number),
                NumberOf(BudgetOf(number).bytes.value_or(0)));
    if (device->turn.Waits()) memory->grants().KeepBudgetForPlans();
    if (device->standing == Standing::kGranted) Apply(device);
    UpdateGate();
    if (device->terms)
      memory->grants().JoinLink(device->place, device->terms.get(), device->lanes.get());
  }
  StartThreads();
  has_lease_thread_ ? AwaitFirstAnswer(number) : StopWaiting(number);
}

void AgentSession::Detach(JobMemory* memory) {
  spill_.Detach(memory);
  for (;; base::Pause(kShortPauseNs)) {
    const MutexLock lock(mutex_);
    for (Device& device : devices_) {
      if (device.memory != memory) continue;
      device.memory = nullptr;
      device.turn.EndDraining();
    }
    UpdateGate();
    if (served_ != memory) return;
  }
}

AgentSession::Device* AgentSession::Find(std::uint32_t number) {
  return number < devices_.size() ? &devices_[number] : nullptr;
}

AgentSession::Standing AgentSession::StandingOf(int number) {
  const MutexLock lock(mutex_);
  return devices_[static_cast<size_t>(number)].standing;
}

void AgentSession::AwaitFirstAnswer(int number) {
  const std::uint64_t start_ns = MonotonicNs();
  bool has_said = false;
  for (;;) {
    const Standing standing = StandingOf(number);
    if (standing == Standing::kGranted) return PrintBudgetInForce(number);
    if (standing == Standing::kAlone) return;
    const std::uint64_t waited_ns = MonotonicNs() - start_ns;
    const std::uint64_t patience_ns =
        standing == Standing::kAsking ? kAnswerPatienceNs : kQueuePatienceNs;
    const bool is_over = standing == Standing::kRejected || waited_ns > patience_ns;
    if (standing == Standing::kAdmitted && waited_ns > kAnswerPatienceNs &&
        !std::exchange(has_said, true))
      session_messages::SayAdmitted();
    if (is_over || ThreadsMustEnd()) return StopWaiting(number);
    base::Pause(kShortPauseNs);
  }
}

void AgentSession::PrintBudgetInForce(int number) {
  if (!ProcessConfig().shows_summary) return;
  const MutexLock lock(mutex_);
  const Device& device = devices_[static_cast<size_t>(number)];
  const std::int64_t budget_bytes = std::min(device.granted_bytes, device.own_budget_bytes);
  session_messages::SayBudget(address_, budget_bytes, number);
}

void AgentSession::StopWaiting(int number) {
  const MutexLock lock(mutex_);
  Device& device = devices_[static_cast<size_t>(number)];
  if (device.standing == Standing::kAsking) GiveUpOnAgent();
  if (device.standing != Standing::kGranted && device.standing != Standing::kAlone)
    device.memory->grants().GrantBudget(0);
}

void AgentSession::GiveUpOnAgent() {
  for (Device& device : devices_) {
    if (!device.memory || device.standing != Standing::kAsking) continue;
    const bool is_required = ProcessConfig().agent_required;
    device.standing = is_required ? Standing::kRejected : Standing::kAlone;
    session_messages::SayGivenUp(address_, is_required);
  }
}

DeviceUse AgentSession::Read(std::uint32_t number) {
  Device* const device = Find(number);
  if (!device || !device->memory) return {};
  const std::uint64_t now_ns = MonotonicNs();
  const JobSnapshot snapshot = device->memory->view().Read();
  device->idleness.NoteActivity(OperationsOf(snapshot), snapshot.in_call, now_ns);
  if (device->idleness.ShouldAsk(now_ns)) shrink_notifier_.Notify();
  if (device->idleness.IsActive()) ExpectReturn(device, device->lent.Woke(now_ns));
  spill_.NoteRest(number, !device->idleness.IsActive() || device->turn.Waits());
  const std::int64_t host_need_bytes = NumberOf(
      snapshot.host_need_bytes - std::min(snapshot.host_need_bytes, snapshot.spilled_bytes));
  DeviceUse use =
      UseOf(snapshot, PlannerThread::Instance().CountsOf(device->memory), device->turn.IsInTurns());
  use.active = device->idleness.IsActive();
  use.phase = PhaseOf(device->memory, snapshot);
  use.wanted_bytes = Wanted(device, use.allocated_bytes, now_ns);
  use.host_need_bytes =
      device->growth.MayGoOn(now_ns) ? 2 * host_need_bytes + kFirstHostBytes : host_need_bytes;
  return use;
}

std::int64_t AgentSession::Wanted(Device* device, std::int64_t peak_bytes, std::uint64_t now_ns) {
  device->growth.NotePeak(peak_bytes, now_ns);
  if (!device->growth.MayGoOn(now_ns)) return peak_bytes;
  const auto own_host_bytes =
      static_cast<std::int64_t>(device->memory->grants().own_host_limit_bytes());
  return std::max(device->own_budget_bytes, peak_bytes) + own_host_bytes;
}

// Memory allocated between Read and HoldBudget appears in the caller's next reading.
void AgentSession::HoldGrowth(std::uint32_t number) {
  Device* const device = Find(number);
  if (!device || !device->memory || device->standing != Standing::kAlone) return;
  const size_t held_bytes = device->memory->view().Read().held_bytes;
  if (held_bytes == 0) return;
  device->is_held_back = true;
  device->memory->grants().HoldBudget(
      std::min(held_bytes, static_cast<size_t>(device->own_budget_bytes)),
      MonotonicNs() + kHeldBackNs);
}

void AgentSession::Release(Device* device) {
  if (std::exchange(device->is_held_back, false) && device->memory)
    device->memory->grants().GrantBudget(static_cast<size_t>(device->own_budget_bytes));
}

void AgentSession::ReleaseGrowth(std::uint32_t number) {
  if (Device* const device = Find(number)) Release(device);
}

// A job that waits in the queue, or was left with nothing, holds no memory.
void AgentSession::NoteAgentAbsent(std::uint32_t number, Absence how) {
  Device* const device = Find(number);
  if (!device) return;
  if (device->turn.Forget()) {
    UpdateGate();
    session_messages::SayTurnsEnded(address_);
  }
  const bool has_nothing = device->standing == Standing::kGranted && device->granted_bytes == 0;
  if (device->standing != Standing::kQueued && !has_nothing) return;
  const bool is_required = ProcessConfig().agent_required;
  if (!is_required) device->standing = Standing::kAlone;
  if (!is_required && device->memory)
    device->memory->grants().GrantBudget(static_cast<size_t>(device->own_budget_bytes));
  session_messages::SayAbsent(address_, how, is_required);
}

void AgentSession::SetHostLimit(const protocol::Grant& grant) {
  Device* const device = Find(grant.device);
  if (!device) return;
  device->granted_host_bytes = grant.host_bytes;
  if (device->memory) device->memory->grants().SetHostLimit(static_cast<size_t>(grant.host_bytes));
}

void AgentSession::SetWorkspaceLimit(const protocol::WorkspaceGrant& grant) {
  Device* const device = Find(grant.device);
  if (!device) return;
  device->workspace_limit_bytes = static_cast<size_t>(grant.limit_bytes);
  if (device->memory) device->memory->grants().SetWorkspaceLimit(device->workspace_limit_bytes);
}

void AgentSession::SetBudget(const protocol::Grant& grant, std::int64_t) {
  Device* const device = Find(grant.device);
  if (!device) return;
  device->granted_bytes = grant.budget_bytes;
  device->link_permille = std::max(grant.link_permille, 1);
  device->standing = Standing::kGranted;
  device->is_held_back = false;
  if (device->memory) Apply(device);
}

void AgentSession::SetTurn(const protocol::Turn& turn, std::int64_t patience_until_ns) {
  Device* const device = Find(turn.device);
  if (!device) return;
  device->turn.Hear(turn, static_cast<std::uint64_t>(patience_until_ns));
  device->idleness.SetInTurns(device->turn.IsInTurns());
  if (device->memory && device->turn.Waits()) device->memory->grants().KeepBudgetForPlans();
  if (device->memory && !device->turn.HoldsGate()) device->memory->grants().EndKeepingForPlans();
  UpdateGate();
  shrink_notifier_.Notify();
}

void AgentSession::UpdateGate() {
  const bool must_wait = std::any_of(devices_.begin(), devices_.end(), [](const Device& device) {
    return device.memory && device.turn.HoldsGate();
  });
  TurnGate& gate = TurnGate::Instance();
  if (must_wait != gate.IsHeld()) must_wait ? gate.Hold() : gate.Open();
}

bool AgentSession::MayConfirm(std::uint32_t number) {
  const Device* const device = Find(number);
  return !device || !device->turn.is_draining();
}

void AgentSession::Apply(Device* device) {
  device->memory->grants().SetLinkPermille(device->link_permille);
  device->memory->grants().SetWorkspaceLimit(device->workspace_limit_bytes);
  device->memory->grants().SetHostLimit(static_cast<size_t>(device->granted_host_bytes));
  const std::int64_t budget_bytes = std::min(device->granted_bytes, device->own_budget_bytes);
  const bool shrinks =
      budget_bytes < static_cast<std::int64_t>(device->memory->grants().budget_bytes());
  // Note [Quiet] in turn_gate.h
  if (shrinks && TurnGate::Instance().IsHeld()) {
    device->turn.BeginDraining(MonotonicNs());
    shrink_notifier_.Notify();
  } else {
    device->turn.EndDraining();
    ApplyBudget(device);
  }
}

void AgentSession::ApplyBudget(Device* device) {
  const auto budget_bytes =
      static_cast<size_t>(std::min(device->granted_bytes, device->own_budget_bytes));
  const bool lends = !device->idleness.IsActive() || device->turn.Waits();
  const auto until_ns = device->lent.Granted(budget_bytes, lends, MonotonicNs());
  const bool is_most = device->granted_bytes >= device->own_budget_bytes;
  ExpectReturn(device, is_most ? LentBudget::kNothing : until_ns);
  // A job that holds nothing may get a budget of 0. Its next call then waits for a grant.
  if (budget_bytes > 0)
    device->memory->grants().GrantBudget(budget_bytes);
  else
    device->memory->grants().HoldBudget(0, UINT64_MAX);
  device->shrink.Changed();
  shrink_notifier_.Notify();
}

std::int64_t AgentSession::MissingSlabBytes(std::uint32_t device) {
  return static_cast<std::int64_t>(HostSlabs::Instance().MissingBytes(static_cast<int>(device)));
}

std::vector<protocol::SlabName> AgentSession::HeldSlabs() { return HostSlabs::Instance().Held(); }

std::vector<protocol::SlabName> AgentSession::TakeReturnedSlabs() {
  return HostSlabs::Instance().TakeReturned();
}

void AgentSession::SetLinkPlace(const protocol::LinkPlace& place, base::UniqueFd terms,
                                base::UniqueFd lanes) {
  Device* const device = Find(place.device);
  if (!device) return;
  device->place = place;
  device->terms = std::move(terms);
  device->lanes = std::move(lanes);
  if (device->memory)
    device->memory->grants().JoinLink(place, device->terms.get(), device->lanes.get());
}

AgentSession::Standing AgentSession::StandingBy(protocol::AdmissionState state) {
  if (state == protocol::AdmissionState::kAdmitted) return Standing::kAdmitted;
  return state == protocol::AdmissionState::kQueued ? Standing::kQueued : Standing::kRejected;
}

// A running job continues, whatever a new agent answers to its registration.
void AgentSession::Admission(const protocol::Admission& admission) {
  Device* const device = Find(admission.device);
  if (device && admission.state != protocol::AdmissionState::kAdmitted) Release(device);
  const bool has_begun =
      !device || device->standing == Standing::kGranted || device->standing == Standing::kAlone;
  if (has_begun) return;
  const Standing standing = StandingBy(admission.state);
  if (std::exchange(device->standing, standing) == standing || standing == Standing::kAdmitted)
    return;
  session_messages::SayNotAdmitted(standing == Standing::kQueued,
                                   std::string(admission.reason.view()));
}

void AgentSession::TakePlanReply(const protocol::PlanReply& reply,
                                 std::vector<base::UniqueFd> files) {
  planner_.Deliver(reply, std::move(files));
}

void AgentSession::TakeRecalledPlans(const protocol::RecalledPlans& recalled,
                                     std::vector<base::UniqueFd> files) {
  planner_.Deliver(recalled, std::move(files));
}

void AgentSession::HandleSessionLoss() {
  planner_.Lost();
  for (Device& device : devices_) {
    Release(&device);
    ExpectReturn(&device, device.lent.AgentLost(MonotonicNs()));
    // No agent is left that could grant the memory. The job waits for an agent again.
    if (device.standing == Standing::kAdmitted) device.standing = Standing::kQueued;
  }
}

bool AgentSession::Send(const protocol::AskPlan& ask, int file) {
  const MutexLock lock(mutex_);
  return client_.AskPlan(ask, file);
}

bool AgentSession::Send(const protocol::RecallPlans& recall) {
  const MutexLock lock(mutex_);
  return client_.RecallPlans(recall);
}

std::unique_ptr<protocol::Channel> AgentSession::Connect() {
  base::UniqueFd socket = protocol::ConnectTo(address_);
  return socket ? std::make_unique<protocol::SocketChannel>(std::move(socket)) : nullptr;
}

void AgentSession::StartThreads() {
  if (threads_started_) return;
  threads_started_ = true;
  WatchExit();
  on_exit(&AtExit, this);
  const auto run = [](void* session) -> void* {
    static_cast<AgentSession*>(session)->Run();
    return nullptr;
  };
  const auto run_shrinking = [](void* session) -> void* {
    static_cast<AgentSession*>(session)->RunShrinking();
    return nullptr;
  };
  lease_thread_shrinks_ = !base::StartDetachedThread("spillway-shrink", run_shrinking, this);
  has_lease_thread_ = base::StartDetachedThread("spillway-lease", run, this);
}

// Runs on the exiting thread. A forked child has never spoken to the agent. If the lease thread is
// busy, the agent learns of the exit a little later.
void AgentSession::AtExit(int status, void* session) {
  auto* const self = static_cast<AgentSession*>(session);
  if (self->pid_ == getpid()) self->ReportExit(status);
}

void AgentSession::ReportExit(int status) {
  const std::uint64_t start_ns = MonotonicNs();
  while (!mutex_.TryLock()) {
    if (MonotonicNs() - start_ns > kExitPatienceNs) return;
    sched_yield();
  }
  client_.End(status);
  mutex_.Unlock();
}

void AgentSession::Run() {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  Driver().cuThreadExchangeStreamCaptureMode(&mode);
  int file = -1;
  std::int64_t next_ns = 0;
  while (TakeTurn(&file, &next_ns)) {
    if (lease_thread_shrinks_) ServeMemory();
    const std::int64_t pause_ms = (next_ns - static_cast<std::int64_t>(MonotonicNs())) / 1'000'000;
    pollfd watched[] = {{file, POLLIN, 0}, {Notifier::ForGrants().file(), POLLIN, 0}};
    poll(watched, 2, static_cast<int>(std::clamp<std::int64_t>(pause_ms, 1, kLongestPauseMs)));
    Notifier::ForGrants().Clear();
  }
  TurnGate::Instance().Open();  // nobody is left to tell of a turn
}

void AgentSession::RunShrinking() {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  Driver().cuThreadExchangeStreamCaptureMode(&mode);
  while (!ThreadsMustEnd()) {
    pollfd watched{shrink_notifier_.file(), POLLIN, 0};
    poll(&watched, 1, static_cast<int>(ShrinkPauseMs()));
    shrink_notifier_.Clear();
    ServeMemory();
  }
}

std::int64_t AgentSession::ShrinkPauseMs() {
  const MutexLock lock(mutex_);
  return IsTurnChanging() ? kTurnPauseMs : kLongestPauseMs;
}

bool AgentSession::IsTurnChanging() {
  return std::any_of(devices_.begin(), devices_.end(), [](const Device& device) {
    return device.memory && (device.turn.is_draining() || device.turn.is_starting());
  });
}

void AgentSession::ServeMemory() {
  do {
    Shrink();
    StartTurns();
    while (JobMemory* const memory = TakeAsked()) {
      const DriverSection section;
      const bool has_work = !section.may_call() || memory->view().HasWork();
      if (!has_work && ProcessConfig().lends_pools) memory->own_memory().ReleaseRuns();
      Answered(has_work);
    }
  } while (ServeHostMemory());
}

// A job whose memory may have to leave has host memory ready for it. Another one gives up what it
// does not need. True: there is more to do.
bool AgentSession::ServeHostMemory() {
  bool more = false, may_leave = false;
  for (size_t number = 0; JobMemory* const memory = TakeNext(&number, &may_leave); ++number) {
    const DriverSection section;
    if (!section.may_call()) continue;
    if (may_leave)
      more = memory->grants().PrepareToLeave() || more;
    else
      memory->spilling().ReleaseSpareCopies(MonotonicNs());
  }
  return more;
}

// The first from there on. Null: none, and none is served any more.
JobMemory* AgentSession::TakeNext(size_t* number, bool* may_leave) {
  const MutexLock lock(mutex_);
  while (*number < devices_.size() && !devices_[*number].memory) ++*number;
  if (*number == devices_.size()) return served_ = nullptr;
  const Device& device = devices_[*number];
  *may_leave = device.turn.IsInTurns() || !device.idleness.IsActive();
  return served_ = device.memory;
}

// The caller must report the result with Answered.
JobMemory* AgentSession::TakeAsked() {
  const MutexLock lock(mutex_);
  const std::uint64_t now_ns = MonotonicNs();
  if (TurnGate::Instance().AnyWaits()) return nullptr;  // it is not idle
  for (Device& device : devices_) {
    if (!device.memory || !device.idleness.ShouldAsk(now_ns)) continue;
    device.idleness.Asks();
    return served_ = device.memory;
  }
  return nullptr;
}

void AgentSession::Answered(bool has_work) {
  const MutexLock lock(mutex_);
  const JobMemory* const memory = std::exchange(served_, nullptr);
  for (Device& device : devices_) {
    if (device.memory == memory) device.idleness.Answered(has_work, MonotonicNs());
  }
}

void AgentSession::EndDraining(std::uint64_t now_ns) {
  for (Device& device : devices_) {
    if (!device.memory || !device.turn.is_draining()) continue;
    const bool is_quiet = TurnGate::Instance().IsQuiet() && !device.memory->view().AnyCallInside();
    if (!device.turn.IsDrained(is_quiet, now_ns)) continue;
    device.turn.EndDraining();
    ApplyBudget(&device);
  }
}

JobMemory* AgentSession::TakeStarting() {
  const MutexLock lock(mutex_);
  for (const Device& device : devices_) {
    if (device.memory && device.turn.is_starting() && served_ == nullptr)
      return served_ = device.memory;
  }
  return nullptr;
}

// Each device by itself: the gate opens with the last.
void AgentSession::StartTurns() {
  JobMemory* const memory = TakeStarting();
  if (!memory) return;
  {
    const DriverSection section;
    if (section.may_call()) memory->grants().BringBack();
  }
  EndStarting();
}

void AgentSession::EndStarting() {
  const MutexLock lock(mutex_);
  BeginTurns(std::exchange(served_, nullptr));
}

// `brought_back`: by the shrink thread, which comes first. If it is busy, it may wait for work that
// a held call would begin.
void AgentSession::BeginTurns(const JobMemory* brought_back) {
  const std::uint64_t now_ns = MonotonicNs();
  for (Device& device : devices_) {
    if (!device.memory) continue;
    const bool may_start =
        served_ || device.memory == brought_back || device.turn.IsPatienceOver(now_ns);
    if (may_start && device.turn.TryToStart(device.granted_bytes, device.own_budget_bytes, now_ns))
      device.memory->grants().EndKeepingForPlans();
  }
  UpdateGate();
}

void AgentSession::Shrink() {
  while (JobMemory* const memory = TakeShrinking()) {
    const DriverSection section;
    if (!section.may_call()) continue;
    if (TurnGate::Instance().IsHeld()) memory->own_memory().ReleaseRuns();
    memory->grants().MeetBudget();
  }
}

// The caller no longer touches the one it took before.
JobMemory* AgentSession::TakeShrinking() {
  const MutexLock lock(mutex_);
  const std::uint64_t now_ns = MonotonicNs();
  EndShrinking(now_ns);
  for (Device& device : devices_) {
    if (!device.memory || !device.shrink.IsDue(now_ns)) continue;
    device.shrink.Begin();
    served_ = device.memory;
    break;
  }
  return served_;
}

void AgentSession::EndShrinking(std::uint64_t now_ns) {
  const JobMemory* const memory = std::exchange(served_, nullptr);
  for (Device& device : devices_) {
    if (!memory || device.memory != memory) continue;
    device.shrink.End(
        device.memory->view().Read().held_bytes <= device.memory->grants().budget_bytes(), now_ns);
  }
}

bool AgentSession::TakeTurn(int* file, std::int64_t* next_ns) {
  const DriverSection section;
  const MutexLock lock(mutex_);
  if (!section.may_call()) return false;
  *next_ns = client_.Step(static_cast<std::int64_t>(MonotonicNs()));
  EndDraining(MonotonicNs());
  BeginTurns(nullptr);
  if (IsTurnChanging()) *next_ns = 0;
  *file = client_.file();
  if (*file < 0 && !client_.is_put_off()) GiveUpOnAgent();
  return true;
}

}  // namespace spillway::interposer
