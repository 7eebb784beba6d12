#include <unistd.h>

#include <algorithm>

#include "agent/arbiter/amounts.h"
#include "agent/node/node.h"
#include "agent/node/operator_words.h"
#include "protocol/bulk.h"

namespace spillway::agent {

using protocol::Done;
using protocol::Outcome;

namespace {

// Without memory held now, which ends with its process.
void AddCounts(const protocol::Account& parts, protocol::Account& sum) {
  AddTo(sum.planned_to_host_bytes, parts.planned_to_host_bytes);
  AddTo(sum.pressure_to_host_bytes, parts.pressure_to_host_bytes);
  AddTo(sum.planned_to_device_bytes, parts.planned_to_device_bytes);
  AddTo(sum.demand_to_device_bytes, parts.demand_to_device_bytes);
  AddTo(sum.stall_ns, parts.stall_ns);
  AddTo(sum.prefetch_hits, parts.prefetch_hits);
  AddTo(sum.prefetches_late, parts.prefetches_late);
  AddTo(sum.prefetches_unused, parts.prefetches_unused);
  AddTo(sum.replans, parts.replans);
  AddTo(sum.over_budget_allocations, parts.over_budget_allocations);
}

}  // namespace

bool Node::MayOperate(const Session& session) const {
  const uid_t uid = session.peer->uid();
  if (uid == 0 || uid == geteuid()) return true;
  return std::find(config_.operators.begin(), config_.operators.end(), static_cast<int64_t>(uid)) !=
         config_.operators.end();
}

void Node::TakeAsOperator(Session& session, const protocol::Message& message, int64_t now_ns) {
  const std::string method = MethodOf(message);
  if (method.empty())
    return Refuse(session, protocol::ErrorCode::kOutOfOrder,
                  std::string(protocol::NameOf(message)) + " is not an operator's to send");
  if (!users_[session.peer->uid()].questions.Take(now_ns, config_.limits.messages_per_second))
    return Refuse(session, protocol::ErrorCode::kTooFast,
                  "too many questions per second of this user");
  const int64_t began_ns = services_->NowNs();
  const Outcome outcome = Answer(session, message, now_ns);
  counters_.api_requests[{method, NameOf(outcome)}].Add(services_->NowNs() - began_ns);
}

Outcome Node::Answer(Session& session, const protocol::Message& message, int64_t now_ns) {
  if (const auto* ask = std::get_if<protocol::Ask>(&message)) return On(session, *ask, now_ns);
  const Done done = DoneOf(session, message);
  if (MayOperate(session) || MayLog(session.peer->uid()))
    services_->Inform(LineOf(session.peer->uid(), session.peer->pid(), message, done));
  return Say(session, done);
}

Done Node::DoneOf(const Session& session, const protocol::Message& message) {
  if (!MayOperate(session))
    return {
        Outcome::kRefused,
        "only root, the agent's user and the operators in its configuration may change something"};
  if (const auto* wanted = std::get_if<protocol::SetBudget>(&message)) return Do(*wanted);
  return Do(std::get<protocol::Control>(message));
}

Outcome Node::Say(Session& session, const Done& done) {
  session.channel->Send(done);
  return done.outcome;
}

Node::Job* Node::JobNamed(std::string_view name) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(),
                                  [&](const auto& entry) { return entry.second.name == name; });
  return found == jobs_.end() ? nullptr : &found->second;
}

Outcome Node::On(Session& session, const protocol::Ask& ask, int64_t now_ns) {
  if (ask.question == protocol::Question::kJob && JobNamed(ask.job.view()) == nullptr)
    return Say(session,
               {Outcome::kUnknownJob, "no job " + std::string(ask.job.view()) + " runs here"});
  const std::string page = services_->PageFor(ask, Report(now_ns));
  const base::UniqueFd file = protocol::SealedCopy(page);
  if (!file)
    return Say(session,
               {Outcome::kRefused, "the agent has no memory or files left for the answer"});
  session.channel->Send(protocol::Document{1, page.size()}, {{file.get()}});
  return Outcome::kDone;
}

// Empty: the next agent will know it too.
std::string Node::WhyNotSaved() {
  return services_->SaveState().Annotate("the next agent will not know it").text();
}

