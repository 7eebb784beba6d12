#include "interposer/lease/lease_client.h"

#include <algorithm>
#include <utility>

namespace spillway::interposer {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kFirstPauseNs = 50 * kMillisecond;
constexpr int64_t kLongestPauseNs = 2000 * kMillisecond;
constexpr int64_t kRefusedPauseNs = 30'000 * kMillisecond;
constexpr int64_t kPutOffPauseNs = 1000 * kMillisecond;
constexpr int64_t kAnswerNs = 5000 * kMillisecond;  // a silent agent counts as hung then
constexpr int64_t kNoFilesPauseNs = 10'000 * kMillisecond;
constexpr int64_t kSilenceNs = 15'000 * kMillisecond;
constexpr int64_t kWaitingAlonePatienceNs = 30'000 * kMillisecond;
constexpr int64_t kWhileShrinkingNs = 5 * kMillisecond;
constexpr uint16_t kHostNeedVersion = 3, kPlansVersion = 3, kPartsVersion = 4,
                   kFootprintVersion = 6, kWorkspaceVersion = 8, kTurnsVersion = 9,
                   kPlanUseVersion = 10, kSpillVersion = 11, kLostTimeVersion = 11;
// Freed memory is reported in pieces of this size.
constexpr int64_t kPieceBytes = int64_t{64} << 20;

// A forked child of the program may keep the connection open.
void Disconnect(std::unique_ptr<protocol::Channel>& channel) {
  if (channel != nullptr) channel->End();
  channel.reset();
}

// Moves the last names, up to a message's limit, out of `names`.
protocol::SlabNames TakeSome(std::vector<protocol::SlabName>& names) {
  protocol::SlabNames some;
  for (; !names.empty() && some.count < protocol::kMostSlabsAtOnce; names.pop_back())
    some.names[some.count++] = names.back();
  return some;
}

}  // namespace

void LeaseClient::Use(uint32_t device, const protocol::DeviceUuid& uuid, int64_t memory_bytes,
                      int64_t own_limit_bytes) {
  if (Find(device) != nullptr) return;
  Device added;
  added.number = device;
  added.uuid = uuid;
  added.memory_bytes = memory_bytes;
  added.own_limit_bytes = own_limit_bytes;
  devices_.push_back(added);
}

LeaseClient::Device* LeaseClient::Find(uint32_t number) {
  const auto found = std::find_if(devices_.begin(), devices_.end(),
                                  [number](const Device& one) { return one.number == number; });
  return found == devices_.end() ? nullptr : &*found;
}

int64_t LeaseClient::Step(int64_t now_ns) {
  if (state_ == State::kAway) TryToConnect(now_ns);
  Listen(now_ns);
  for (Device& device : devices_) {
    if (std::exchange(device.must_follow, false)) Follow(device, now_ns);
  }
  // Comes after Listen: this process may have been stopped, or the clock set.
  if (state_ == State::kGreeting && now_ns >= try_again_ns_) Lose(now_ns, kFirstPauseNs);
  ProbeSilentAgent(now_ns);
  StopWaitingForAgent(now_ns);
  if (state_ != State::kServed) return try_again_ns_;
  int64_t next_ns = now_ns + interval_ns_;
  for (Device& device : devices_) {
    if (state_ != State::kServed) return try_again_ns_;
    if (MayRegister(device)) Register(device, now_ns);
    ReleaseGrowthAfterTimeout(device, now_ns);
    Confirm(device, now_ns);
    Report(device, now_ns);
    AskForSlabs(device, now_ns);
    const bool shrinks =
        device.has_grant && (device.confirmed_bytes > device.grant.budget_bytes ||
                             (device.confirmed_bytes < 0 && !subject_.MayConfirm(device.number)));
    if (shrinks) next_ns = std::min(next_ns, now_ns + kWhileShrinkingNs);
  }
  ReturnSlabs(now_ns);
  return state_ == State::kServed ? next_ns : try_again_ns_;
}

void LeaseClient::ReleaseGrowthAfterTimeout(Device& device, int64_t now_ns) {
  if (!device.is_held_back || now_ns - device.reported_held_ns < kAnswerNs) return;
  if (device.is_admitted) {
    device.is_held_back = false;
    return subject_.ReleaseGrowth(device.number);
  }
  silence_pause_ns_ = std::clamp(2 * silence_pause_ns_, kAnswerNs, kRefusedPauseNs);
  Lose(now_ns, silence_pause_ns_);
}

