#include "agent/node/node.h"

#include <algorithm>

namespace spillway::agent {

using protocol::ErrorCode;

namespace {

constexpr int kMostAtOnce = 16;  // of a session, before others get their turn
constexpr int64_t kRetryNs = 200'000'000;

}  // namespace

Node::Node(Config config, std::vector<NodeDevice> devices, int64_t host_bytes, uint64_t instance,
           NodeServices* services, int64_t now_ns, Shares* shares, Planning* planning,
           HeldRecord* record, HardLimits* hard_limits)
    : services_(services),
      facts_{.devices = std::move(devices),
             .host_bytes = host_bytes,
             .instance = instance,
             .started_ns = now_ns,
             .config = std::move(config)},
      settled_ns_(now_ns),
      arbiter_(ArbiterRulesOf(facts_.config)),
      resume_(facts_.config.resume_ms * 1'000'000, now_ns),
      users_(services),
      owners_(&facts_, &arbiter_),
      expected_(&table_),
      terms_(&facts_, &table_, &expected_, &arbiter_, &allocations_),
      claims_(&facts_),
      record_(&facts_, &table_, &arbiter_, &resume_, record),
      slabs_(&facts_, &table_, &arbiter_, shares),
      links_(shares),
      plans_(&table_, planning),
      backstop_({.facts = &facts_,
                 .table = &table_,
                 .arbiter = &arbiter_,
                 .resume = &resume_,
                 .services = services,
                 .limits = hard_limits}),
      delivery_(&table_, &claims_, &slabs_, &links_, &backstop_, &counters_),
      turns_({.facts = &facts_,
              .table = &table_,
              .arbiter = &arbiter_,
              .services = services,
              .shares = shares}),
      spill_({.facts = &facts_,
              .table = &table_,
              .arbiter = &arbiter_,
              .turns = &turns_,
              .shares = shares,
              .services = services}),
      jobs_({.facts = &facts_,
             .table = &table_,
             .users = &users_,
             .owners = &owners_,
             .terms = &terms_,
             .expected = &expected_,
             .slabs = &slabs_,
             .services = services,
             .counters = &counters_}),
      closer_({.table = &table_,
               .users = &users_,
               .arbiter = &arbiter_,
               .terms = &terms_,
               .record = &record_,
               .slabs = &slabs_,
               .links = &links_,
               .plans = &plans_,
               .delivery = &delivery_,
               .jobs = &jobs_,
               .services = services,
               .counters = &counters_}),
      opener_({.facts = &facts_,
               .table = &table_,
               .users = &users_,
               .slabs = &slabs_,
               .jobs = &jobs_,
               .allocations = &allocations_,
               .closer = &closer_,
               .services = services,
               .counters = &counters_}),
      absent_({.facts = &facts_,
               .table = &table_,
               .users = &users_,
               .arbiter = &arbiter_,
               .terms = &terms_,
               .record = &record_,
               .slabs = &slabs_,
               .jobs = &jobs_,
               .services = services}),
      reporter_({.facts = &facts_,
                 .table = &table_,
                 .arbiter = &arbiter_,
                 .turns = &turns_,
                 .spill = &spill_,
                 .owners = &owners_,
                 .allocations = &allocations_,
                 .unknown = &unknown_,
                 .resume = &resume_,
                 .counters = &counters_,
                 .shares = shares,
                 .planning = planning,
                 .backstop = &backstop_}),
      registrar_({.facts = &facts_,
                  .table = &table_,
                  .users = &users_,
                  .arbiter = &arbiter_,
                  .terms = &terms_,
                  .expected = &expected_,
                  .record = &record_,
                  .unknown = &unknown_,
                  .closer = &closer_,
                  .services = services}),
      job_messages_({.table = &table_,
                     .expected = &expected_,
                     .arbiter = &arbiter_,
                     .record = &record_,
                     .claims = &claims_,
                     .slabs = &slabs_,
                     .spill = &spill_,
                     .delivery = &delivery_,
                     .closer = &closer_,
                     .registrar = &registrar_}),
      operators_({.facts = &facts_,
                  .table = &table_,
                  .users = &users_,
                  .terms = &terms_,
                  .expected = &expected_,
                  .allocations = &allocations_,
                  .reporter = &reporter_,
                  .services = services,
                  .counters = &counters_}) {
  SetDevices();
  arbiter_.SetHost(facts_.host_bytes);
  owners_.Refresh();
  arbiter_.SetFrozen(resume_.is_on());
}

std::optional<SessionId> Node::Connected(std::unique_ptr<protocol::Channel> channel,
                                         std::unique_ptr<Peer> peer, int64_t now_ns,
                                         Entrance entrance, const std::string& allocation) {
  return opener_.Connect(std::move(channel), std::move(peer), now_ns, entrance, allocation);
}

void Node::Readable(SessionId id, int64_t now_ns) {
  using What = protocol::Received::What;
  for (int i = 0; i < kMostAtOnce; ++i) {
    Session* const session = table_.Find(id);
    if (session == nullptr || session->channel == nullptr) return;
    protocol::Received received = session->channel->Receive();
    if (received.what == What::kNothing) return;
    if (received.what == What::kClosed) return closer_.CloseChannel(*session, now_ns);
    if (const std::optional<Refusal> refusal = Take(*session, received, now_ns))
      closer_.Refuse(*session, *refusal, now_ns);
  }
}

// A message may end the session; a refused one is still there.
std::optional<Refusal> Node::Take(Session& session, protocol::Received& received, int64_t now_ns) {
  session.heard_ns = now_ns;
  if (received.what == protocol::Received::What::kFault) {
    ++counters_.faulty_frames;
    return Refusal{
        received.fault == protocol::Fault::kVersion ? ErrorCode::kVersion : ErrorCode::kMalformed,
        std::string("a frame with a fault: ") + protocol::NameOf(received.fault)};
  }
  if (!session.messages.Take(now_ns, facts_.config.limits.messages_per_second))
    return Refusal{ErrorCode::kTooFast, "too many messages per second"};
  if (session.state == SessionState::kNew) return opener_.Greet(session, received.message, now_ns);
  if (session.state == SessionState::kOperator)
    return operators_.Take(session, received.message, now_ns);
  if (PlanRequests::IsOne(received.message)) return plans_.Take(session, received);
  return job_messages_.Take(session, received.message, now_ns);
}

void Node::PeerEnded(SessionId id, int64_t now_ns) {
  if (table_.Find(id) != nullptr) closer_.End(id, now_ns);
}

void Node::SetDevices() {
  for (uint32_t i = 0; i < facts_.devices.size(); ++i) {
    const int64_t memory_bytes = facts_.devices[i].memory_bytes;
    const int64_t reserve_bytes = BytesOf(facts_.config.device_reserve_bytes, memory_bytes);
    arbiter_.SetDevice(DeviceId{i}, std::max<int64_t>(0, memory_bytes - reserve_bytes));
  }
}

void Node::SetConfig(const Config& config) {
  facts_.config = config;
  arbiter_.SetRules(ArbiterRulesOf(config));
  SetDevices();
  owners_.Refresh();
  terms_.RefreshAll();
  slabs_.RefreshQuotas();
}

SavedState Node::Saved() const {
  SavedState state = terms_.Saved();
  state.expected = expected_.Saved();
  state.allocations = allocations_.Saved();
  return state;
}

void Node::Restore(const SavedState& state) {
  expected_.Restore(state.expected);
  allocations_.Restore(state.allocations);
  terms_.Restore(state, resume_.is_on());
}

void Node::NoteProcesses(std::shared_ptr<const DeviceProcesses> processes) {
  if (processes == counted_) return;
  counted_ = processes;
  facts_.processes = backstop_.WithoutOwn(std::move(processes));
  terms_.RefreshIfLimitsChanged();
}

void Node::NoteReload(bool succeeded) {
  ++(succeeded ? counters_.reloads : counters_.failed_reloads);
  facts_.last_reload_succeeded = succeeded;
}

void Node::Settle(int64_t now_ns) {
  settled_ns_ = now_ns;
  if (resume_.Pass(now_ns)) EndReturn(now_ns);
  for (const UnusedClaims::Change& change : claims_.End(table_, now_ns))
    arbiter_.Use(change.process, change.demand);
  turns_.Settle(resume_.is_on(), now_ns);
  const Decisions decisions = arbiter_.Decide(now_ns);
  backstop_.Settle(!decisions.grants.empty(), now_ns);
  Deliver(decisions, now_ns);
  delivery_.SendAll(now_ns);
  opener_.RefuseSilent(now_ns);
  links_.Settle(now_ns);
  slabs_.Settle(now_ns);
  spill_.Settle(resume_.is_on(), now_ns);
  plans_.SendReplies();
}

void Node::EndReturn(int64_t now_ns) {
  absent_.Keep(now_ns);
  terms_.EndReturn();
  arbiter_.SetFrozen(false);
  slabs_.ForgetUnclaimed();
  record_.EndReturn();
}

void Node::Deliver(const Decisions& decisions, int64_t now_ns) {
  for (const AdmissionDecision& decision : decisions.admissions)
    delivery_.Deliver(decision, now_ns);
  for (const GrantDecision& decision : decisions.grants) {
    record_.Note(decision.process);
    delivery_.Deliver(decision, now_ns);
  }
  for (const TenantProcess& process : decisions.overdue) {
    ++counters_.overdue;
    const Job* const job = table_.FindJob(process.job);
    services_->Warn((job == nullptr ? "?" : job->name) + " has not given back memory of device " +
                    std::to_string(static_cast<uint32_t>(process.device)) + " in time");
  }
}

int64_t Node::NextWake() const {
  const bool wants_retry = slabs_.wants_retry() || delivery_.WantsRetry();
  return std::min({arbiter_.NextWake(), resume_.NextWake(), claims_.NextWake(), turns_.NextWake(),
                   spill_.NextWake(), wants_retry ? settled_ns_ + kRetryNs : INT64_MAX});
}

}  // namespace spillway::agent