Done Node::Do(const protocol::SetBudget& wanted) {
  Job* job = JobNamed(wanted.job.view());
  if (job == nullptr)
    return {Outcome::kUnknownJob, "no job " + std::string(wanted.job.view()) + " runs here"};
  if (wanted.device >= 0)
    return {Outcome::kRefused, "a budget is set on all devices of a job at once"};
  if (wanted.limit_bytes == 0)
    return {Outcome::kRefused,
            "a job needs some memory to compute in; `drain` lets no new job begin"};
  const TermsChange before = job->set_by_operator;
  TermsChange& change = job->set_by_operator;
  const auto set = [](std::optional<int64_t>& value, int64_t wanted_value) {
    if (wanted_value >= 0) value = wanted_value;
  };
  set(change.guaranteed_bytes, wanted.guaranteed_bytes);
  set(change.limit_bytes, wanted.limit_bytes);
  set(change.host_limit_bytes, wanted.host_bytes);
  set(change.link_limit_permille, wanted.link_permille);
  set(change.weight, wanted.weight == 0 ? -1 : wanted.weight);
  set(change.priority, wanted.priority_plus_one - 1);
  std::string refusal;
  for (const TenancyView& view : arbiter_.Tenancies()) {
    if (view.job != job->id || !refusal.empty()) continue;
    const int64_t memory_bytes = arbiter_.MemoryOf(view.device);
    if (wanted.guaranteed_bytes > memory_bytes) {
      refusal = "device " + std::to_string(static_cast<uint32_t>(view.device)) + " has only " +
                InBytes(memory_bytes);
      continue;
    }
    const Terms terms = TermsOf(*job, view.device);
    if (wanted.guaranteed_bytes > terms.memory.limit) {
      refusal = "its limit on device " + std::to_string(static_cast<uint32_t>(view.device)) +
                " is " + InBytes(terms.memory.limit);
      continue;
    }
    refusal = arbiter_.CheckTerms(job->id, view.device, terms).text();
  }
  const bool takes = refusal.empty() && !wanted.dry_run;
  if (takes) {
    ++saved_version_;
    RefreshTerms(*job);
  } else {
    change = before;
  }
  if (!refusal.empty()) return {Outcome::kRefused, refusal};
  return wanted.dry_run ? Done{Outcome::kWouldBeDone, ""} : Done{Outcome::kDone, WhyNotSaved()};
}

Done Node::Do(const protocol::Control& control) {
  std::string refusal, note;
  switch (control.action) {
    case protocol::Action::kDrain:
    case protocol::Action::kUndrain:
      arbiter_.SetDraining(control.action == protocol::Action::kDrain);
      ++saved_version_;
      note = WhyNotSaved();
      break;
    case protocol::Action::kReload:
      refusal = services_->Reload().text();
      if (refusal.empty()) note = services_->WhatNeedsRestart();
      break;
    case protocol::Action::kLogLevel:
      refusal = services_->SetLogLevel(std::string(control.value.view())).text();
      break;
  }
  return refusal.empty() ? Done{Outcome::kDone, note} : Done{Outcome::kRefused, refusal};
}

SavedState Node::Saved() const {
  SavedState state{arbiter_.draining(), restored_.terms};
  for (const auto& [id, job] : jobs_) {
    if (job.set_by_operator != TermsChange{}) state.terms[job.key] = job.set_by_operator;
  }
  return state;
}

void Node::Restore(const SavedState& state) {
  arbiter_.SetDraining(state.draining);
  if (resuming_) restored_ = state;
}

void Node::AddUsage(const Registration& registration, TenancyReport& sum) {
  const protocol::Usage& usage = registration.usage;
  AddTo(sum.to_host_bytes, usage.to_host_bytes);
  AddTo(sum.to_device_bytes, usage.to_device_bytes);
  AddTo(sum.stall_ns, usage.stall_ns);
  AddTo(sum.iterations, usage.iterations);
  AddTo(sum.demand_fetches, usage.demand_fetches);
  AddTo(sum.refused_allocations, usage.refused_allocations);
  AddTo(sum.steps.sum_ns, registration.steps.sum_ns);
  AddTo(sum.steps.counts, registration.steps.counts);
  if (registration.parts) return AddCounts(*registration.parts, sum.parts);
  AddTo(sum.unparted_to_host_bytes, usage.to_host_bytes);
  AddTo(sum.unparted_to_device_bytes, usage.to_device_bytes);
  AddTo(sum.unparted_stall_ns, usage.stall_ns);
}

