#include "agent/report/node_json.h"

#include <nlohmann/json.hpp>

#include "agent/arbiter/amounts.h"

namespace spillway::agent {

using nlohmann::ordered_json;

namespace {

template <size_t N>
ordered_json Named(const auto& names, const std::array<int64_t, N>& values) {
  ordered_json json;
  for (size_t i = 0; i < N; ++i) json[names[i]] = values[i];
  return json;
}

ordered_json JsonOf(const protocol::Account& parts) {
  return {{"planned_to_host_bytes", parts.planned_to_host_bytes},
          {"pressure_to_host_bytes", parts.pressure_to_host_bytes},
          {"planned_to_device_bytes", parts.planned_to_device_bytes},
          {"demand_to_device_bytes", parts.demand_to_device_bytes},
          {"stall_ns", Named(protocol::kStallCauseNames, parts.stall_ns)},
          {"prefetches",
           {{"hit", parts.prefetch_hits},
            {"late", parts.prefetches_late},
            {"unused", parts.prefetches_unused}}},
          {"replans", Named(protocol::kReplanReasonNames, parts.replans)},
          {"over_budget_allocations", parts.over_budget_allocations}};
}

ordered_json WorkspacesOf(const TenancyReport& tenancy) {
  const std::optional<int64_t> limit_bytes = tenancy.WorkspaceLimitBytes();
  return {{"limit_bytes", limit_bytes ? ordered_json(*limit_bytes) : ordered_json(nullptr)},
          {"idle_bytes", tenancy.idle_workspace_bytes},
          {"dropped_bytes", tenancy.dropped_workspace_bytes},
          {"other_algorithms", tenancy.other_algorithms}};
}

ordered_json JsonOf(const protocol::PlanUse& plans) {
  return {{"missed_iterations", plans.missed_iterations},
          {"uncopied_bytes",
           {{"clean", plans.clean_bytes},
            {"clean_by_content", plans.clean_by_content_bytes},
            {"recomputable", plans.recomputable_bytes}}},
          {"changed_by_content_bytes", plans.changed_by_content_bytes},
          {"recomputes", plans.recomputes},
          {"recomputed_bytes", plans.recomputed_bytes},
          {"mismatched_recomputes", plans.mismatched_recomputes},
          {"fingerprinted_bytes", plans.fingerprinted_bytes},
          {"fingerprint_ns", plans.fingerprint_ns},
          {"experiments", plans.experiments},
          {"refuted_operations", plans.refuted_operations},
          {"insured_recomputes", plans.insured_recomputes}};
}

// null: the driver does not tell.
ordered_json UnmanagedOf(const DeviceReport& device) {
  if (!device.unmanaged_bytes) return nullptr;
  ordered_json json = {{"bytes", *device.unmanaged_bytes}, {"processes", ordered_json::array()}};
  for (const UnmanagedProcess& process : device.unmanaged)
    json["processes"].push_back(
        {{"pid", process.pid}, {"command", process.command}, {"bytes", process.bytes}});
  return json;
}

ordered_json JsonOf(const protocol::SpillUse& use) {
  return {{"stored_bytes", use.stored_bytes},
          {"written_bytes", use.written_bytes},
          {"read_bytes", use.read_bytes},
          {"failures", use.failures},
          {"resident_twice_bytes", use.resident_twice_bytes},
          {"spare_copies_released_bytes", use.released_bytes}};
}

const char* NameOf(TurnStanding standing) {
  constexpr const char* names[] = {"shares", "runs", "waits"};
  return names[static_cast<size_t>(standing)];
}

ordered_json TurnOf(const TenancyReport& tenancy) {
  const TurnView& turn = tenancy.turn;
  return {{"state", NameOf(turn.standing)},
          {"reason", TextOf(turn.reason)},
          {"level", turn.level},
          {"swap_ns", turn.swap_ns},
          {"begun", tenancy.turns_begun},
          {"waited_ns", tenancy.turn_waited_ns}};
}

// null: the agent sets none for the job.
ordered_json HardLimitOf(const TenancyReport& tenancy) {
  if (!tenancy.hard_limit_state) return nullptr;
  const std::optional<int64_t>& bytes = tenancy.hard_limit_bytes;
  return {{"state", kLimitStateNames[static_cast<size_t>(*tenancy.hard_limit_state)]},
          {"bytes", bytes ? ordered_json(*bytes) : ordered_json(nullptr)}};
}

ordered_json JsonOf(const TenancyReport& tenancy) {
  const TenancyView& view = tenancy.view;
  return {{"device", tenancy.device_number},
          {"uuid", tenancy.uuid},
          {"state", StateOf(tenancy)},
          {"queue_position", view.position},
          {"active", view.active},
          {"overdue", view.overdue},
          {"guaranteed_bytes", view.terms.memory.guaranteed},
          {"limit_bytes", view.terms.memory.limit},
          {"floor_bytes", view.terms.memory.floor},
          {"weight", view.terms.weight},
          {"priority", view.terms.priority},
          {"budget_bytes", view.granted_bytes},
          {"budgeted_bytes", view.budgeted_bytes},
          {"promised_bytes", view.budgeted_bytes},  // the former name, for scripts
          {"wanted_bytes", tenancy.footprint_bytes},
          {"claimed_bytes", view.wanted_bytes},
          {"resident_bytes", tenancy.resident_bytes},
          {"unmovable_bytes", tenancy.unmovable_bytes},
          {"host_budget_bytes", view.host_granted_bytes},
          {"host_bytes", tenancy.host_bytes},
          {"ordinary_bytes", tenancy.parts.ordinary_bytes},
          {"link_permille", view.link_permille},
          {"hard_limit", HardLimitOf(tenancy)},
          {"to_host_bytes", tenancy.to_host_bytes},
          {"to_device_bytes", tenancy.to_device_bytes},
          {"stall_ns", tenancy.stall_ns},
          {"iterations", tenancy.iterations},
          {"demand_fetches", tenancy.demand_fetches},
          {"refused_allocations", tenancy.refused_allocations},
          {"workspaces", WorkspacesOf(tenancy)},
          {"turn", TurnOf(tenancy)},
          {"parts", JsonOf(tenancy.parts)},
          {"plan_use", JsonOf(tenancy.plans)},
          {"spill", JsonOf(tenancy.spill)}};
}

// The job's id in its own system, and the parts with processes here.
ordered_json SourceOf(const JobReport& job) {
  constexpr const char* ids[] = {"", "slurm_job", "pod_uid", "container_id"};
  constexpr const char* parts[] = {"", "slurm_steps", "container_ids", ""};
  const auto source = static_cast<size_t>(job.source);
  ordered_json json = {{"source", NameOf(job.source)}};
  if (*ids[source] != 0) json[ids[source]] = job.source_id;
  if (*parts[source] == 0) return json;
  json[parts[source]] = ordered_json::array();
  for (const auto& [part, processes] : job.parts) {
    if (!part.empty()) json[parts[source]].push_back(part);
  }
  return json;
}

ordered_json JsonOf(const OwnerReport& owner) {
  const auto bound = [](int64_t value) {
    return value == OwnerTerms::kAny ? ordered_json(nullptr) : ordered_json(value);
  };
  ordered_json json = {{"name", owner.name},
                       {"account", owner.account},
                       {"jobs", owner.jobs},
                       {"waiting_jobs", owner.waiting_jobs},
                       {"jobs_limit", bound(owner.terms.jobs)},
                       {"weight", owner.terms.weight},
                       {"host_limit_bytes", bound(owner.terms.host_limit_bytes)},
                       {"host_budget_bytes", owner.host_granted_bytes},
                       {"devices", ordered_json::array()}};
  for (const OwnerUse& use : owner.devices)
    json["devices"].push_back({{"device", use.device_number},
                               {"uuid", use.uuid},
                               {"guaranteed_bytes", use.guaranteed_bytes},
                               {"limit_bytes", use.limit_bytes},
                               {"budget_bytes", use.granted_bytes},
                               {"wanted_bytes", use.wanted_bytes}});
  return json;
}

ordered_json JsonOf(const PlanningView& planning) {
  ordered_json requests;
  for (size_t i = 0; i < kPlanOutcomes; ++i) requests[kPlanOutcomeNames[i]] = planning.outcomes[i];
  return {{"requests", requests},
          {"recalls", {{"found", planning.recalls_served}, {"none", planning.recalls_empty}}},
          {"waiting", planning.waiting},
          {"running", planning.running},
          {"planning_ns", planning.planning_ns},
          {"given_bytes", planning.given_bytes},
          {"store",
           {{"plans", planning.store_plans},
            {"bytes", planning.store_bytes},
            {"size_bytes", planning.store_most_bytes},
            {"damaged", planning.store_damaged},
            {"evicted", planning.store_evicted},
            {"not_written", planning.store_not_written}}}};
}

ordered_json JsonOf(const PoolView& pool) {
  return {{"making_bytes", pool.making_bytes}, {"unused_bytes", pool.unused_bytes},
          {"leased_bytes", pool.leased_bytes}, {"kept_bytes", pool.kept_bytes},
          {"ending_bytes", pool.ending_bytes}, {"unserved_bytes", pool.unserved_bytes},
          {"not_made", pool.not_made},         {"backend", pool.makes_drivers ? "driver" : "file"},
          {"driver_bytes", pool.drivers_bytes}};
}

}  // namespace

const char* StateOf(const TenancyReport& tenancy) {
  if (tenancy.view.state == TenancyState::kQueued) return "waiting";
  if (tenancy.view.state == TenancyState::kRejected) return "rejected";
  constexpr const char* phases[] = {"?", "learning", "planned", "reactive", "passthrough"};
  return phases[static_cast<size_t>(tenancy.phase)];
}

std::string NextOf(const DeviceReport& device, const NodeReport& report) {
  for (const JobReport& job : report.jobs) {
    for (const TenancyReport& tenancy : job.tenancies) {
      if (device.turns.next != JobId{} && tenancy.view.job == device.turns.next) return job.name;
    }
  }
  return "";
}

int64_t OrdinaryBytes(const NodeReport& report) {
  int64_t bytes = 0;
  for (const JobReport& job : report.jobs) {
    for (const TenancyReport& tenancy : job.tenancies) AddTo(bytes, tenancy.parts.ordinary_bytes);
  }
  return bytes;
}

ordered_json JsonOf(const JobReport& job) {
  ordered_json json = {{"job", job.name}};
  json.update(SourceOf(job));
  json.update({{"command", job.command},
               {"uid", job.uid},
               {"age_ns", job.age_ns},
               {"processes", job.processes.all},
               {"detached_processes", job.processes.detached},
               {"devices", ordered_json::array()}});
  for (const TenancyReport& tenancy : job.tenancies) json["devices"].push_back(JsonOf(tenancy));
  return json;
}

ordered_json JsonOfNode(const NodeReport& report, size_t most_jobs) {
  ordered_json json = {{"schema", 1},
                       {"agent_instance", report.instance},
                       {"up_ns", report.up_ns},
                       {"draining", report.draining},
                       {"resuming", report.resuming},
                       {"last_reload_succeeded", report.last_reload_succeeded},
                       {"sessions", report.sessions},
                       {"host",
                        {{"memory_bytes", report.host_bytes},
                         {"budgeted_bytes", report.host_budgeted_bytes},
                         {"promised_bytes", report.host_budgeted_bytes},  // the former name
                         {"ordinary_bytes", OrdinaryBytes(report)},
                         {"spill_bytes", report.spill_bytes},
                         {"spill_used_bytes", report.spill_used_bytes}}},
                       {"devices", ordered_json::array()},
                       {"jobs", ordered_json::array()}};
  if (report.pool) json["host"]["pool"] = JsonOf(*report.pool);
  if (report.hard_limits) json["hard_limits"] = Named(kLimitStateNames, *report.hard_limits);
  if (report.planning) json["planning"] = JsonOf(*report.planning);
  for (const DeviceReport& device : report.devices) {
    json["devices"].push_back({{"device", device.number},
                               {"uuid", device.uuid},
                               {"model", device.model},
                               {"memory_bytes", device.memory_bytes},
                               {"budgeted_bytes", device.budgeted_bytes},
                               {"promised_bytes", device.budgeted_bytes},  // the former name
                               {"resident_bytes", device.resident_bytes},
                               {"unmanaged", UnmanagedOf(device)},
                               {"turns",
                                {{"on", device.turns.is_on},
                                 {"reason", TextOf(device.turns.reason)},
                                 {"lost_permille", device.turns.lost_permille},
                                 {"cost_permille", device.turns.turns_permille},
                                 {"next", NextOf(device, report)}}},
                               {"found", device.is_found}});
  }
  json["unknown_devices"] = report.unknown_devices;
  json["allocations"] = ordered_json::array();
  for (const AllocationReport& allocation : report.allocations)
    json["allocations"].push_back({{"name", allocation.name}, {"jobs", allocation.jobs}});
  json["waiting_pods"] = report.waiting_pods;
  for (const JobReport& job : report.jobs) {
    if (json["jobs"].size() < most_jobs) json["jobs"].push_back(JsonOf(job));
  }
  json["users"] = ordered_json::array();
  for (const OwnerReport& owner : report.owners) json["users"].push_back(JsonOf(owner));
  return json;
}

}  // namespace spillway::agent
