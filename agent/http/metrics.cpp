#include "agent/http/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <limits>

namespace spillway::agent {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr double kNs = 1e9;

class Families {
 public:
  void Begin(const char* name, MetricType type, const char* help) {
    families_.emplace_back();
    families_.back().name = name;
    families_.back().type = type;
    families_.back().help = help;
  }
  void Add(Labels labels, double value) {
    ClientMetric metric;
    metric.label = std::move(labels);
    (families_.back().type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    families_.back().metric.push_back(std::move(metric));
  }
  void Add(Labels labels, int64_t value) { Add(std::move(labels), static_cast<double>(value)); }
  void Add(MetricFamily family) { families_.push_back(std::move(family)); }
  void Gauge(const char* name, const char* help, double value) {
    Begin(name, MetricType::Gauge, help);
    Add({}, value);
  }
  void Counter(const char* name, const char* help, double value) {
    Begin(name, MetricType::Counter, help);
    Add({}, value);
  }
  std::vector<MetricFamily> Take() {
    std::erase_if(families_, [](const MetricFamily& family) { return family.metric.empty(); });
    return std::move(families_);
  }

 private:
  std::vector<MetricFamily> families_;
};

Labels With(Labels labels, const char* name, const char* value) {
  labels.push_back({name, value});
  return labels;
}

Labels Of(const DeviceReport& device) {
  return {{"gpu", std::to_string(device.number)}, {"uuid", device.uuid}};
}
Labels Of(const JobReport& job, const TenancyReport& tenancy) {
  return {{"job_id", job.name}, {"gpu", std::to_string(tenancy.device_number)}, {"uuid", tenancy.uuid}};
}

// Seconds since 1970 at which this process began: its age is counted in ticks since the machine's start.
double StartTimeSeconds() {
  FILE* stat = std::fopen("/proc/self/stat", "re");
  if (stat == nullptr) return 0;
  constexpr char kSkippedFields[] =
      "%*d (%*[^)]) %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu";
  unsigned long long started_ticks = 0;
  if (std::fscanf(stat, kSkippedFields, &started_ticks) != 1) started_ticks = 0;
  std::fclose(stat);
  timespec now{}, since_boot{};
  clock_gettime(CLOCK_REALTIME, &now);
  clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const auto seconds = [](const timespec& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / kNs;
  };
  return seconds(now) - seconds(since_boot) +
         static_cast<double>(started_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double OpenFiles() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  return error ? 0 : static_cast<double>(std::distance(begin(files), end(files)));
}

void AddProcess(Families& out) {
  static const double start_time_s = StartTimeSeconds();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + time.tv_usec / 1e6;
  };
  out.Counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
              seconds(used.ru_utime) + seconds(used.ru_stime));
  long pages = 0, resident_pages = 0;
  if (FILE* statm = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(statm, "%ld %ld", &pages, &resident_pages) != 2) resident_pages = 0;
    std::fclose(statm);
  }
  out.Gauge("process_resident_memory_bytes", "Resident memory size in bytes.",
            static_cast<double>(resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  out.Gauge("process_open_fds", "Number of open file descriptors.", OpenFiles());
  out.Gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
            start_time_s);
}

void AddDevices(const NodeReport& report, Families& out) {
  out.Begin("spillway_gpu_info", MetricType::Gauge, "Static facts about a device; always 1.");
  for (const DeviceReport& device : report.devices)
    out.Add(With(Of(device), "model", device.model.c_str()), 1.0);
  out.Begin("spillway_gpu_memory_size_bytes", MetricType::Gauge,
            "Device memory that can be promised to jobs.");
  for (const DeviceReport& device : report.devices) out.Add(Of(device), device.memory_bytes);
  out.Begin("spillway_gpu_memory_managed_bytes", MetricType::Gauge, "Device memory that jobs hold.");
  for (const DeviceReport& device : report.devices) out.Add(Of(device), device.resident_bytes);
  out.Begin("spillway_gpu_memory_budgeted_bytes", MetricType::Gauge,
            "Device memory that is promised to jobs.");
  for (const DeviceReport& device : report.devices) out.Add(Of(device), device.promised_bytes);
}

// Where nobody knows where a slab is, its node is "any".
void AddPoolNodes(const PoolView& pool, Families& out) {
  const auto name_of = [](int node) { return node == kAnyNode ? std::string("any") : std::to_string(node); };
  out.Begin("spillway_host_pool_size_bytes", MetricType::Gauge, "Slabs of the host pool, by NUMA node.");
  for (const auto& [node, view] : pool.by_node) out.Add({{"numa_node", name_of(node)}}, view.size_bytes);
  out.Begin("spillway_host_pool_used_bytes", MetricType::Gauge,
            "Of these, those that jobs have, by NUMA node.");
  for (const auto& [node, view] : pool.by_node) out.Add({{"numa_node", name_of(node)}}, view.used_bytes);
}

void AddNode(const NodeReport& report, Families& out) {
  out.Begin("spillway_build_info", MetricType::Gauge, "Version of the running agent; always 1.");
  out.Add({{"version", SPILLWAY_VERSION}}, 1.0);
  out.Gauge("spillway_config_last_reload_successful", "Whether the last reload was accepted.",
            report.last_reload_succeeded ? 1 : 0);
  out.Gauge("spillway_config_last_reload_success_timestamp_seconds",
            "When the configuration that holds was read, since unix epoch.", report.config_read_s);
  out.Gauge("spillway_host_memory_size_bytes", "Host memory that can be promised to jobs.",
            static_cast<double>(report.host_bytes));
  out.Gauge("spillway_host_memory_budgeted_bytes", "Host memory that is promised to jobs.",
            static_cast<double>(report.host_promised_bytes));
  if (report.pool) {
    const PoolView& pool = *report.pool;
    out.Begin("spillway_host_pool_bytes", MetricType::Gauge,
              "The host pool's slabs by what becomes of them: being made, unused, leased, kept for their "
              "job, ending.");
    out.Add({{"state", "making"}}, pool.making_bytes);
    out.Add({{"state", "unused"}}, pool.unused_bytes);
    out.Add({{"state", "leased"}}, pool.leased_bytes);
    out.Add({{"state", "kept"}}, pool.kept_bytes);
    out.Add({{"state", "ending"}}, pool.ending_bytes);
    AddPoolNodes(pool, out);
    out.Gauge("spillway_host_pool_unserved_bytes", "Asked for within quotas, and not there.",
              static_cast<double>(pool.unserved_bytes));
    out.Counter("spillway_host_pool_not_made_total", "Slabs for which there was no memory.",
                static_cast<double>(pool.not_made));
  }
  out.Gauge("spillway_sessions", "Connections of jobs and operators.", static_cast<double>(report.sessions));
  out.Gauge("spillway_draining", "Whether no new job may begin here.", report.draining ? 1 : 0);
  out.Gauge("spillway_resuming", "Whether jobs of an earlier agent are waited for.", report.resuming ? 1 : 0);
}

void AddCounters(const NodeCounters& counters, Families& out) {
  out.Begin("spillway_config_reloads_total", MetricType::Counter,
            "Times that the configuration was read again.");
  out.Add({{"result", "accepted"}}, counters.reloads);
  out.Add({{"result", "refused"}}, counters.failed_reloads);
  out.Counter("spillway_jobs_started_total", "Jobs that have begun.",
              static_cast<double>(counters.jobs_started));
  out.Counter("spillway_jobs_ended_total", "Jobs that have ended.", static_cast<double>(counters.jobs_ended));
  out.Begin("spillway_admissions_total", MetricType::Counter, "Decisions on jobs that asked for a device.");
  out.Add({{"result", "admitted"}}, counters.admitted);
  out.Add({{"result", "queued"}}, counters.queued);
  out.Add({{"result", "rejected"}}, counters.rejected);
  out.Begin("spillway_leases_reclaimed_total", MetricType::Counter,
            "Budgets taken back from processes that ended without releasing them.");
  out.Add({{"reason", "process_ended"}}, counters.reclaimed);
  out.Counter("spillway_grants_total", "Budgets told to processes.", static_cast<double>(counters.grants));
  out.Counter("spillway_revocations_total", "Budgets asked back.", static_cast<double>(counters.revocations));
  out.Counter("spillway_overdue_returns_total", "Budgets not given back by their deadline.",
              static_cast<double>(counters.overdue));
  out.Begin("spillway_connections_total", MetricType::Counter, "Connection attempts.");
  out.Add({{"result", "accepted"}}, counters.connections - counters.refused_connections);
  out.Add({{"result", "refused"}}, counters.refused_connections);
  out.Counter("spillway_faulty_frames_total", "Frames that were no message.",
              static_cast<double>(counters.faulty_frames));
}

MetricFamily PlanSecondsOf(const PlanningView& planning) {
  ClientMetric metric;
  uint64_t count = 0;
  for (size_t i = 0; i < planning.by_seconds.size(); ++i) {
    count += static_cast<uint64_t>(planning.by_seconds[i]);
    const bool is_last = i == kPlanSeconds.size();
    metric.histogram.bucket.push_back(
        {count, is_last ? std::numeric_limits<double>::infinity() : kPlanSeconds[i]});
  }
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = static_cast<double>(planning.planning_ns) / kNs;
  return {"spillway_plan_seconds",
          "Time that processes took for a plan, or for failing at it.",
          MetricType::Histogram,
          {metric}};
}

void AddPlanning(const PlanningView& planning, Families& out) {
  out.Begin("spillway_plan_requests_total", MetricType::Counter,
            "Plans that jobs asked for, by what became of it.");
  for (size_t i = 0; i < kPlanOutcomes; ++i)
    out.Add({{"result", kPlanOutcomeNames[i]}}, planning.outcomes[i]);
  out.Begin("spillway_plan_recalls_total", MetricType::Counter,
            "Jobs that asked at their start for plans of earlier runs.");
  out.Add({{"result", "found"}}, planning.recalls_served);
  out.Add({{"result", "none"}}, planning.recalls_empty);
  out.Add(PlanSecondsOf(planning));
  out.Begin("spillway_plan_requests", MetricType::Gauge,
            "Requests that wait, or that a process is planning for.");
  out.Add({{"state", "waiting"}}, planning.waiting);
  out.Add({{"state", "running"}}, planning.running);
  out.Gauge("spillway_plan_store_size_bytes", "What kept plans may take on disk.",
            static_cast<double>(planning.store_most_bytes));
  out.Gauge("spillway_plan_store_used_bytes", "What kept plans take on disk.",
            static_cast<double>(planning.store_bytes));
  out.Gauge("spillway_plan_store_plans", "Plans that are kept.", static_cast<double>(planning.store_plans));
  out.Begin("spillway_plan_store_discarded_total", MetricType::Counter,
            "Plans that are not kept any more, by why.");
  out.Add({{"reason", "damaged"}}, planning.store_damaged);
  out.Add({{"reason", "room"}}, planning.store_evicted);
  out.Counter("spillway_plan_store_write_failures_total", "Plans that the disk did not take.",
              static_cast<double>(planning.store_not_written));
}

// The states that a job can be in on a device, as labels; each has a series, so that none goes missing.
constexpr const char* kPhases[] = {"waiting", "learning", "planned", "reactive", "passthrough", "rejected"};

std::string_view PhaseOf(const TenancyReport& tenancy) {
  if (tenancy.view.state == TenancyState::kRejected) return kPhases[5];
  if (tenancy.view.state != TenancyState::kAdmitted) return kPhases[0];
  return kPhases[static_cast<size_t>(tenancy.phase)];
}

template <class Visit>
void ForEachTenancy(const NodeReport& report, Visit visit) {
  for (const JobReport& job : report.jobs) {
    for (const TenancyReport& tenancy : job.tenancies) visit(job, tenancy);
  }
}

void AddPhases(const NodeReport& report, Families& out) {
  out.Begin("spillway_jobs", MetricType::Gauge, "Jobs by phase, on each device that they use.");
  for (std::string_view phase : kPhases) {
    int64_t count = 0;
    ForEachTenancy(report,
                   [&](const auto&, const auto& tenancy) { count += PhaseOf(tenancy) == phase ? 1 : 0; });
    out.Add({{"phase", std::string(phase)}}, count);
  }
  out.Begin("spillway_job_phase", MetricType::Gauge, "1 for the current phase, 0 for the others.");
  ForEachTenancy(report, [&](const JobReport& job, const TenancyReport& tenancy) {
    for (const char* phase : kPhases)
      out.Add(With(Of(job, tenancy), "phase", phase), PhaseOf(tenancy) == phase ? 1.0 : 0.0);
  });
}

struct JobValue {
  const char* name;
  MetricType type;
  const char* help;
  double (*value)(const TenancyReport&);
};

constexpr JobValue kJobValues[] = {
    {"spillway_job_memory_budget_bytes", MetricType::Gauge, "Device memory that the job may hold.",
     [](const TenancyReport& t) { return static_cast<double>(t.view.granted_bytes); }},
    {"spillway_job_memory_guaranteed_bytes", MetricType::Gauge,
     "Device memory that is guaranteed to the job.",
     [](const TenancyReport& t) { return static_cast<double>(t.view.terms.memory.guaranteed); }},
    {"spillway_job_memory_resident_bytes", MetricType::Gauge, "Device memory that the job holds.",
     [](const TenancyReport& t) { return static_cast<double>(t.resident_bytes); }},
    {"spillway_job_memory_footprint_bytes", MetricType::Gauge,
     "Device memory that the program has allocated.",
     [](const TenancyReport& t) { return static_cast<double>(t.view.wanted_bytes); }},
    {"spillway_job_memory_host_budget_bytes", MetricType::Gauge, "Host memory that the job's data may take.",
     [](const TenancyReport& t) { return static_cast<double>(t.view.host_granted_bytes); }},
    {"spillway_job_link_share_ratio", MetricType::Gauge, "Share of the link between host and device.",
     [](const TenancyReport& t) { return static_cast<double>(t.view.link_permille) / 1000; }},
    {"spillway_job_memory_host_bytes", MetricType::Gauge, "Host memory that holds the job's data.",
     [](const TenancyReport& t) { return static_cast<double>(t.host_bytes); }},
    {"spillway_job_stall_seconds_total", MetricType::Counter, "Time in which the program waited for memory.",
     [](const TenancyReport& t) { return static_cast<double>(t.stall_ns) / kNs; }},
    {"spillway_job_steps_total", MetricType::Counter, "Recognised iterations.",
     [](const TenancyReport& t) { return static_cast<double>(t.iterations); }},
    {"spillway_job_demand_fetches_total", MetricType::Counter,
     "Allocations brought back by the call that needed them.",
     [](const TenancyReport& t) { return static_cast<double>(t.demand_fetches); }},
    {"spillway_job_allocation_failures_total", MetricType::Counter, "Allocations refused.",
     [](const TenancyReport& t) { return static_cast<double>(t.refused_allocations); }},
};

void AddJobs(const NodeReport& report, Families& out) {
  out.Begin("spillway_job_info", MetricType::Gauge, "Facts about a job; always 1.");
  for (const JobReport& job : report.jobs) {
    out.Add({{"job_id", job.name},
             {"user", std::to_string(job.uid)},
             {"command", job.command},
             {"source", job.source}},
            1.0);
  }
  out.Begin("spillway_job_processes", MetricType::Gauge, "Processes of a job, by their connection.");
  for (const JobReport& job : report.jobs) {
    out.Add({{"job_id", job.name}, {"state", "connected"}},
            static_cast<int64_t>(job.processes - job.detached_processes));
    out.Add({{"job_id", job.name}, {"state", "detached"}}, static_cast<int64_t>(job.detached_processes));
  }
  for (const JobValue& value : kJobValues) {
    out.Begin(value.name, value.type, value.help);
    ForEachTenancy(report, [&](const JobReport& job, const TenancyReport& tenancy) {
      out.Add(Of(job, tenancy), value.value(tenancy));
    });
  }
  out.Begin("spillway_job_transfer_bytes_total", MetricType::Counter, "Bytes moved between device and host.");
  ForEachTenancy(report, [&](const JobReport& job, const TenancyReport& tenancy) {
    out.Add(With(Of(job, tenancy), "direction", "to_host"), tenancy.to_host_bytes);
    out.Add(With(Of(job, tenancy), "direction", "to_device"), tenancy.to_device_bytes);
  });
}

}  // namespace

std::string MetricsOf(const NodeReport& report) {
  Families families;
  AddProcess(families);
  AddNode(report, families);
  AddCounters(report.counters, families);
  if (report.planning) AddPlanning(*report.planning, families);
  AddDevices(report, families);
  AddPhases(report, families);
  AddJobs(report, families);
  return prometheus::TextSerializer().Serialize(families.Take());
}

}  // namespace spillway::agent
