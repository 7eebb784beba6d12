#include "agent/arbiter/amounts.h"
#include "agent/http/families.h"

namespace spillway::agent {
namespace {

Labels Of(const DeviceReport& device) {
  return {{"gpu", std::to_string(device.number)}, {"uuid", device.uuid}};
}
std::string NameOf(int numa_node) {
  return numa_node == kAnyNode ? "any" : std::to_string(numa_node);
}

void AddDevices(const NodeReport& report, const std::map<std::string, int64_t>& used_bytes,
                Families& out) {
  out.BeginGauge("spillway_gpu_info", "Static facts about a device; always 1.");
  for (const DeviceReport& device : report.devices)
    out.Add(With(With(With(Of(device), "pci_bus_id", device.bus_id), "model", device.model),
                 "numa_node", NameOf(device.numa_node)),
            1.0);
  out.BeginGauge("spillway_gpu_found", "0 where a configured device is unknown to NVML.");
  for (const DeviceReport& device : report.devices) out.Add(Of(device), int64_t{device.is_found});
  out.BeginGauge("spillway_gpu_memory_size_bytes", "Device memory that can be budgeted to jobs.");
  for (const DeviceReport& device : report.devices) out.Add(Of(device), device.memory_bytes);
  out.BeginGauge(
      "spillway_gpu_memory_used_bytes",
      "Device memory that is used by all processes, as NVML counts; no series where it does not.");
  for (const DeviceReport& device : report.devices) {
    const auto used = used_bytes.find(device.uuid);
    if (used != used_bytes.end()) out.Add(Of(device), used->second);
  }
  out.BeginGauge("spillway_gpu_memory_managed_bytes", "Device memory that jobs hold.");
  for (const DeviceReport& device : report.devices) out.Add(Of(device), device.resident_bytes);
  out.BeginGauge(
      "spillway_gpu_memory_unmanaged_bytes",
      "Device memory of processes that bypass the agent, as NVML counts; no series where "
      "it does not.");
  for (const DeviceReport& device : report.devices)
    if (device.unmanaged_bytes) out.Add(Of(device), *device.unmanaged_bytes);
  out.BeginGauge("spillway_gpu_turns", "Whether jobs take turns on the device, by why.");
  for (const DeviceReport& device : report.devices)
    out.Add(With(Of(device), "reason", TextOf(device.turns.reason)), int64_t{device.turns.is_on});
  out.BeginGauge("spillway_gpu_memory_budgeted_bytes", "Device memory that is budgeted to jobs.");
  for (const DeviceReport& device : report.devices) out.Add(Of(device), device.budgeted_bytes);
}

void AddPoolNodes(const PoolView& pool, Families& out) {
  out.BeginGauge("spillway_pool_size_bytes", "Slabs of the host pool, by NUMA node.");
  for (const auto& [node, view] : pool.by_node)
    out.Add({{"numa_node", NameOf(node)}}, view.size_bytes);
  out.BeginGauge("spillway_pool_used_bytes", "Of these, those that jobs have, by NUMA node.");
  for (const auto& [node, view] : pool.by_node)
    out.Add({{"numa_node", NameOf(node)}}, view.used_bytes);
}

void AddStanding(const NodeReport& report, Families& out) {
  out.BeginGauge("spillway_build_info", "Version of the running agent; always 1.");
  out.Add({{"version", SPILLWAY_VERSION}, {"revision", SPILLWAY_REVISION}}, 1.0);
  out.Gauge("spillway_config_last_reload_successful", "Whether the last reload was accepted.",
            report.last_reload_succeeded ? 1 : 0);
  out.Gauge("spillway_config_last_reload_success_timestamp_seconds",
            "When the configuration that holds was read, since unix epoch.", report.config_read_s);
  out.Gauge("spillway_spill_size_bytes", "The most evicted data that files may have.",
            static_cast<double>(report.spill_bytes));
  out.Gauge("spillway_spill_used_bytes", "Of that, in files or reserved for them.",
            static_cast<double>(report.spill_used_bytes));
  out.Gauge("spillway_host_memory_size_bytes", "Host memory that can be budgeted to jobs.",
            static_cast<double>(report.host_bytes));
  out.Gauge("spillway_host_memory_budgeted_bytes", "Host memory that is budgeted to jobs.",
            static_cast<double>(report.host_budgeted_bytes));
  if (report.pool) {
    const PoolView& pool = *report.pool;
    out.BeginGauge(
        "spillway_pool_bytes",
        "The host pool's slabs by what becomes of them: being made, unused, leased, kept for their "
        "job, ending.");
    out.Add({{"state", "making"}}, pool.making_bytes);
    out.Add({{"state", "unused"}}, pool.unused_bytes);
    out.Add({{"state", "leased"}}, pool.leased_bytes);
    out.Add({{"state", "kept"}}, pool.kept_bytes);
    out.Add({{"state", "ending"}}, pool.ending_bytes);
    AddPoolNodes(pool, out);
    out.Gauge("spillway_pool_unserved_bytes", "Asked for within quotas, and not there.",
              static_cast<double>(pool.unserved_bytes));
    out.BeginGauge(
        "spillway_pool_backend",
        "1 for what new slabs of the host pool are: files in memory, or the driver's memory.");
    out.Add({{"backend", "file"}}, int64_t{!pool.makes_drivers});
    out.Add({{"backend", "driver"}}, int64_t{pool.makes_drivers});
    out.Gauge("spillway_pool_driver_bytes", "Slabs of the host pool that are the driver's memory.",
              static_cast<double>(pool.drivers_bytes));
    out.Counter("spillway_pool_not_made_total", "Slabs for which there was no memory.",
                pool.not_made);
  }
  int64_t ordinary_bytes = 0;
  for (const JobReport& job : report.jobs) {
    for (const TenancyReport& tenancy : job.tenancies)
      AddTo(ordinary_bytes, tenancy.parts.ordinary_bytes);
  }
  out.Gauge(
      "spillway_host_memory_ordinary_bytes",
      "Host memory that is neither pinned nor budgeted, in which jobs keep what their quotas lack.",
      static_cast<double>(ordinary_bytes));
  out.Gauge("spillway_unknown_devices", "Devices that jobs asked for and that nobody manages.",
            static_cast<double>(report.unknown_devices.size()));
  out.Gauge("spillway_sessions", "Connections of jobs and operators.",
            static_cast<double>(report.sessions));
  out.Gauge("spillway_draining", "Whether no new job may begin here.", report.draining ? 1 : 0);
  out.Gauge("spillway_resuming", "Whether jobs of an earlier agent are waited for.",
            report.resuming ? 1 : 0);
}

void AddCounters(const NodeCounters& counters, Families& out) {
  out.BeginCounter("spillway_config_reloads_total", "Times that the configuration was read again.");
  out.Add({{"result", "accepted"}}, counters.reloads);
  out.Add({{"result", "refused"}}, counters.failed_reloads);
  out.Counter("spillway_jobs_started_total", "Jobs that have begun.", counters.jobs_started);
  out.Counter("spillway_jobs_ended_total", "Jobs that have ended.", counters.jobs_ended);
  out.BeginCounter("spillway_admissions_total", "Decisions on jobs that asked for a device.");
  out.Add({{"result", "admitted"}}, counters.admitted);
  out.Add({{"result", "queued"}}, counters.queued);
  out.Add({{"result", "rejected"}}, counters.rejected);
  out.BeginHistogram("spillway_admission_wait_seconds", "Time that jobs waited for admission.");
  out.Add({}, kWaitSeconds, counters.admission_waits.counts, counters.admission_waits.sum_ns);
  out.BeginCounter("spillway_leases_reclaimed_total",
                   "Budgets taken back from processes that ended without releasing them.");
  out.Add({{"reason", "process_ended"}}, counters.reclaimed);
  out.Counter("spillway_grants_total", "Budgets told to processes.", counters.grants);
  out.Counter("spillway_revocations_total", "Budgets asked back.", counters.revocations);
  out.Counter("spillway_overdue_returns_total", "Budgets not given back by their deadline.",
              counters.overdue);
  out.BeginCounter("spillway_connections_total", "Connection attempts.");
  out.Add({{"result", "accepted"}}, counters.connections - counters.refused_connections);
  out.Add({{"result", "refused"}}, counters.refused_connections);
  out.Counter("spillway_faulty_frames_total", "Frames that were no message.",
              counters.faulty_frames);
}

void AddRequests(const NodeCounters& counters, Families& out) {
  const auto labels = [](const auto& entry) {
    return Labels{{"method", entry.first.first}, {"code", entry.first.second}};
  };
  out.BeginCounter("spillway_api_requests_total", "Requests of operators on the control socket.");
  for (const auto& entry : counters.api_requests) {
    int64_t count = 0;
    for (const int64_t some : entry.second.counts) count += some;
    out.Add(labels(entry), count);
  }
  out.BeginHistogram("spillway_api_request_seconds", "Time that the agent took to answer them.");
  for (const auto& entry : counters.api_requests)
    out.Add(labels(entry), kAnswerSeconds, entry.second.counts, entry.second.sum_ns);
}

void AddPlanning(const PlanningView& planning, Families& out) {
  out.BeginCounter("spillway_plan_requests_total",
                   "Plans that jobs asked for, by what became of it.");
  for (size_t i = 0; i < kPlanOutcomes; ++i)
    out.Add({{"result", kPlanOutcomeNames[i]}}, planning.outcomes[i]);
  out.BeginCounter("spillway_plan_recalls_total",
                   "Jobs that asked at their start for plans of earlier runs.");
  out.Add({{"result", "found"}}, planning.recalls_served);
  out.Add({{"result", "none"}}, planning.recalls_empty);
  out.BeginHistogram("spillway_plan_seconds",
                     "Time that processes took for a plan, or for failing at it.");
  out.Add({}, kPlanSeconds, planning.by_seconds, planning.planning_ns);
  out.BeginGauge("spillway_plan_requests",
                 "Requests that wait, or that a process is planning for.");
  out.Add({{"state", "waiting"}}, planning.waiting);
  out.Add({{"state", "running"}}, planning.running);
  out.Gauge("spillway_plan_given_bytes", "Plans that were handed out and are still open somewhere.",
            static_cast<double>(planning.given_bytes));
  out.Gauge("spillway_plan_store_size_bytes", "What kept plans may take on disk.",
            static_cast<double>(planning.store_most_bytes));
  out.Gauge("spillway_plan_store_used_bytes", "What kept plans take on disk.",
            static_cast<double>(planning.store_bytes));
  out.Gauge("spillway_plan_store_plans", "Plans that are kept.",
            static_cast<double>(planning.store_plans));
  out.BeginCounter("spillway_plan_store_discarded_total",
                   "Plans that are not kept any more, by why.");
  out.Add({{"reason", "damaged"}}, planning.store_damaged);
  out.Add({{"reason", "room"}}, planning.store_evicted);
  out.Counter("spillway_plan_store_write_failures_total", "Plans that the disk did not take.",
              planning.store_not_written);
}

}  // namespace

void AddNode(const NodeReport& report, const std::map<std::string, int64_t>& used_bytes,
             Families& out) {
  AddStanding(report, out);
  AddCounters(report.counters, out);
  AddRequests(report.counters, out);
  if (report.planning) AddPlanning(*report.planning, out);
  AddDevices(report, used_bytes, out);
}

}  // namespace spillway::agent