// A new agent may stay silent for a while: jobs that ran before register first.
void LeaseClient::StopWaitingForAgent(int64_t now_ns) {
  if (state_ != State::kAway || !lost_first_ns_ ||
      now_ns - *lost_first_ns_ < kWaitingAlonePatienceNs)
    return;
  const Absence absence = takes_connections_ ? Absence::kSilent : Absence::kGone;
  for (Device& device : devices_) {
    if (std::exchange(device.waits, false)) subject_.NoteAgentAbsent(device.number, absence);
  }
}

bool LeaseClient::IsWaiting() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const Device& one) { return one.waits; });
}

// Probes as an operator: the agent greets operators like jobs, without a place in the queue.
void LeaseClient::ProbeSilentAgent(int64_t now_ns) {
  if (state_ != State::kServed || !IsWaiting()) return EndCheck();
  if (!check_) {
    if (now_ns - last_heard_ns_ < kSilenceNs) return;
    check_ = Check{now_ns, connector_.Connect()};
    if (check_->channel != nullptr)
      check_->channel->Send(protocol::Hello{.role = protocol::Role::kOperator});
  }
  const bool answers = check_->channel != nullptr &&
                       check_->channel->Receive().what != protocol::Received::What::kNothing;
  if (answers) {
    last_heard_ns_ = now_ns;
    return EndCheck();
  }
  if (now_ns - check_->since_ns >= kAnswerNs) Lose(now_ns, kFirstPauseNs);
}

void LeaseClient::EndCheck() {
  if (check_) Disconnect(check_->channel);
  check_.reset();
}

void LeaseClient::TryToConnect(int64_t now_ns) {
  if (devices_.empty() || now_ns < try_again_ns_) return;
  channel_ = connector_.Connect();
  takes_connections_ = channel_ != nullptr;
  const int64_t pause_ns = std::clamp(2 * pause_ns_, kFirstPauseNs, kLongestPauseNs);
  if (channel_ == nullptr) return Lose(now_ns, pause_ns);
  state_ = State::kGreeting;
  try_again_ns_ = now_ns + kAnswerNs;
  protocol::Hello hello;
  hello.leader_pid = settings_.leader_pid;
  hello.software = "libspillway";
  if (channel_->Send(hello) == protocol::Sent::kSent) return;
  // Refused before Hello was read. The agent may have sent the reason.
  protocol::Received last = channel_->Receive();
  if (last.what == protocol::Received::What::kMessage) Handle(last, now_ns);
  if (state_ == State::kGreeting) Lose(now_ns, pause_ns);
}

void LeaseClient::Lose(int64_t now_ns, int64_t again_after_ns) {
  is_put_off_ = false;
  Disconnect(channel_);
  EndCheck();
  subject_.HandleSessionLoss();
  state_ = State::kAway;
  pause_ns_ = again_after_ns;
  try_again_ns_ = now_ns + again_after_ns;
  if (!lost_first_ns_) lost_first_ns_ = now_ns;
  for (Device& device : devices_) {
    device.registered = device.is_answered = device.is_held_back = device.is_admitted = false;
    device.asked_slab_bytes = 0;
  }
}

void LeaseClient::Listen(int64_t now_ns) {
  while (channel_ != nullptr) {
    protocol::Received received = channel_->Receive();
    switch (received.what) {
      case protocol::Received::What::kNothing:
        return;
      case protocol::Received::What::kClosed:
        return Lose(now_ns, kFirstPauseNs);
      case protocol::Received::What::kFault:
        return Lose(now_ns, kRefusedPauseNs);
      case protocol::Received::What::kMessage:
        Handle(received, now_ns);
    }
  }
}

