#include "agent/node/holdings/backstop.h"

#include <algorithm>
#include <set>
#include <utility>

#include "agent/arbiter/amounts.h"

namespace spillway::agent {
namespace {

struct Sum {
  int64_t bytes = 0;
  std::set<pid_t> pids;
  std::set<JobId> jobs;
  bool is_known = true;  // every process of it has said what it holds
};

// A process without a grant may hold memory from before the agent came.
int64_t BytesOf(const Session& session, const Registration& registration, const Arbiter& arbiter) {
  const TenantProcess process = ProcessOf(session, registration.device);
  const int64_t budgeted_bytes = arbiter.BudgetedTo(process);
  if (arbiter.HasGrant(process)) return budgeted_bytes;
  return std::max(budgeted_bytes, registration.usage.resident_bytes);
}

void Add(const Session& session, const Registration& registration, const Arbiter& arbiter,
         Sum& sum) {
  AddTo(sum.bytes, BytesOf(session, registration, arbiter));
  sum.pids.insert(session.pid());
  sum.jobs.insert(session.job);
  const bool has_grant = arbiter.HasGrant(ProcessOf(session, registration.device));
  sum.is_known = sum.is_known && (has_grant || registration.has_reported);
}

int64_t RoundedUp(int64_t bytes) {
  AddTo(bytes, Backstop::kStepBytes - 1);
  return bytes - bytes % Backstop::kStepBytes;
}

bool HasOwnGroup(const Session& session) {
  const bool is_of_a_job =
      session.state == SessionState::kJob || session.state == SessionState::kDetached;
  return is_of_a_job && !session.group.empty();
}

}  // namespace

WantedLimits HardLimitsFor(const SessionTable& table, const Arbiter& arbiter,
                           const NodeFacts& facts, const WantedLimits& before) {
  if (!facts.config.sets_hard_limits) return {};
  std::map<LimitPlace, Sum> sums;
  for (const auto& [id, session] : table.sessions()) {
    if (!HasOwnGroup(session)) continue;
    for (const auto& [number, registration] : session.registrations) {
      const NodeDevice& device = facts.devices.at(static_cast<size_t>(registration.device));
      Add(session, registration, arbiter, sums[{device.name, session.group}]);
    }
  }
  WantedLimits wanted;
  for (const auto& [place, sum] : sums) {
    if (sum.jobs.size() != 1) continue;
    const auto known = before.find(place);
    if (!sum.is_known && known == before.end()) continue;
    int64_t bytes = sum.bytes;
    for (size_t i = 0; i < sum.pids.size(); ++i)
      AddTo(bytes, facts.config.hard_limit_reserve_bytes);
    wanted[place] = RoundedUp(bytes);
  }
  return wanted;
}

void Backstop::Settle(bool grants_changed, int64_t now_ns) {
  if (from_.limits == nullptr) return;
  views_ = from_.limits->Views();
  if (!from_.resume->is_on() && (grants_changed || now_ns >= next_lower_ns_)) {
    WantedLimits wanted = HardLimitsFor(*from_.table, *from_.arbiter, *from_.facts, wanted_);
    if (now_ns < next_lower_ns_) {
      for (auto& [place, bytes] : wanted) {
        if (const auto before = wanted_.find(place); before != wanted_.end())
          bytes = std::max(bytes, before->second);
      }
    } else {
      next_lower_ns_ = now_ns + kLowerAfterNs;
    }
    wanted_ = std::move(wanted);
    from_.limits->Want(wanted_);
  }
  NoteShortages(now_ns);
}

// Of a limit that is not set yet, too: it may be, any moment, with less.
bool Backstop::IsShort(const LimitPlace& place, int64_t wanted_bytes) const {
  const auto view = views_->find(place);
  if (view == views_->end()) return true;
  if (view->second.state == LimitState::kForeign || view->second.state == LimitState::kRefused)
    return false;
  return view->second.state != LimitState::kSet || view->second.hard_bytes < wanted_bytes;
}

void Backstop::NoteShortages(int64_t now_ns) {
  std::erase_if(short_since_ns_, [this](const auto& one) {
    const auto wanted = wanted_.find(one.first);
    return wanted == wanted_.end() || !IsShort(one.first, wanted->second);
  });
  bool is_late = false;
  for (const auto& [place, bytes] : wanted_) {
    if (!IsShort(place, bytes)) continue;
    const auto [since, is_new] = short_since_ns_.try_emplace(place, now_ns);
    is_late = is_late || now_ns - since->second >= kPatienceNs;
  }
  if (is_late && !std::exchange(has_warned_, true))
    from_.services->Warn(
        "NVML has not set a hard limit in time: budgets grow without it, and the driver may refuse "
        "memory that a job was granted");
  if (short_since_ns_.empty()) has_warned_ = false;
}

LimitPlace Backstop::PlaceOf(const Session& session, DeviceId device) const {
  return {from_.facts->devices.at(static_cast<size_t>(device)).name, session.group};
}

bool Backstop::Allows(const Session& session, const Registration& registration,
                      const GrantDecision& decision, int64_t now_ns) const {
  if (from_.limits == nullptr || session.group.empty()) return true;
  if (decision.memory_bytes <= registration.sent_memory_bytes) return true;
  const auto since = short_since_ns_.find(PlaceOf(session, registration.device));
  return since == short_since_ns_.end() || now_ns - since->second >= kPatienceNs;
}

std::shared_ptr<const DeviceProcesses> Backstop::WithoutOwn(
    std::shared_ptr<const DeviceProcesses> processes) const {
  if (from_.limits == nullptr || processes == nullptr) return processes;
  const std::shared_ptr<const LimitViews> views = from_.limits->Views();
  if (views->empty()) return processes;
  auto others = std::make_shared<DeviceProcesses>(*processes);
  for (ProcessUse& use : others->uses) {
    const auto view = views->find({use.uuid, use.group});
    if (view != views->end() && view->second.state != LimitState::kForeign && use.limits)
      use.limits = NativeLimits{};
  }
  return others;
}

void Backstop::AddTo(NodeReport& report) const {
  if (from_.limits == nullptr || !from_.facts->config.sets_hard_limits) return;
  report.hard_limits.emplace();
  std::map<std::pair<std::string, std::string>, std::set<LimitPlace>> places;  // by job and device
  for (const auto& [id, session] : from_.table->sessions()) {
    if (!HasOwnGroup(session)) continue;
    for (const auto& [number, registration] : session.registrations) {
      const LimitPlace place = PlaceOf(session, registration.device);
      places[{from_.table->JobOf(session).name, place.uuid}].insert(place);
    }
  }
  for (const auto& [place, view] : *views_)
    ++(*report.hard_limits)[static_cast<size_t>(view.state)];
  for (JobReport& job : report.jobs) {
    for (TenancyReport& tenancy : job.tenancies) {
      for (const LimitPlace& place : places[{job.name, tenancy.uuid}]) {
        const auto view = views_->find(place);
        if (view == views_->end()) continue;
        tenancy.hard_limit_state =
            std::max(tenancy.hard_limit_state.value_or(view->second.state), view->second.state);
        if (view->second.state != LimitState::kSet) continue;
        if (!tenancy.hard_limit_bytes) tenancy.hard_limit_bytes = 0;
        spillway::agent::AddTo(*tenancy.hard_limit_bytes, view->second.hard_bytes);
      }
    }
  }
}

}  // namespace spillway::agent
