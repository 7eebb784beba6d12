#include "agent/node/node.h"

#include <algorithm>

#include "agent/arbiter/amounts.h"

namespace spillway::agent {

using protocol::ErrorCode;

namespace {

constexpr int kMostAtOnce = 16;  // messages of a session, before others get their turn
constexpr int64_t kRetryNs = 200'000'000;
constexpr int64_t kMostCountedNs = 250'000'000;
// Demands are rounded up to these steps, so that small changes have no effect.
constexpr int64_t kDemandStep = int64_t{16} << 20;

constexpr int64_t kMostDemanded = int64_t{1} << 48;

int64_t InSteps(int64_t bytes) {
  return (std::min(bytes, kMostDemanded) + kDemandStep - 1) / kDemandStep * kDemandStep;
}

}  // namespace

Demand Node::DemandOf(const Registration& registration) {
  const protocol::Usage& usage = registration.usage;
  const std::optional<int64_t>& host_need_bytes = registration.host_need_bytes;
  return {InSteps(usage.wanted_bytes),
          InSteps(usage.unmovable_bytes),
          InSteps(usage.host_bytes),
          usage.active,
          host_need_bytes ? InSteps(*host_need_bytes) : -1,
          registration.has_claim};
}

namespace {

// In the format of nvidia-smi -L.
std::string TextOf(const protocol::DeviceUuid& uuid) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "GPU";
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += {digits[uuid[i] >> 4], digits[uuid[i] & 15]};
  }
  return text;
}

bool IsRevocation(RulingReason reason) {
  return reason == RulingReason::kRevoked || reason == RulingReason::kPreempted;
}

}  // namespace

Node::Node(Config config, std::vector<NodeDevice> devices, int64_t host_bytes, uint64_t instance,
           NodeServices* services, int64_t now_ns, Shares* shares, Planning* planning,
           HeldRecord* record)
    : config_(std::move(config)),
      devices_(std::move(devices)),
      host_bytes_(host_bytes),
      instance_(instance),
      services_(services),
      shares_(shares),
      planning_(planning),
      record_(record),
      started_ns_(now_ns),
      arbiter_(ArbiterRulesOf(config_)),
      settled_ns_(now_ns) {
  SetDevices();
  arbiter_.SetHost(host_bytes_);
  SetOwners();
  resume_left_ns_ = config_.resume_ms * 1'000'000;
  resuming_ = resume_left_ns_ > 0;
  arbiter_.SetFrozen(resuming_);
}

