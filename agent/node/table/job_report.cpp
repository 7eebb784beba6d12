#include "agent/node/table/job_report.h"

#include "agent/arbiter/amounts.h"

namespace spillway::agent {

namespace {

constexpr uint16_t kFootprintVersion = 6;

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

void AddCounts(const protocol::PlanUse& plans, protocol::PlanUse& sum) {
  AddTo(sum.missed_iterations, plans.missed_iterations);
  AddTo(sum.clean_bytes, plans.clean_bytes);
  AddTo(sum.clean_by_content_bytes, plans.clean_by_content_bytes);
  AddTo(sum.changed_by_content_bytes, plans.changed_by_content_bytes);
  AddTo(sum.recomputable_bytes, plans.recomputable_bytes);
  AddTo(sum.recomputes, plans.recomputes);
  AddTo(sum.recomputed_bytes, plans.recomputed_bytes);
  AddTo(sum.mismatched_recomputes, plans.mismatched_recomputes);
  AddTo(sum.fingerprinted_bytes, plans.fingerprinted_bytes);
  AddTo(sum.fingerprint_ns, plans.fingerprint_ns);
  AddTo(sum.experiments, plans.experiments);
  AddTo(sum.refuted_operations, plans.refuted_operations);
  AddTo(sum.insured_recomputes, plans.insured_recomputes);
}

void AddCounts(const protocol::SpillUse& use, protocol::SpillUse& sum) {
  AddTo(sum.stored_bytes, use.stored_bytes);
  AddTo(sum.resident_twice_bytes, use.resident_twice_bytes);
  AddTo(sum.written_bytes, use.written_bytes);
  AddTo(sum.read_bytes, use.read_bytes);
  AddTo(sum.failures, use.failures);
  AddTo(sum.released_bytes, use.released_bytes);
}

// An older protocol reports only demands. Without a report yet, the job has just begun.
int64_t FootprintOf(const Registration& registration, uint16_t version) {
  if (version < kFootprintVersion) return registration.usage.wanted_bytes;
  return registration.allocated_bytes.value_or(registration.usage.resident_bytes);
}

void AddHeld(const Registration& registration, uint16_t version, TenancyReport& sum) {
  sum.phase = registration.usage.phase;
  AddTo(sum.resident_bytes, registration.usage.resident_bytes);
  AddTo(sum.footprint_bytes, FootprintOf(registration, version));
  AddTo(sum.host_bytes, registration.usage.host_bytes);
  if (registration.parts) AddTo(sum.parts.ordinary_bytes, registration.parts->ordinary_bytes);
  AddTo(sum.unmovable_bytes, registration.usage.unmovable_bytes);
  AddTo(sum.idle_workspace_bytes, registration.workspaces.idle_bytes);
}

void AddReporter(SessionId id, const Registration& registration, TenancyReport& sum) {
  if (registration.has_reported) sum.reporters.push_back(id);
  if (registration.parts) sum.reporters.push_back(id);
}

void Count(const Session& session, JobReport& report) {
  for (ProcessCount* count : {&report.processes, &report.parts[session.part]}) {
    ++count->all;
    count->detached += session.state == SessionState::kDetached ? 1 : 0;
  }
}

}  // namespace

void AddUsage(const Registration& registration, TenancyReport& sum) {
  const protocol::Usage& usage = registration.usage;
  AddTo(sum.to_host_bytes, usage.to_host_bytes);
  AddTo(sum.to_device_bytes, usage.to_device_bytes);
  AddTo(sum.stall_ns, usage.stall_ns);
  AddTo(sum.iterations, usage.iterations);
  AddTo(sum.demand_fetches, usage.demand_fetches);
  AddTo(sum.refused_allocations, usage.refused_allocations);
  AddTo(sum.steps.sum_ns, registration.steps.sum_ns);
  AddTo(sum.steps.counts, registration.steps.counts);
  AddTo(sum.dropped_workspace_bytes, registration.workspaces.dropped_bytes);
  AddTo(sum.other_algorithms, registration.workspaces.other_algorithms);
  AddTo(sum.turn_waited_ns, registration.turns.waited_ns);
  AddTo(sum.turns_begun, registration.turns.turns);
  AddCounts(registration.plans, sum.plans);
  AddCounts(registration.spill, sum.spill);
  if (registration.parts) return AddCounts(*registration.parts, sum.parts);
  AddTo(sum.unparted_to_host_bytes, usage.to_host_bytes);
  AddTo(sum.unparted_to_device_bytes, usage.to_device_bytes);
  AddTo(sum.unparted_stall_ns, usage.stall_ns);
}

JobReport ReportOf(const Job& job, const SessionTable& table, const NodeFacts& facts,
                   int64_t now_ns) {
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
    const Session& session = table.At(id);
    Count(session, report);
    for (const auto& [number, registration] : session.registrations) {
      AddUsage(registration, tenancies[registration.device]);
      AddHeld(registration, session.version, tenancies[registration.device]);
      AddReporter(id, registration, tenancies[registration.device]);
    }
  }
  for (auto& [device, tenancy] : tenancies) {
    tenancy.device_number = static_cast<uint32_t>(device);
    tenancy.uuid = facts.devices[tenancy.device_number].name;
    report.tenancies.push_back(tenancy);
  }
  return report;
}

}  // namespace spillway::agent
