#include "agent/node/sessions/device_turns.h"

#include <algorithm>

#include "agent/arbiter/amounts.h"

namespace spillway::agent {

namespace {

constexpr uint16_t kTurnsVersion = 9;
constexpr int64_t kShortestLookNs = 20'000'000;
constexpr int64_t kPatienceNs = 2'000'000'000;  // beside the swap
// Of a turn: a job whose memory cannot leave must not take the next one's whole turn.
constexpr int64_t kPatienceParts = 4;
// Some reports may be late.
constexpr int64_t kSilentIntervals = 4;

// What it has allocated; while that may still grow, it claims more.
int64_t NeedOf(const Registration& registration) {
  const protocol::Usage& usage = registration.usage;
  return std::min(registration.allocated_bytes.value_or(usage.resident_bytes), usage.wanted_bytes);
}

int64_t PatienceNs(const TurnView& view) {
  const int64_t work_ns = std::max<int64_t>(view.length_ns - view.swap_ns, 0);
  return view.swap_ns + std::min(kPatienceNs, work_ns / kPatienceParts);
}

void AddLoss(TimeLoss& sum, const protocol::LostTime& lost) {
  AddTo(sum.waited_ns, lost.waited_ns);
  AddTo(sum.waited_of_ns, lost.waited_of_ns);
  AddTo(sum.steps_lost_ns, lost.steps_lost_ns);
  AddTo(sum.steps_repeated_ns, lost.steps_repeated_ns);
  AddTo(sum.steps_of_ns, lost.steps_ns);
}

// Of the decision between shares and turns.
std::string Costs(const DeviceTurnView& view) {
  if (view.reason != TurnReason::kMoves && !view.is_cheap) return "";
  return " (" + std::to_string(view.lost_permille / 10) + " % of the device's time, turns " +
         std::to_string(view.turns_permille / 10) + " %)";
}

std::string Seconds(int64_t ns) { return std::to_string(ns / 1'000'000'000) + " s"; }

protocol::TurnState StateOf(TurnStanding standing) {
  return standing == TurnStanding::kRuns    ? protocol::TurnState::kRuns
         : standing == TurnStanding::kWaits ? protocol::TurnState::kWaits
                                            : protocol::TurnState::kShares;
}

}  // namespace

void DeviceTurns::Settle(bool is_resuming, int64_t now_ns) {
  const bool is_used = !is_resuming && AllowsTurns(parts_.facts->config);
  next_wake_ns_ = INT64_MAX;
  if (!is_used && !is_used_ && !must_tell_) return;
  if ((is_used || must_tell_) && is_used == is_used_ && now_ns - looked_ns_ < kShortestLookNs) {
    next_wake_ns_ = looked_ns_ + kShortestLookNs;
    return;
  }
  is_used_ = is_used;
  looked_ns_ = now_ns;
  turns_.SetRules(TurnRulesOf(parts_.facts->config));
  const std::vector<TurnJob> jobs = Jobs(now_ns);
  NoteIdle();
  turns_.Update(Devices(), jobs, now_ns);
  Apply(jobs, now_ns);
  LogModes();
  LogTurns(jobs);
  next_wake_ns_ = is_used ? turns_.NextWake() : INT64_MAX;
  if (must_tell_) next_wake_ns_ = std::min(next_wake_ns_, now_ns + kShortestLookNs);
}

std::vector<TurnDevice> DeviceTurns::Devices() const {
  std::vector<TurnDevice> devices;
  for (uint32_t i = 0; i < parts_.facts->devices.size(); ++i) {
    const auto idle = idle_permille_.find(parts_.facts->devices[i].name);
    devices.push_back(
        {.memory_bytes = parts_.arbiter->MemoryOf(DeviceId{i}),
         .link_bytes_per_second =
             parts_.shares == nullptr ? 0 : parts_.shares->LinkBytesPerSecond(DeviceId{i}),
         .idle_permille =
             idle == idle_permille_.end() ? std::nullopt : std::optional(idle->second)});
  }
  return devices;
}

// Each reading is of the driver's last second or less: half of it, and half of those before. While
// NVML does not tell, the last ones hold.
void DeviceTurns::NoteIdle() {
  const std::shared_ptr<const DeviceProcesses>& read = parts_.facts->processes;
  if (read == nullptr || read == read_) return;
  read_ = read;
  std::map<std::string, int64_t> idle;
  for (const auto& [uuid, busy_permille] : read->busy_permille) {
    const int64_t now = 1000 - std::clamp<int64_t>(busy_permille, 0, 1000);
    const auto before = idle_permille_.find(uuid);
    idle[uuid] = before == idle_permille_.end() ? now : (before->second + now) / 2;
  }
  idle_permille_ = std::move(idle);
}

// A job's own setting counts before its device's, but a device may forbid turns.
TurnsChoice DeviceTurns::ChoiceFor(const TenancyView& view) const {
  const std::string& name = parts_.facts->devices[static_cast<size_t>(view.device)].name;
  std::optional<TurnsChoice> of_device;
  for (const DeviceSetting& setting : parts_.facts->config.devices) {
    if (setting.uuid == name && setting.turns) of_device = static_cast<TurnsChoice>(*setting.turns);
  }
  if (of_device == TurnsChoice::kNever) return TurnsChoice::kNever;
  return view.terms.turns.value_or(of_device.value_or(TurnsChoice::kNever));
}

std::vector<TurnJob> DeviceTurns::Jobs(int64_t now_ns) const {
  std::map<JobId, TurnJob> jobs;
  for (const TenancyView& view : parts_.arbiter->Tenancies()) {
    // When no setting allows turns any more, all must hear of it, also those without a claim.
    if (is_used_ && (view.state != TenancyState::kAdmitted || !view.has_claim)) continue;
    TurnJob& job = jobs[view.job];
    job.id = view.job;
    job.weight = view.terms.weight;
    job.priority = view.terms.priority;
    job.is_overdue = job.is_overdue || view.overdue;
    TurnPart part;
    part.device = view.device;
    part.choice = is_used_ ? ChoiceFor(view) : TurnsChoice::kNever;
    part.may_take = view.terms.memory.guaranteed <= view.terms.memory.floor;
    part.stays_bytes = view.terms.memory.floor;
    part.budgeted_bytes = view.budgeted_bytes;
    job.parts.push_back(part);
  }
  std::vector<TurnJob> list;
  for (auto& [id, job] : jobs) {
    const Job* const known = parts_.table->FindJob(id);
    if (known == nullptr) continue;
    job.active = false;
    job.heard_ns = now_ns;
    for (const SessionId session : known->sessions)
      AddSession(parts_.table->At(session), now_ns, job);
    for (TurnPart& part : job.parts) part.stays_bytes = std::min(part.stays_bytes, part.need_bytes);
    list.push_back(job);
  }
  return list;
}

void DeviceTurns::AddSession(const Session& session, int64_t now_ns, TurnJob& job) const {
  job.silent_ns = std::max(job.silent_ns, kSilentIntervals * session.usage_interval_ms * 1'000'000);
  for (const auto& [number, registration] : session.registrations) {
    for (TurnPart& part : job.parts) {
      if (part.device != registration.device) continue;
      part.may_take = part.may_take && session.version >= kTurnsVersion;
      AddTo(part.need_bytes, NeedOf(registration));
      part.is_need_known = part.is_need_known && registration.allocated_bytes.has_value();
      part.stays_bytes = std::max(part.stays_bytes, registration.usage.unmovable_bytes);
      AddLoss(part.loss, registration.lost);
      part.is_learning = part.is_learning || registration.usage.phase == protocol::Phase::kLearning;
      part.parks = part.parks || registration.turns.parks;
    }
    const bool is_in_turns =
        registration.sent_turn && registration.sent_turn != protocol::TurnState::kShares;
    job.active = job.active || (registration.usage.active && registration.has_claim);
    AddTo(job.operations, registration.turns.operations);
    const int64_t heard_ns =
        is_in_turns ? std::max(session.heard_ns, registration.turn_sent_ns) : now_ns;
    job.heard_ns = std::min(job.heard_ns, session.channel == nullptr ? 0 : heard_ns);
  }
}

void DeviceTurns::Apply(const std::vector<TurnJob>& jobs, int64_t now_ns) {
  std::map<DeviceId, int64_t> swap_ns;
  must_tell_ = false;
  for (const TurnJob& job : jobs) {
    for (const TurnPart& part : job.parts) {
      const TurnView view = turns_.ViewOf(job.id, part.device);
      parts_.arbiter->SetWaitsForTurn(job.id, part.device, view.standing == TurnStanding::kWaits);
      swap_ns[part.device] = std::max(swap_ns[part.device], view.swap_ns);
    }
    for (const SessionId id : parts_.table->FindJob(job.id)->sessions) {
      Session& session = parts_.table->At(id);
      for (auto& [number, registration] : session.registrations)
        must_tell_ = !Tell(session, number, registration, job, now_ns) || must_tell_;
    }
  }
  const int64_t rule_ns = parts_.facts->config.return_within_ms * 1'000'000;
  for (const auto& [device, ns] : swap_ns)
    parts_.arbiter->SetReturnWithin(device, turns_.IsOn(device) ? rule_ns + 2 * ns : 0);
}

// A sixteenth of the memory may be on its way in pieces too small to announce.
bool DeviceTurns::Tell(Session& session, uint32_t number, Registration& registration,
                       const TurnJob& job, int64_t now_ns) {
  if (session.version < kTurnsVersion || session.channel == nullptr) return true;
  const auto part = std::find_if(job.parts.begin(), job.parts.end(), [&](const TurnPart& one) {
    return one.device == registration.device;
  });
  if (part == job.parts.end()) return true;
  const TurnView view = turns_.ViewOf(job.id, part->device);
  const protocol::TurnState state = StateOf(view.standing);
  if (registration.sent_turn.value_or(protocol::TurnState::kShares) == state) return true;
  const int64_t whole_bytes = std::max<int64_t>(part->need_bytes, 1);
  const int64_t start_bytes = base::scale(view.start_bytes, NeedOf(registration), whole_bytes);
  protocol::Turn turn;
  turn.device = number;
  turn.state = state;
  turn.start_bytes = std::max<int64_t>(start_bytes - start_bytes / 16, 0);
  turn.patience_ms =
      static_cast<uint32_t>(std::clamp<int64_t>(PatienceNs(view) / 1'000'000, 0, 3'600'000));
  turn.reason = TextOf(view.reason);
  if (session.channel->Send(turn) != protocol::Sent::kSent) return false;
  if (!registration.sent_turn || registration.sent_turn == protocol::TurnState::kShares)
    registration.turn_sent_ns = now_ns;
  registration.sent_turn = state;
  return true;
}

std::string DeviceTurns::NameOf(JobId job) const {
  const Job* const known = parts_.table->FindJob(job);
  return known == nullptr ? "?" : known->name;
}

void DeviceTurns::LogModes() {
  for (uint32_t i = 0; i < parts_.facts->devices.size(); ++i) {
    const DeviceTurnView view = turns_.ViewOf(DeviceId{i});
    const Mode mode = view.is_on      ? Mode::kTurns
                      : view.is_cheap ? Mode::kSharesByChoice
                                      : Mode::kShares;
    // Jobs that fit for a moment, or lose more, go on sharing: it is said once until they take
    // turns.
    Mode& logged = logged_modes_[DeviceId{i}];
    if (logged == Mode::kSharesByChoice && mode == Mode::kShares) continue;
    if (std::exchange(logged, mode) == mode) continue;
    constexpr const char* texts[] = {
        "share its memory again: ", "go on sharing its memory: ", "take turns from now on: "};
    parts_.services->Inform("device " + std::to_string(i) + ": jobs " +
                            texts[static_cast<size_t>(mode)] + TextOf(view.reason) + Costs(view));
  }
}

void DeviceTurns::LogTurns(const std::vector<TurnJob>& jobs) {
  std::map<std::pair<JobId, DeviceId>, TurnStanding> now;
  for (const TurnJob& job : jobs) {
    for (const TurnPart& part : job.parts) {
      const TurnView view = turns_.ViewOf(job.id, part.device);
      if (view.standing == TurnStanding::kShares) continue;
      now[{job.id, part.device}] = view.standing;
      const auto before = logged_.find({job.id, part.device});
      if (before != logged_.end() && before->second == view.standing) continue;
      const bool runs = view.standing == TurnStanding::kRuns;
      parts_.services->Inform(
          "device " + std::to_string(static_cast<uint32_t>(part.device)) + ": " + NameOf(job.id) +
          (runs ? " has its turn, for " + Seconds(view.until_ns - view.since_ns) +
                      " while others wait: "
                : " waits for its turn: ") +
          TextOf(view.reason));
    }
  }
  logged_ = std::move(now);
}

}  // namespace spillway::agent