void LeaseClient::Handle(protocol::Received& received, int64_t now_ns) {
  last_heard_ns_ = now_ns;
  const protocol::Message& message = received.message;
  if (const auto* welcome = std::get_if<protocol::Welcome>(&message)) {
    Begin(*welcome, now_ns);
  } else if (const auto* slabs = std::get_if<protocol::Slabs>(&message)) {
    if (received.files.size() == slabs->slabs.count)
      subject_.AddSlabs(*slabs, std::move(received.files));
    else
      ReturnUnreceived(slabs->device, slabs->slabs, now_ns);
  } else if (const auto* drivers = std::get_if<protocol::DriverSlabs>(&message)) {
    if (received.files.size() == drivers->slabs.count)
      subject_.AddDriverSlabs(*drivers, std::move(received.files));
    else
      ReturnUnreceived(drivers->device, drivers->slabs, now_ns);
  } else if (const auto* place = std::get_if<protocol::LinkPlace>(&message)) {
    if (received.files.size() == 2)
      subject_.SetLinkPlace(*place, std::move(received.files[0]), std::move(received.files[1]));
  } else if (const auto* file = std::get_if<protocol::SpillFile>(&message)) {
    if (received.files.size() == 1)
      subject_.TakeSpillFile(*file, std::move(received.files.front()));
  } else if (const auto* spilled = std::get_if<protocol::ReturnSpilled>(&message)) {
    subject_.ReturnSpilled(spilled->device);
  } else if (const auto* plan = std::get_if<protocol::PlanReply>(&message)) {
    subject_.TakePlanReply(*plan, std::move(received.files));
  } else if (const auto* recalled = std::get_if<protocol::RecalledPlans>(&message)) {
    subject_.TakeRecalledPlans(*recalled, std::move(received.files));
  } else if (const auto* grant = std::get_if<protocol::Grant>(&message)) {
    Note(*grant, now_ns);
  } else if (const auto* limit = std::get_if<protocol::WorkspaceGrant>(&message)) {
    Note(*limit);
  } else if (const auto* turn = std::get_if<protocol::Turn>(&message)) {
    Note(*turn, now_ns);
  } else if (const auto* admission = std::get_if<protocol::Admission>(&message)) {
    Note(*admission);
  } else if (const auto* error = std::get_if<protocol::Error>(&message)) {
    Handle(*error, now_ns);
  }
}

// A running agent puts off clients if too many connect at once: after a restart, or after a stop.
void LeaseClient::Handle(const protocol::Error& error, int64_t now_ns) {
  const bool comes_back =
      error.code == protocol::ErrorCode::kAgentStops ||
      (error.code == protocol::ErrorCode::kUnknownDevice && FindsUnknownDevice());
  const bool is_put_off = state_ == State::kGreeting && error.code == protocol::ErrorCode::kTooFast;
  Lose(now_ns, is_put_off ? kPutOffPauseNs : comes_back ? kFirstPauseNs : kRefusedPauseNs);
  if (is_put_off) lost_first_ns_ = now_ns;
  is_put_off_ = is_put_off;
}

// True: the next session can do better at once.
bool LeaseClient::FindsUnknownDevice() {
  std::vector<Device*> unanswered;
  for (Device& device : devices_) {
    if (IsUnanswered(device)) unanswered.push_back(&device);
  }
  if (unanswered.size() != 1) return !unanswered.empty() && !std::exchange(registers_singly_, true);
  unanswered.front()->unknown_to = agent_instance_;
  const bool is_another_left =
      std::any_of(devices_.begin(), devices_.end(),
                  [this](const Device& one) { return one.unknown_to != agent_instance_; });
  // Its configuration may change, so it is asked for all of them again.
  if (!is_another_left) {
    for (Device& device : devices_) device.unknown_to.reset();
  }
  return is_another_left;
}

bool LeaseClient::MayRegister(const Device& device) const {
  if (device.registered || device.unknown_to == agent_instance_) return false;
  return !registers_singly_ || std::none_of(devices_.begin(), devices_.end(),
                                            [](const Device& one) { return IsUnanswered(one); });
}

void LeaseClient::Begin(const protocol::Welcome& welcome, int64_t now_ns) {
  if (std::exchange(agent_instance_, welcome.agent_instance) != welcome.agent_instance)
    registers_singly_ = false;
  state_ = State::kServed;
  pause_ns_ = 0;
  interval_ns_ = welcome.usage_interval_ms * kMillisecond;
  channel_->SetVersion(welcome.version);
  if (HasShares()) ReportHeldSlabs(now_ns);
}

// Slabs that wait to be returned are left out, so they are the agent's again. The held ones are
// read first: a slab returned in between is in both lists. Otherwise it would be in neither, and be
// returned once more when the agent may have lent it again.
void LeaseClient::ReportHeldSlabs(int64_t now_ns) {
  std::vector<protocol::SlabName> held = subject_.HeldSlabs();
  for (const protocol::SlabName name : subject_.TakeReturnedSlabs()) std::erase(held, name);
  to_return_.clear();
  do {
    protocol::HeldSlabs message;
    message.slabs = TakeSome(held);
    message.last = held.empty();
    if (!Send(message, now_ns)) return Lose(now_ns, kFirstPauseNs);
  } while (!held.empty());
}