Node::Session* Node::Find(SessionId id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

std::optional<SessionId> Node::Connected(std::unique_ptr<protocol::Channel> channel,
                                         std::unique_ptr<Peer> peer, int64_t now_ns) {
  ++counters_.connections;
  if (const std::optional<protocol::Error> error = WhyNotConnected(*peer, now_ns)) {
    ++counters_.refused_connections;
    channel->Send(*error);
    return std::nullopt;
  }
  ++users_[peer->uid()].sessions;
  const SessionId id{++last_session_};
  Session& session = sessions_[id];
  session.id = id;
  session.channel = std::move(channel);
  session.peer = std::move(peer);
  session.since_ns = now_ns;
  return id;
}

void Node::Readable(SessionId id, int64_t now_ns) {
  for (int i = 0; i < kMostAtOnce; ++i) {
    Session* session = Find(id);
    if (session == nullptr || session->channel == nullptr) return;
    protocol::Received received = session->channel->Receive();
    if (received.what == protocol::Received::What::kNothing) return;
    Take(*session, received, now_ns);
  }
}

void Node::Take(Session& session, protocol::Received& received, int64_t now_ns) {
  using What = protocol::Received::What;
  if (received.what == What::kClosed) return CloseChannel(session);
  if (received.what == What::kFault) {
    ++counters_.faulty_frames;
    return Refuse(
        session,
        received.fault == protocol::Fault::kVersion ? ErrorCode::kVersion : ErrorCode::kMalformed,
        std::string("a frame with a fault: ") + protocol::NameOf(received.fault));
  }
  if (!session.messages.Take(now_ns, config_.limits.messages_per_second))
    return Refuse(session, ErrorCode::kTooFast, "too many messages per second");
  if (session.state == State::kNew) {
    const auto* hello = std::get_if<protocol::Hello>(&received.message);
    if (hello == nullptr) return Refuse(session, ErrorCode::kOutOfOrder, "Hello comes first");
    return On(session, *hello, now_ns);
  }
  if (session.state == State::kOperator) return TakeAsOperator(session, received.message, now_ns);
  if (TakePlanMessage(session, received)) return;
  TakeAsJob(session, received.message, now_ns);
}

void Node::On(Session& session, const protocol::Hello& hello, int64_t now_ns) {
  if (hello.newest_version < protocol::kOldestVersion ||
      hello.oldest_version > protocol::kNewestVersion)
    return Refuse(session, ErrorCode::kVersion, "no common version");
  protocol::Welcome welcome;
  welcome.version = std::min(hello.newest_version, protocol::kNewestVersion);
  welcome.agent_instance = instance_;
  welcome.session = static_cast<uint64_t>(session.id);
  welcome.usage_interval_ms = static_cast<uint32_t>(config_.usage_interval_ms);
  session.version = welcome.version;
  session.channel->SetVersion(welcome.version);
  session.state = State::kOperator;
  if (hello.role == protocol::Role::kJob) {
    const std::optional<JobIdentity> identity =
        services_->IdentityOf(*session.peer, hello.leader_pid);
    if (!identity)
      return Refuse(session, ErrorCode::kOutOfOrder, "the process cannot be identified");
    Job& job = JobFor(*identity, session.peer->uid(), now_ns);
    job.sessions.insert(session.id);
    session.state = State::kJob;
    session.job = job.id;
    session.part = identity->part;
    welcome.job = job.name;
    BeginShares(session);
  }
  session.channel->Send(welcome);
}

Node::Job& Node::JobFor(const JobIdentity& identity, uid_t uid, int64_t now_ns) {
  const auto [place, is_new] = jobs_by_key_.try_emplace(identity.key, JobId{last_job_ + 1});
  if (!is_new) return jobs_.at(place->second);
  Job& job = jobs_[JobId{++last_job_}];
  job.id = JobId{last_job_};
  job.name = identity.name;
  job.key = identity.key;
  job.command =
      protocol::Text<64>(identity.command).view();  // cuts and cleans a name that the tenant chose
  job.source = identity.source;
  job.source_id = identity.id;
  job.uid = uid;
  job.since_ns = now_ns;
  AddToOwner(job);
  if (const auto saved = restored_.terms.extract(job.key)) job.set_by_operator = saved.mapped();
  job.is_logged = MayLog(uid);
  ++counters_.jobs_started;
  services_->JobStarted(ReportOf(job, now_ns));
  return job;
}

void Node::TakeAsJob(Session& session, const protocol::Message& message, int64_t now_ns) {
  if (const auto* asked = std::get_if<protocol::Register>(&message))
    return On(session, *asked, now_ns);
  if (const auto* usage = std::get_if<protocol::Usage>(&message)) return On(session, *usage);
  if (const auto* obeyed = std::get_if<protocol::Obeyed>(&message)) return On(session, *obeyed);
  if (const auto* need = std::get_if<protocol::HostNeed>(&message)) return On(session, *need);
  if (const auto* parts = std::get_if<protocol::Account>(&message)) return On(session, *parts);
  if (const auto* steps = std::get_if<protocol::StepTimes>(&message)) return On(session, *steps);
  if (const auto* footprint = std::get_if<protocol::Footprint>(&message))
    return On(session, *footprint);
  if (const auto* ask = std::get_if<protocol::AskSlabs>(&message)) return On(session, *ask);
  if (const auto* returned = std::get_if<protocol::ReturnSlabs>(&message))
    return On(session, *returned);
  if (const auto* held = std::get_if<protocol::HeldSlabs>(&message)) return On(session, *held);
  if (const auto* leaving = std::get_if<protocol::Leaving>(&message)) return On(session, *leaving);
  if (const auto* goodbye = std::get_if<protocol::Goodbye>(&message)) {
    On(session, protocol::Leaving{goodbye->exit_code});
    const SessionId id = session.id;
    gone_.push_back({id, false});
    return Forget(id, now_ns);
  }
  Refuse(session, ErrorCode::kOutOfOrder,
         std::string(protocol::NameOf(message)) + " is not a job's to send");
}

// Its memory counts until the process ends: the driver frees it after the last exit handler.
void Node::On(Session& session, const protocol::Leaving& leaving) {
  session.is_leaving = true;
  jobs_.at(session.job).exit_code = leaving.exit_code;
}

void Node::On(Session& session, const protocol::Register& asked, int64_t now_ns) {
  if (session.registrations.count(asked.device) != 0)
    return Refuse(session, ErrorCode::kOutOfOrder, "this device is registered already");
  if (static_cast<int64_t>(session.registrations.size()) >= config_.limits.devices_per_session)
    return Refuse(session, ErrorCode::kTooManyDevices, "too many devices");
  const auto known = std::find_if(devices_.begin(), devices_.end(), [&](const NodeDevice& device) {
    return device.uuid == asked.uuid;
  });
  if (known == devices_.end()) NoteUnknownDevice(session, asked.uuid);
  if (known == devices_.end())
    return Refuse(session, ErrorCode::kUnknownDevice, "the agent does not know this device");
  const DeviceId device{static_cast<uint32_t>(known - devices_.begin())};
  if (arbiter_.Has(ProcessOf(session, device)))
    return Refuse(session, ErrorCode::kOutOfOrder, "this device is registered already");
  Job& job = jobs_.at(session.job);
  if (IsFirstOn(job, device)) job.asked_ns[device] = now_ns;
  Registration& registration = session.registrations[asked.device];
  registration.device = device;
  registration.asked = asked;
  registration.usage.device = asked.device;
  registration.usage.wanted_bytes = asked.wanted_bytes;
  const Terms terms = TermsOf(job, device);
  const Demand demand = DemandOf(registration);
  if (!TakeOver(session, device, asked, demand)) {
    const Held held = HeldBefore(session, device, asked);
    if (held.memory_bytes > 0) {
      arbiter_.Rejoin(ProcessOf(session, device), terms, demand, held, now_ns);
    } else {
      arbiter_.Join(ProcessOf(session, device), terms, demand, now_ns,
                    {asked.held_bytes, asked.held_host_bytes});
    }
  }
  RefreshTerms(job);
  Record(session, registration);
}

// Such a job has the whole device, unless it requires the agent. Logged once per device.
void Node::NoteUnknownDevice(const Session& session, const protocol::DeviceUuid& uuid) {
  constexpr std::ptrdiff_t kMostOfUser = 2;
  constexpr size_t kMost = 16;
  const std::string name = TextOf(uuid);
  const uid_t uid = session.peer->uid();
  const auto is_listed = [&](const UnknownDevice& one) { return one.name == name; };
  const auto is_users = [&](const UnknownDevice& one) { return one.uid == uid; };
  if (std::any_of(unknown_devices_.begin(), unknown_devices_.end(), is_listed)) return;
  if (std::count_if(unknown_devices_.begin(), unknown_devices_.end(), is_users) >= kMostOfUser)
    unknown_devices_.erase(
        std::find_if(unknown_devices_.begin(), unknown_devices_.end(), is_users));
  if (unknown_devices_.size() >= kMost) unknown_devices_.erase(unknown_devices_.begin());
  unknown_devices_.push_back({name, uid});
  if (!MayLog(uid)) return;
  services_->Warn("device " + name + ", which " + jobs_.at(session.job).name +
                  " uses, is not one of this agent's: the job is not managed; is its uuid in the "
                  "configuration?");
}

// Takes over the process's earlier budgets. False: none, or 0 although the process holds memory.
bool Node::TakeOver(Session& session, DeviceId device, const protocol::Register& asked,
                    const Demand& demand) {
  const std::set<SessionId> sessions = jobs_.at(session.job).sessions;
  for (SessionId other_id : sessions) {
    Session& other = sessions_.at(other_id);
    if (other.state != State::kDetached || other.peer->pid() != session.peer->pid()) continue;
    const TenantProcess process = ProcessOf(other, device);
    if (!arbiter_.Has(process)) continue;
    const bool is_news =
        arbiter_.BudgetedTo(process) == 0 && HeldBefore(session, device, asked).memory_bytes > 0;
    if (is_news)
      arbiter_.Leave(process);
    else
      arbiter_.Succeed(process, session.id, demand, {asked.held_bytes, asked.held_host_bytes});
    EndRegistrations(other, device);
    return !is_news;
  }
  return false;
}

void Node::EndRegistrations(Session& session, DeviceId device) {
  std::erase_if(session.registrations, [&](const auto& entry) {
    if (entry.second.device != device) return false;
    LeaveLink(entry.second);
    return true;
  });
  if (!session.registrations.empty()) return;
  gone_.push_back({session.id, false});
  Forget(session.id, settled_ns_);
}

// While an earlier instance's processes return, they are believed as far as recorded, even above
// their limits: limits change, held memory stays. No report takes memory from others.
Held Node::HeldBefore(const Session& session, DeviceId device,
                      const protocol::Register& asked) const {
  if (!resuming_) return {};
  Held most = {arbiter_.MemoryOf(device), host_bytes_};
  if (record_ != nullptr) most = record_->Before(HolderOn(session, device));
  return {std::min({asked.held_bytes, arbiter_.MemoryOf(device), most.memory_bytes}),
          std::min({asked.held_host_bytes, host_bytes_, most.host_bytes})};
}

void Node::On(Session& session, const protocol::Usage& usage) {
  const auto found = session.registrations.find(usage.device);
  if (found == session.registrations.end())
    return Refuse(session, ErrorCode::kOutOfOrder, "this device is not registered");
  Registration& registration = found->second;
  const protocol::Usage before = std::exchange(registration.usage, usage);
  const TenantProcess process = ProcessOf(session, registration.device);
  arbiter_.Holds(process, {usage.resident_bytes, usage.host_bytes});
  NoteHeld(session, usage.device, registration);
  NoteUse(session, usage.device, registration, before);
  arbiter_.Use(process, DemandOf(registration));
}

void Node::On(Session& session, const protocol::HostNeed& need) {
  const auto found = session.registrations.find(need.device);
  if (found == session.registrations.end())
    return Refuse(session, ErrorCode::kOutOfOrder, "this device is not registered");
  Registration& registration = found->second;
  registration.host_need_bytes = need.size_bytes;
  arbiter_.Use(ProcessOf(session, registration.device), DemandOf(registration));
}

void Node::On(Session& session, const protocol::Account& parts) {
  const auto found = session.registrations.find(parts.device);
  if (found == session.registrations.end())
    return Refuse(session, ErrorCode::kOutOfOrder, "this device is not registered");
  found->second.parts = parts;
}

void Node::On(Session& session, const protocol::StepTimes& steps) {
  const auto found = session.registrations.find(steps.device);
  if (found == session.registrations.end())
    return Refuse(session, ErrorCode::kOutOfOrder, "this device is not registered");
  found->second.steps = steps;
}

void Node::On(Session& session, const protocol::Footprint& footprint) {
  const auto found = session.registrations.find(footprint.device);
  if (found == session.registrations.end())
    return Refuse(session, ErrorCode::kOutOfOrder, "this device is not registered");
  found->second.allocated_bytes = footprint.allocated_bytes;
}

void Node::On(Session& session, const protocol::Obeyed& obeyed) {
  const auto found = session.registrations.find(obeyed.device);
  if (found == session.registrations.end())
    return Refuse(session, ErrorCode::kOutOfOrder, "this device is not registered");
  Registration& registration = found->second;
  std::erase_if(registration.unread, [&](uint64_t serial) { return serial <= obeyed.serial; });
  const TenantProcess process = ProcessOf(session, registration.device);
  if (arbiter_.Obeyed(process, obeyed.serial, obeyed.held_bytes, obeyed.host_bytes))
    Record(session, registration);
  SendWaiting(session);
}

void Node::Refuse(Session& session, ErrorCode code, std::string_view reason) {
  services_->Note("session " + std::to_string(static_cast<uint64_t>(session.id)) + " of process " +
                  std::to_string(session.peer->pid()) + " is closed: " + std::string(reason));
  session.channel->Send(
      protocol::Error{code, protocol::kOldestVersion, protocol::kNewestVersion, reason});
  CloseChannel(session);
}

void Node::CloseChannel(Session& session) {
  const SessionId id = session.id;
  session.channel.reset();
  if (planning_ != nullptr) planning_->Forget(id);
  if (HasShares(session) && session.state == State::kJob) shares_->StopAsking(HolderOf(session));
  const bool keeps =
      session.peer->IsAlive() && (!session.registrations.empty() || IsLastWithSlabs(session));
  gone_.push_back({id, keeps});
  if (keeps) {
    session.state = State::kDetached;
  } else {
    Forget(id, settled_ns_);
  }
}

void Node::PeerEnded(SessionId id, int64_t now_ns) {
  if (Find(id) == nullptr) return;
  gone_.push_back({id, false});
  Forget(id, now_ns);
}

void Node::Forget(SessionId id, int64_t now_ns) {
  Session& session = sessions_.at(id);
  if (planning_ != nullptr) planning_->Forget(id);
  const JobId job_id = session.job;
  if (const auto job = jobs_.find(job_id); job != jobs_.end()) {
    for (const auto& [number, registration] : session.registrations) {
      const bool holds = arbiter_.BudgetedTo(ProcessOf(session, registration.device)) > 0;
      if (holds && !session.is_leaving) ++counters_.reclaimed;
      LeaveLink(registration);
      arbiter_.Leave(ProcessOf(session, registration.device));
      Record(session, registration);
      AddUsage(registration, job->second.finished[registration.device]);
    }
    job->second.sessions.erase(id);
    // Limits that only this session asked for end.
    for (const auto& [number, registration] : session.registrations)
      RefreshTerms(job->second, registration.device);
    EndShares(session);
  }
  User& user = users_[session.peer->uid()];
  if (--user.sessions == 0 && now_ns - user.connections.last_ns() > 2'000'000'000)
    users_.erase(session.peer->uid());
  waiting_.erase(id);
  sessions_.erase(id);
  EndJobIfEmpty(job_id, now_ns);
}

void Node::EndJobIfEmpty(JobId id, int64_t now_ns) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || !found->second.sessions.empty()) return;
  ++counters_.jobs_ended;
  services_->JobEnded(ReportOf(found->second, now_ns));
  if (found->second.set_by_operator != TermsChange{}) ++saved_version_;
  if (shares_ != nullptr) shares_->JobGone(PoolJobOf(found->second));
  TakeFromOwner(found->second);
  jobs_by_key_.erase(found->second.key);
  jobs_.erase(found);
}