bool Node::IsFirstOn(const Job& job, DeviceId device) const {
  return std::none_of(job.sessions.begin(), job.sessions.end(), [&](SessionId id) {
    const auto& registrations = sessions_.at(id).registrations;
    return std::any_of(registrations.begin(), registrations.end(),
                       [&](const auto& entry) { return entry.second.device == device; });
  });
}

// An older protocol reports only demands. Without a report yet, the job has just begun.
int64_t Node::FootprintOf(const Registration& registration, uint16_t version) {
  constexpr uint16_t kFootprintVersion = 6;
  if (version < kFootprintVersion) return registration.usage.wanted_bytes;
  return registration.allocated_bytes.value_or(registration.usage.resident_bytes);
}

JobReport Node::ReportOf(const Job& job, int64_t now_ns) const {
  JobReport report;
  report.name = job.name;
  report.source = job.source;
  report.source_id = job.source_id;
  report.command = job.command;
  report.uid = job.uid;
  report.age_ns = now_ns - job.since_ns;
  report.exit_code = job.exit_code;
  report.is_logged = job.is_logged;
  std::map<DeviceId, TenancyReport> tenancies = job.finished;
  for (SessionId id : job.sessions) {
    const Session& session = sessions_.at(id);
    for (ProcessCount* count : {&report.processes, &report.parts[session.part]}) {
      ++count->all;
      count->detached += session.state == State::kDetached ? 1 : 0;
    }
    for (const auto& [number, registration] : session.registrations) {
      TenancyReport& sum = tenancies[registration.device];
      AddUsage(registration, sum);
      sum.phase = registration.usage.phase;
      AddTo(sum.resident_bytes, registration.usage.resident_bytes);
      AddTo(sum.footprint_bytes, FootprintOf(registration, session.version));
      AddTo(sum.host_bytes, registration.usage.host_bytes);
      if (registration.parts) AddTo(sum.parts.ordinary_bytes, registration.parts->ordinary_bytes);
      AddTo(sum.unmovable_bytes, registration.usage.unmovable_bytes);
    }
  }
  for (auto& [device, tenancy] : tenancies) {
    tenancy.device_number = static_cast<uint32_t>(device);
    tenancy.uuid = devices_[tenancy.device_number].name;
    report.tenancies.push_back(tenancy);
  }
  return report;
}

NodeReport Node::Report(int64_t now_ns) const {
  NodeReport report;
  report.instance = instance_;
  report.up_ns = now_ns - started_ns_;
  report.draining = arbiter_.draining();
  report.resuming = resuming_;
  report.last_reload_succeeded = last_reload_succeeded_;
  report.host_bytes = host_bytes_;
  report.host_budgeted_bytes = arbiter_.BudgetedOnHost();
  report.sessions = sessions_.size();
  report.counters = counters_;
  for (const UnknownDevice& device : unknown_devices_)
    report.unknown_devices.push_back(device.name);
  if (shares_ != nullptr) report.pool = shares_->View();
  if (planning_ != nullptr) report.planning = planning_->View();
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    report.devices.push_back(
        {i, devices_[i].name, devices_[i].model, arbiter_.MemoryOf(DeviceId{i}),
         arbiter_.BudgetedOn(DeviceId{i}), 0, devices_[i].bus_id,
         shares_ != nullptr ? shares_->NodeNear(DeviceId{i}) : kAnyNode, devices_[i].is_found});
  }
  std::map<JobId, size_t> places;
  for (const auto& [id, job] : jobs_) {
    places[id] = report.jobs.size();
    report.jobs.push_back(ReportOf(job, now_ns));
  }
  const std::vector<TenancyView> views = arbiter_.Tenancies();
  report.owners = ReportOwners(views);
  for (const TenancyView& view : views) {
    for (TenancyReport& tenancy : report.jobs[places.at(view.job)].tenancies) {
      if (tenancy.device_number != static_cast<uint32_t>(view.device)) continue;
      tenancy.view = view;
      AddTo(report.devices[tenancy.device_number].resident_bytes, tenancy.resident_bytes);
    }
  }
  return report;
}

}  // namespace spillway::agent
