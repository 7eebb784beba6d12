#include "agent/node/holdings/job_terms.h"

#include <algorithm>

#include "agent/arbiter/amounts.h"
#include "agent/node/table/native_budget.h"

namespace spillway::agent {

namespace {

void Apply(const protocol::SetBudget& wanted, TermsChange& change) {
  const auto set = [](std::optional<int64_t>& value, int64_t wanted_value) {
    if (wanted_value >= 0) value = wanted_value;
  };
  set(change.guaranteed_bytes, wanted.guaranteed_bytes);
  set(change.limit_bytes, wanted.limit_bytes);
  set(change.host_limit_bytes, wanted.host_bytes);
  set(change.link_limit_permille, wanted.link_permille);
  set(change.weight, wanted.weight == 0 ? -1 : wanted.weight);
  set(change.priority, wanted.priority_plus_one - 1);
}

}  // namespace

Terms JobTerms::Of(const Job& job, DeviceId device) const {
  const int64_t memory_bytes = arbiter_.MemoryOf(device);
  Terms terms = TermsFor(facts_.config, job.name, job.uid, memory_bytes, facts_.host_bytes);
  ApplyStated(job, terms, memory_bytes);
  ApplyAllocations(job, terms);
  ApplyTerms(job.set_by_operator, terms, memory_bytes, facts_.host_bytes);
  const protocol::Register own = OwnLimitsOf(job, device);
  if (own.own_limit_bytes > 0)
    terms.memory.limit = std::min(terms.memory.limit, own.own_limit_bytes);
  if (own.own_host_limit_bytes > 0)
    terms.host.limit = std::min(terms.host.limit, own.own_host_limit_bytes);
  if (const auto native = native_budgets_.find({job.id, device}); native != native_budgets_.end())
    terms.memory.limit = std::min(terms.memory.limit, native->second);
  terms.memory.guaranteed = std::min(terms.memory.guaranteed, terms.memory.limit);
  terms.memory.floor = std::min(terms.memory.floor, terms.memory.limit);
  terms.host.guaranteed = std::min(terms.host.guaranteed, terms.host.limit);
  terms.owner = job.owner;
  return terms;
}

// The user asked for the stated terms; the operator's limits hold for them.
void JobTerms::ApplyStated(const Job& job, Terms& terms, int64_t memory_bytes) const {
  const TermsChange* const stated = expected_.TermsOf(job.key);
  if (stated == nullptr) return;
  const int64_t limit = terms.memory.limit, host_limit = terms.host.limit;
  ApplyTerms(*stated, terms, memory_bytes, facts_.host_bytes);
  terms.memory.limit = std::min(terms.memory.limit, limit);
  terms.host.limit = std::min(terms.host.limit, host_limit);
}

void JobTerms::ApplyAllocations(const Job& job, Terms& terms) const {
  const TermsChange limits = allocations_.LimitsOf(job.key, job.id);
  terms.memory.limit = std::min(terms.memory.limit, limits.limit_bytes.value_or(INT64_MAX));
  terms.host.limit = std::min(terms.host.limit, limits.host_limit_bytes.value_or(INT64_MAX));
}

// The least limit that any of its processes asks for there; 0: no limit.
protocol::Register JobTerms::OwnLimitsOf(const Job& job, DeviceId device) const {
  protocol::Register least;
  const auto lower = [](int64_t& value, int64_t other) {
    if (other > 0) value = value == 0 ? other : std::min(value, other);
  };
  for (SessionId id : job.sessions) {
    for (const auto& [number, registration] : table_.At(id).registrations) {
      if (registration.device != device) continue;
      lower(least.own_limit_bytes, registration.asked.own_limit_bytes);
      lower(least.own_host_limit_bytes, registration.asked.own_host_limit_bytes);
    }
  }
  return least;
}

void JobTerms::Refresh(const Job& job, DeviceId device) {
  arbiter_.SetParts(job.id, device, expected_.PartsOf(job.key, arbiter_.MemoryOf(device)));
  arbiter_.ChangeTermsToFit(job.id, device, Of(job, device));
}

void JobTerms::Refresh(const Job& job) {
  for (DeviceId device : table_.DevicesOf(job)) Refresh(job, device);
}

// Twice: a guarantee that one job loses may go to a job before it.
void JobTerms::RefreshAll() {
  for (int pass = 0; pass < 2; ++pass) {
    for (const auto& [id, job] : table_.jobs()) Refresh(job);
  }
}

std::map<std::pair<JobId, DeviceId>, int64_t> JobTerms::NativeBudgets() const {
  std::map<std::pair<JobId, DeviceId>, int64_t> budgets;
  for (const auto& [id, job] : table_.jobs()) {
    for (const DeviceId device : table_.DevicesOf(job)) {
      const std::string& uuid = facts_.devices.at(static_cast<size_t>(device)).name;
      const NativeBudget told = NativeBudgetOf(job, uuid, table_, *facts_.processes);
      std::optional<int64_t> bytes = told.bytes;
      const auto known = native_budgets_.find({id, device});
      if (!told.is_told && known != native_budgets_.end())
        bytes = std::min(bytes.value_or(INT64_MAX), known->second);
      if (bytes) budgets[{id, device}] = *bytes;
    }
  }
  return budgets;
}

void JobTerms::RefreshIfLimitsChanged() {
  if (facts_.processes == nullptr) return;
  auto budgets = NativeBudgets();
  if (budgets == native_budgets_) return;
  native_budgets_ = std::move(budgets);
  RefreshAll();
}

base::Status JobTerms::Change(Job& job, const protocol::SetBudget& wanted) {
  const TermsChange before = job.set_by_operator;
  Apply(wanted, job.set_by_operator);
  base::Status status = Check(job, wanted);
  if (!status.ok() || wanted.dry_run) {
    job.set_by_operator = before;
    return status;
  }
  ++saved_version_;
  Refresh(job);
  return status;
}

void JobTerms::SetWorkspaceLimit(Job& job, int64_t bytes) {
  job.set_by_operator.workspace_limit_bytes = bytes;
  ++saved_version_;
  Refresh(job);
}

base::Status JobTerms::Check(const Job& job, const protocol::SetBudget& wanted) const {
  for (const TenancyView& view : arbiter_.Tenancies()) {
    if (view.job != job.id) continue;
    const std::string number = std::to_string(static_cast<uint32_t>(view.device));
    const int64_t memory_bytes = arbiter_.MemoryOf(view.device);
    if (wanted.guaranteed_bytes > memory_bytes)
      return base::Error{"device " + number + " has only " + InBytes(memory_bytes)};
    const Terms terms = Of(job, view.device);
    if (wanted.guaranteed_bytes > terms.memory.limit)
      return base::Error{"its limit on device " + number + " is " + InBytes(terms.memory.limit)};
    base::Status status = arbiter_.CheckTerms(job.id, view.device, terms);
    if (!status.ok()) return status;
  }
  return base::Ok();
}

void JobTerms::SetDraining(bool draining) {
  arbiter_.SetDraining(draining);
  ++saved_version_;
}

SavedState JobTerms::Saved() const {
  SavedState state{.draining = arbiter_.draining(), .terms = restored_.terms};
  for (const auto& [id, job] : table_.jobs()) {
    if (job.set_by_operator != TermsChange{}) state.terms[job.key] = job.set_by_operator;
  }
  return state;
}

void JobTerms::Restore(const SavedState& state, bool jobs_may_return) {
  arbiter_.SetDraining(state.draining);
  if (jobs_may_return) restored_ = state;
}

void JobTerms::EndReturn() {
  saved_version_ += restored_.terms.empty() ? 0 : 1;
  restored_ = {};
}

TermsChange JobTerms::TakeRestored(const std::string& key) {
  const auto saved = restored_.terms.extract(key);
  return saved ? saved.mapped() : TermsChange{};
}

void JobTerms::NoteEnd(const Job& job) {
  if (job.set_by_operator != TermsChange{}) ++saved_version_;
}

}  // namespace spillway::agent