void LeaseClient::ReturnSlabs(int64_t now_ns) {
  if (!HasShares()) return;
  const std::vector<protocol::SlabName> returned = subject_.TakeReturnedSlabs();
  to_return_.insert(to_return_.end(), returned.begin(), returned.end());
  while (!to_return_.empty()) {
    const std::vector<protocol::SlabName> before = to_return_;
    if (Send(protocol::ReturnSlabs{TakeSome(to_return_)}, now_ns)) continue;
    to_return_ = before;
    return;
  }
}

// Without free descriptors in the program, the kernel drops the slabs' files (MSG_CTRUNC).
void LeaseClient::ReturnUnreceived(uint32_t number, const protocol::SlabNames& slabs,
                                   int64_t now_ns) {
  to_return_.insert(to_return_.end(), slabs.names.begin(), slabs.names.begin() + slabs.count);
  if (Device* const device = Find(number)) device->asks_slabs_from_ns = now_ns + kNoFilesPauseNs;
}

// Repeated at every interval: the quota may have grown.
void LeaseClient::AskForSlabs(Device& device, int64_t now_ns) {
  if (!device.registered || !device.has_grant || !HasShares()) return;
  if (now_ns < device.asks_slabs_from_ns) return;
  const int64_t missing_bytes = subject_.MissingSlabBytes(device.number);
  const bool is_same = missing_bytes == device.asked_slab_bytes;
  if (is_same && (missing_bytes == 0 || now_ns - device.asked_slabs_ns < interval_ns_)) return;
  if (!Send(protocol::AskSlabs{device.number, missing_bytes}, now_ns)) return;
  device.asked_slab_bytes = missing_bytes;
  device.asked_slabs_ns = now_ns;
}

void LeaseClient::Note(const protocol::Grant& grant, int64_t now_ns) {
  Device* const device = Find(grant.device);
  if (device == nullptr || !device->registered) return;
  device->grant = grant;
  device->has_grant = device->must_follow = device->is_answered = true;
  device->is_held_back = false;
  if (!device->turn) Note(protocol::Turn{.device = device->number}, now_ns);
  device->waits = grant.budget_bytes == 0 || WaitsForTurn(*device);
  if (!device->has_workspace_limit) Note(protocol::WorkspaceGrant{device->number});
  device->confirmed_bytes = device->confirmed_host_bytes = -1;
  NoteAgentMessage();
}

void LeaseClient::Note(const protocol::WorkspaceGrant& limit) {
  Device* const device = Find(limit.device);
  if (device == nullptr || !device->registered) return;
  device->has_workspace_limit = true;
  subject_.SetWorkspaceLimit(limit);
}

void LeaseClient::Note(const protocol::Turn& turn, int64_t now_ns) {
  Device* const device = Find(turn.device);
  if (device == nullptr || !device->registered) return;
  device->turn = turn.state;
  device->waits = WaitsForTurn(*device) || (device->has_grant && device->grant.budget_bytes == 0);
  device->reported_turns_ns = 0;
  subject_.SetTurn(turn, now_ns + turn.patience_ms * kMillisecond);
}

void LeaseClient::Note(const protocol::Admission& admission) {
  if (Device* const device = Find(admission.device)) {
    device->is_answered = true;
    device->is_admitted = admission.state == protocol::AdmissionState::kAdmitted;
    device->waits = admission.state != protocol::AdmissionState::kRejected && !device->has_grant;
    device->is_held_back = device->is_held_back && device->is_admitted;
    NoteAgentMessage();
  }
  subject_.Admission(admission);
}

void LeaseClient::NoteAgentMessage() {
  silence_pause_ns_ = 0;
  lost_first_ns_.reset();
}

// Follows only the newest grant. Otherwise a stale grant could evict memory for nothing.
void LeaseClient::Follow(Device& device, int64_t now_ns) {
  subject_.SetHostLimit(device.grant);
  subject_.SetBudget(device.grant, now_ns + device.grant.deadline_ms * kMillisecond);
}