void Node::SetDevices() {
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    const int64_t memory_bytes = devices_[i].memory_bytes;
    const int64_t reserve_bytes = BytesOf(config_.device_reserve_bytes, memory_bytes);
    arbiter_.SetDevice(DeviceId{i}, std::max<int64_t>(0, memory_bytes - reserve_bytes));
  }
}

void Node::SetConfig(const Config& config) {
  config_ = config;
  arbiter_.SetRules(ArbiterRulesOf(config_));
  SetDevices();
  SetOwners();
  // Twice: a guarantee that one job loses may go to a job before it.
  for (int pass = 0; pass < 2; ++pass) {
    for (auto& [id, job] : jobs_) RefreshTerms(job);
  }
  if (shares_ == nullptr) return;
  for (const auto& [id, job] : jobs_) SetQuotaOf(id);
}

void Node::NoteReload(bool succeeded) {
  ++(succeeded ? counters_.reloads : counters_.failed_reloads);
  last_reload_succeeded_ = succeeded;
}

void Node::Settle(int64_t now_ns) {
  // Time in which the agent served nobody (it was stopped, the clock jumped) does not count.
  if (resuming_) resume_left_ns_ -= std::clamp<int64_t>(now_ns - settled_ns_, 0, kMostCountedNs);
  settled_ns_ = now_ns;
  if (resuming_ && resume_left_ns_ <= 0) {
    resuming_ = false;
    saved_version_ += restored_.terms.empty() ? 0 : 1;
    restored_ = {};
    arbiter_.SetFrozen(false);
    if (shares_ != nullptr) shares_->ForgetUnclaimed();
    if (record_ != nullptr) record_->ForgetBefore();
  }
  EndUnusedClaims(now_ns);
  const Decisions decisions = arbiter_.Decide(now_ns);
  for (const AdmissionDecision& decision : decisions.admissions) Tell(decision);
  for (const GrantDecision& decision : decisions.grants) {
    RecordBudgeted(decision.process);
    Tell(decision);
  }
  for (const TenantProcess& process : decisions.overdue) {
    ++counters_.overdue;
    const auto job = jobs_.find(process.job);
    services_->Warn((job == jobs_.end() ? "?" : job->second.name) +
                    " has not given back memory of device " +
                    std::to_string(static_cast<uint32_t>(process.device)) + " in time");
  }
  for (SessionId id : std::set<SessionId>(waiting_)) SendWaiting(sessions_.at(id));
  EndSilent(now_ns);
  SettleShares(now_ns);
  SendPlans();
}

int64_t Node::NextWake() const {
  int64_t next = arbiter_.NextWake();
  if (slabs_retry_) next = std::min(next, settled_ns_ + kRetryNs);
  if (resuming_) next = std::min(next, settled_ns_ + std::min(resume_left_ns_, kMostCountedNs));
  if (!unused_.empty()) next = std::min(next, std::get<0>(*unused_.begin()));
  for (SessionId id : waiting_) {
    const Session& session = sessions_.at(id);
    if (!session.unsent_admissions.empty()) next = std::min(next, settled_ns_ + kRetryNs);
    for (const auto& [number, registration] : session.registrations) {
      const bool waits_for_room = registration.unsent && registration.unread.size() < kMostUnread;
      if (waits_for_room && session.channel != nullptr)
        next = std::min(next, settled_ns_ + kRetryNs);
    }
  }
  return next;
}

void Node::Tell(const AdmissionDecision& decision) {
  int64_t& counter = decision.state == TenancyState::kAdmitted ? counters_.admitted
                     : decision.state == TenancyState::kQueued ? counters_.queued
                                                               : counters_.rejected;
  ++counter;
  const auto job = jobs_.find(decision.job);
  if (job == jobs_.end()) return;
  if (decision.state == TenancyState::kAdmitted) {
    if (const auto asked = job->second.asked_ns.extract(decision.device))
      counters_.admission_waits.Add(std::max<int64_t>(settled_ns_ - asked.mapped(), 0));
  }
  for (SessionId id : job->second.sessions) {
    Session& session = sessions_.at(id);
    for (auto& [number, registration] : session.registrations) {
      if (registration.device != decision.device) continue;
      const auto state = static_cast<protocol::AdmissionState>(
          decision.state == TenancyState::kAdmitted ? protocol::AdmissionState::kAdmitted
          : decision.state == TenancyState::kQueued ? protocol::AdmissionState::kQueued
                                                    : protocol::AdmissionState::kRejected);
      if (session.unsent_admissions.size() < kMostUnread)
        session.unsent_admissions.push_back({number, state, decision.position, decision.reason});
      else
        session.unsent_admissions.back() = {number, state, decision.position, decision.reason};
    }
    SendWaiting(session);
  }
}