bool LeaseClient::HasPlanner(uint32_t device) {
  const Device* const used = Find(device);
  return state_ == State::kServed && channel_->version() >= kPlansVersion && used != nullptr &&
         used->registered;
}

// Step notices a lost connection.
bool LeaseClient::AskPlan(const protocol::AskPlan& ask, int file) {
  return HasPlanner(ask.device) && channel_->Send(ask, {&file, 1}) == protocol::Sent::kSent;
}

bool LeaseClient::RecallPlans(const protocol::RecallPlans& recall) {
  return HasPlanner(recall.device) && channel_->Send(recall) == protocol::Sent::kSent;
}

bool LeaseClient::Send(const protocol::Message& message, int64_t now_ns) {
  if (channel_ == nullptr) return false;
  const protocol::Sent sent = channel_->Send(message);
  if (sent == protocol::Sent::kClosed) Lose(now_ns, kFirstPauseNs);
  return sent == protocol::Sent::kSent;
}

void LeaseClient::Register(Device& device, int64_t now_ns) {
  if (!device.has_grant) subject_.HoldGrowth(device.number);
  const DeviceUse use = subject_.Read(device.number);
  protocol::Register asked;
  asked.device = device.number;
  asked.uuid = device.uuid;
  asked.memory_bytes = device.memory_bytes;
  asked.wanted_bytes = use.wanted_bytes;
  asked.own_limit_bytes = device.own_limit_bytes;
  asked.own_host_limit_bytes = settings_.own_host_limit_bytes;
  // Even without a grant: a job that began without an agent holds up to its own budget.
  asked.held_bytes = std::max(device.grant.budget_bytes, use.resident_bytes);
  asked.held_host_bytes = std::max(device.grant.host_bytes, use.host_bytes);
  device.reported_held_bytes = asked.held_bytes;
  device.reported_held_ns = now_ns;
  device.is_held_back = !device.has_grant && asked.held_bytes > 0;
  device.registered = Send(asked, now_ns);
  // A new agent counts its serials anew.
  device.confirmed_bytes = device.grant.budget_bytes;
  device.confirmed_host_bytes = device.grant.host_bytes;
  device.said = {};
  device.reported_ns = now_ns;
  device.reported_need_bytes = device.reported_need_ns = 0;
  device.reported_account = {};
  device.reported_steps = {};
  device.reported_footprint.reset();
  device.reported_workspaces = {};
  device.reported_plans = {};
  device.reported_spill.reset();
  device.reported_lost = {};
  device.has_workspace_limit = false;
  device.turn.reset();
  device.reported_turns = {};
  device.reported_parts_ns = now_ns;
}

void LeaseClient::Confirm(Device& device, int64_t now_ns) {
  if (!device.has_grant || !device.registered) return;
  const bool is_done = device.confirmed_bytes >= 0 &&
                       device.confirmed_bytes <= device.grant.budget_bytes &&
                       device.confirmed_host_bytes <= device.grant.host_bytes;
  if (is_done || !subject_.MayConfirm(device.number)) return;
  const DeviceUse use = subject_.Read(device.number);
  const int64_t held_bytes = std::max(device.grant.budget_bytes, use.resident_bytes);
  // Other jobs get the rest of the host memory at once, except what pending evictions need.
  const int64_t leaves_bytes = held_bytes - device.grant.budget_bytes;
  const int64_t host_bytes = std::max(device.grant.host_bytes, use.host_bytes + leaves_bytes);
  const auto is_news = [](int64_t confirmed, int64_t held, int64_t granted) {
    return confirmed < 0 || (held < confirmed && held == granted) ||
           held <= confirmed - kPieceBytes;
  };
  if (!is_news(device.confirmed_bytes, held_bytes, device.grant.budget_bytes) &&
      !is_news(device.confirmed_host_bytes, host_bytes, device.grant.host_bytes))
    return;
  if (!Send(protocol::Obeyed{device.number, device.grant.serial, held_bytes, host_bytes}, now_ns))
    return;
  device.confirmed_bytes = held_bytes;
  device.confirmed_host_bytes = host_bytes;
}