void Node::Tell(const GrantDecision& decision) {
  ++counters_.grants;
  if (IsRevocation(decision.reason)) ++counters_.revocations;
  Session* session = Find(decision.process.session);
  if (session == nullptr) return;
  for (auto& [number, registration] : session->registrations) {
    if (registration.device != decision.process.device) continue;
    registration.unsent = decision;
  }
  SendWaiting(*session);
}

void Node::SendGrant(Session& session, uint32_t number, Registration& registration) {
  if (!registration.unsent || session.channel == nullptr ||
      registration.unread.size() >= kMostUnread)
    return;
  const GrantDecision& decision = *registration.unsent;
  protocol::Grant grant;
  grant.device = number;
  grant.serial = decision.serial;
  grant.budget_bytes = decision.memory_bytes;
  grant.host_bytes = decision.host_bytes;
  grant.link_permille = decision.link_permille;
  grant.deadline_ms = static_cast<uint32_t>(
      std::clamp<int64_t>((decision.deadline_ns - settled_ns_) / 1'000'000, 0, 3'600'000));
  grant.reason = static_cast<protocol::GrantReason>(static_cast<int>(decision.reason) + 1);
  if (session.channel->Send(grant) != protocol::Sent::kSent) return;
  registration.unread.push_back(decision.serial);
  AwaitUse(session, number, registration);
  ApplyShares(session, number, registration, decision);
  registration.unsent.reset();
}

// Sends all pending messages; sessions with more to send stay in waiting_.
void Node::SendWaiting(Session& session) {
  waiting_.insert(session.id);
  if (session.channel == nullptr) return;
  while (!session.unsent_admissions.empty()) {
    if (session.channel->Send(session.unsent_admissions.front()) != protocol::Sent::kSent) return;
    session.unsent_admissions.erase(session.unsent_admissions.begin());
  }
  bool waits = false;
  for (auto& [number, registration] : session.registrations) {
    SendGrant(session, number, registration);
    waits = waits || registration.unsent;
  }
  if (!waits) waiting_.erase(session.id);
}

void Node::Stop() {
  for (auto& [id, session] : sessions_) {
    if (session.channel == nullptr) continue;
    session.channel->Send(protocol::Error{.code = ErrorCode::kAgentStops,
                                          .reason = "the agent stops; keep what you have"});
  }
}

}  // namespace spillway::agent