void LeaseClient::Report(Device& device, int64_t now_ns) {
  if (!device.registered) return;
  DeviceUse use = subject_.Read(device.number);
  const bool has_begun_since =
      !device.has_grant && device.reported_held_bytes == 0 && use.resident_bytes > 0;
  if (has_begun_since) return Lose(now_ns, 0);
  protocol::Usage usage;
  usage.device = device.number;
  usage.active = use.active;
  usage.phase = use.phase;
  usage.wanted_bytes = use.wanted_bytes;
  usage.resident_bytes = use.resident_bytes;
  usage.unmovable_bytes = use.unmovable_bytes;
  usage.host_bytes = use.host_bytes;
  usage.to_host_bytes = use.to_host_bytes;
  usage.to_device_bytes = use.to_device_bytes;
  usage.stall_ns = use.stall_ns;
  usage.iterations = use.iterations;
  usage.demand_fetches = use.demand_fetches;
  usage.refused_allocations = use.refused_allocations;
  ReportHostNeed(device, use.host_need_bytes, now_ns);
  ReportParts(device, use, now_ns);
  ReportTurns(device, use, now_ns);
  // A job that wakes, or wants more than its grant, reports at once.
  const bool is_urgent = usage.active != device.said.active ||
                         (device.has_grant && usage.wanted_bytes > device.grant.budget_bytes &&
                          usage.wanted_bytes > device.said.wanted_bytes + kPieceBytes);
  if (usage == device.said || (!is_urgent && now_ns - device.reported_ns < interval_ns_)) return;
  if (!Send(usage, now_ns)) return;
  device.said = usage;
  device.reported_ns = now_ns;
}

// For observers of the node, and what the agent decides by without haste.
void LeaseClient::ReportParts(Device& device, DeviceUse& use, int64_t now_ns) {
  if (channel_ == nullptr || channel_->version() < kPartsVersion) return;
  if (now_ns - device.reported_parts_ns < interval_ns_) return;
  use.account.device = use.steps.device = use.workspaces.device = use.plans.device =
      use.spill.device = use.lost.device = device.number;
  const auto report = [&](uint16_t version, const auto& message, auto& reported) {
    const bool has_news =
        channel_ != nullptr && channel_->version() >= version && message != reported;
    if (has_news && Send(message, now_ns)) reported = message;
  };
  report(kPartsVersion, use.account, device.reported_account);
  report(kPartsVersion, use.steps, device.reported_steps);
  report(kSpillVersion, use.spill, device.reported_spill);
  report(kFootprintVersion, protocol::Footprint{device.number, use.allocated_bytes},
         device.reported_footprint);
  report(kWorkspaceVersion, use.workspaces, device.reported_workspaces);
  report(kPlanUseVersion, use.plans, device.reported_plans);
  report(kLostTimeVersion, use.lost, device.reported_lost);
  device.reported_parts_ns = now_ns;
}

// In turns also without news: a process that says nothing is stopped.
void LeaseClient::ReportTurns(Device& device, DeviceUse& use, int64_t now_ns) {
  if (channel_ == nullptr || channel_->version() < kTurnsVersion) return;
  use.turns.device = device.number;
  const bool is_in_turns =
      device.turn.value_or(protocol::TurnState::kShares) != protocol::TurnState::kShares;
  const bool is_due = is_in_turns && now_ns - device.reported_turns_ns >= interval_ns_;
  if (!is_due && use.turns.parks == device.reported_turns.parks) return;
  if (!Send(use.turns, now_ns)) return;
  device.reported_turns = use.turns;
  device.reported_turns_ns = now_ns;
}

// A job short of host memory reports at once: a call may wait for it.
void LeaseClient::ReportHostNeed(Device& device, int64_t host_need_bytes, int64_t now_ns) {
  if (channel_ == nullptr || channel_->version() < kHostNeedVersion ||
      host_need_bytes == device.reported_need_bytes)
    return;
  const bool is_urgent = device.reported_need_ns == 0 ||
                         host_need_bytes - device.grant.budget_bytes > device.grant.host_bytes;
  if (!is_urgent && now_ns - device.reported_need_ns < interval_ns_) return;
  if (!Send(protocol::HostNeed{device.number, host_need_bytes}, now_ns)) return;
  device.reported_need_bytes = host_need_bytes;
  device.reported_need_ns = now_ns;
}

void LeaseClient::End(int exit_code) {
  if (state_ == State::kServed && HasShares()) channel_->Send(protocol::Leaving{exit_code});
  Disconnect(channel_);
  EndCheck();
  state_ = State::kAway;
  try_again_ns_ = INT64_MAX;
}

}  // namespace spillway::interposer
