#include "agent/http/families.h"

namespace spillway::agent {
namespace {

constexpr double kNs = 1e9;

// Labels that join our series with those of other exporters. Local jobs have none.
Labels WithSource(Labels labels, const JobReport& job) {
  constexpr const char* names[] = {"", "hpc_job", "pod_uid", "container_id"};
  if (job.source == JobSource::kLocal) return labels;
  return With(std::move(labels), names[static_cast<size_t>(job.source)], job.source_id);
}

Labels Of(const JobReport& job, const TenancyReport& tenancy) {
  return WithSource({{"job_id", job.name},
                     {"gpu", std::to_string(tenancy.device_number)},
                     {"uuid", tenancy.uuid}},
                    job);
}

Labels Of(const JobReport& job, const std::string& part) {
  const char* const name = job.source == JobSource::kSlurm ? "hpc_step" : "container_id";
  Labels labels = WithSource({{"job_id", job.name}}, job);
  return part.empty() ? labels : With(std::move(labels), name, part);
}

// Every phase has a series, so that none goes missing.
constexpr const char* kPhases[] = {"waiting",  "learning",    "planned",
                                   "reactive", "passthrough", "rejected"};

std::string_view PhaseOf(const TenancyReport& tenancy) {
  if (tenancy.view.state == TenancyState::kRejected) return kPhases[5];
  if (tenancy.view.state != TenancyState::kAdmitted) return kPhases[0];
  return kPhases[static_cast<size_t>(tenancy.phase)];
}

template <class Visit>
void ForEachTenancy(const NodeReport& report, Visit visit) {
  for (const JobReport& job : report.jobs) {
    for (const TenancyReport& tenancy : job.tenancies) visit(tenancy, Of(job, tenancy));
  }
}

void AddPhases(const NodeReport& report, Families& out) {
  out.BeginGauge("spillway_jobs", "Jobs by phase, on each device that they use.");
  for (std::string_view phase : kPhases) {
    int64_t count = 0;
    ForEachTenancy(report, [&](const TenancyReport& tenancy, const Labels&) {
      count += PhaseOf(tenancy) == phase ? 1 : 0;
    });
    out.Add({{"phase", std::string(phase)}}, count);
  }
  out.BeginGauge("spillway_job_phase", "1 for the current phase, 0 for the others.");
  ForEachTenancy(report, [&](const TenancyReport& tenancy, const Labels& labels) {
    for (const char* phase : kPhases)
      out.Add(With(labels, "phase", phase), PhaseOf(tenancy) == phase ? 1.0 : 0.0);
  });
}

struct JobValue {
  const char* name;
  bool is_counter;
  const char* help;
  double (*value)(const TenancyReport&);
};

constexpr JobValue kJobValues[] = {
    {"spillway_job_memory_budget_bytes", false, "Device memory that the job may hold.",
     [](const TenancyReport& t) { return static_cast<double>(t.view.granted_bytes); }},
    {"spillway_job_memory_guaranteed_bytes", false, "Device memory that is guaranteed to the job.",
     [](const TenancyReport& t) { return static_cast<double>(t.view.terms.memory.guaranteed); }},
    {"spillway_job_memory_resident_bytes", false, "Device memory that the job holds.",
     [](const TenancyReport& t) { return static_cast<double>(t.resident_bytes); }},
    {"spillway_job_memory_footprint_bytes", false, "Device memory that the program has allocated.",
     [](const TenancyReport& t) { return static_cast<double>(t.footprint_bytes); }},
    {"spillway_job_memory_unmovable_bytes", false, "Of it, memory that cannot be evicted.",
     [](const TenancyReport& t) { return static_cast<double>(t.unmovable_bytes); }},
    {"spillway_job_memory_host_budget_bytes", false,
     "Pinned host memory that the job's data may take.",
     [](const TenancyReport& t) { return static_cast<double>(t.view.host_granted_bytes); }},
    {"spillway_job_memory_host_bytes", false, "Pinned host memory that holds the job's data.",
     [](const TenancyReport& t) { return static_cast<double>(t.host_bytes); }},
    {"spillway_job_memory_ordinary_bytes", false,
     "Host memory that is not pinned and holds the job's data, for lack of quota.",
     [](const TenancyReport& t) { return static_cast<double>(t.parts.ordinary_bytes); }},
    {"spillway_job_link_share_ratio", false, "Share of the link between host and device.",
     [](const TenancyReport& t) { return static_cast<double>(t.view.link_permille) / 1000; }},
    {"spillway_job_hard_limit_bytes", false,
     "The driver's hard limit that the agent set above the job's budget; 0: none.",
     [](const TenancyReport& t) { return static_cast<double>(t.hard_limit_bytes.value_or(0)); }},
    {"spillway_job_workspace_idle_bytes", false,
     "Device memory of idle convolution workspaces, which leaves first.",
     [](const TenancyReport& t) { return static_cast<double>(t.idle_workspace_bytes); }},
    {"spillway_job_workspace_dropped_bytes_total", true,
     "Idle convolution workspaces given up without a copy.",
     [](const TenancyReport& t) { return static_cast<double>(t.dropped_workspace_bytes); }},
    {"spillway_job_other_algorithms_total", true,
     "cuDNN operations whose first choice was hidden, as its workspace was too large.",
     [](const TenancyReport& t) { return static_cast<double>(t.other_algorithms); }},
    {"spillway_job_turn_running", false, "Whether the job has its turn on a device in turns.",
     [](const TenancyReport& t) { return t.turn.standing == TurnStanding::kRuns ? 1.0 : 0.0; }},
    {"spillway_job_turn_waiting", false, "Whether the job waits for its turn on the device.",
     [](const TenancyReport& t) { return t.turn.standing == TurnStanding::kWaits ? 1.0 : 0.0; }},
    {"spillway_job_turn_level", false,
     "How far the job is from interactive, 0, to background, 4, by its use of turns.",
     [](const TenancyReport& t) { return static_cast<double>(t.turn.level); }},
    {"spillway_job_turns_total", true, "Turns that began after a wait.",
     [](const TenancyReport& t) { return static_cast<double>(t.turns_begun); }},
    {"spillway_job_turn_wait_seconds_total", true, "Time in which calls waited for a turn.",
     [](const TenancyReport& t) { return static_cast<double>(t.turn_waited_ns) / kNs; }},
    {"spillway_job_steps_total", true, "Recognised iterations.",
     [](const TenancyReport& t) { return static_cast<double>(t.iterations); }},
    {"spillway_job_missed_steps_total", true,
     "Iterations that began after events unknown to their plan.",
     [](const TenancyReport& t) { return static_cast<double>(t.plans.missed_iterations); }},
    {"spillway_job_changed_by_content_bytes_total", true,
     "Evicted data that was copied, as its fingerprint had changed.",
     [](const TenancyReport& t) { return static_cast<double>(t.plans.changed_by_content_bytes); }},
    {"spillway_job_recomputes_total", true, "Launches repeated to recompute dropped data.",
     [](const TenancyReport& t) { return static_cast<double>(t.plans.recomputes); }},
    {"spillway_job_recomputed_bytes_total", true, "Data that repeated launches made.",
     [](const TenancyReport& t) { return static_cast<double>(t.plans.recomputed_bytes); }},
    {"spillway_job_mismatched_recomputes_total", true,
     "Repeated launches that made other bytes than before.",
     [](const TenancyReport& t) { return static_cast<double>(t.plans.mismatched_recomputes); }},
    {"spillway_job_fingerprinted_bytes_total", true, "Device memory read for fingerprints.",
     [](const TenancyReport& t) { return static_cast<double>(t.plans.fingerprinted_bytes); }},
    {"spillway_job_fingerprint_seconds_total", true,
     "The device's time for fingerprints, an estimate.",
     [](const TenancyReport& t) { return static_cast<double>(t.plans.fingerprint_ns) / kNs; }},
    {"spillway_job_experiments_total", true,
     "Experiments around launches of kernels that nobody documents.",
     [](const TenancyReport& t) { return static_cast<double>(t.plans.experiments); }},
    {"spillway_job_refuted_operations_total", true,
     "Operations that were found not to make the same bytes again.",
     [](const TenancyReport& t) { return static_cast<double>(t.plans.refuted_operations); }},
    {"spillway_job_insured_recomputes_total", true,
     "Repeated launches with a host copy beside them.",
     [](const TenancyReport& t) { return static_cast<double>(t.plans.insured_recomputes); }},
    {"spillway_job_spilled_bytes", false, "Evicted data in the job's file, not in host memory.",
     [](const TenancyReport& t) { return static_cast<double>(t.spill.stored_bytes); }},
    {"spillway_job_spill_written_bytes_total", true, "Evicted data written to the job's file.",
     [](const TenancyReport& t) { return static_cast<double>(t.spill.written_bytes); }},
    {"spillway_job_spill_read_bytes_total", true, "Evicted data read from the job's file.",
     [](const TenancyReport& t) { return static_cast<double>(t.spill.read_bytes); }},
    {"spillway_job_spill_failures_total", true, "Writes and reads of the job's file that failed.",
     [](const TenancyReport& t) { return static_cast<double>(t.spill.failures); }},
    {"spillway_job_resident_twice_bytes", false,
     "Data on the device that has a copy in host memory.",
     [](const TenancyReport& t) { return static_cast<double>(t.spill.resident_twice_bytes); }},
    {"spillway_job_spare_copies_released_bytes_total", true,
     "Copies in host memory of data on the device that were given up because nothing was evicted.",
     [](const TenancyReport& t) { return static_cast<double>(t.spill.released_bytes); }},
    {"spillway_job_demand_fetches_total", true,
     "Allocations brought back by the call that needed them.",
     [](const TenancyReport& t) { return static_cast<double>(t.demand_fetches); }},
    {"spillway_job_allocations_over_budget_total", true,
     "Allocations that fit only because memory was virtualised.",
     [](const TenancyReport& t) { return static_cast<double>(t.parts.over_budget_allocations); }},
    {"spillway_job_allocation_failures_total", true, "Allocations refused.",
     [](const TenancyReport& t) { return static_cast<double>(t.refused_allocations); }},
};

// Jobs without a limit have no series.
void AddWorkspaceLimits(const NodeReport& report, Families& out) {
  out.BeginGauge("spillway_job_workspace_limit_bytes",
                 "The most device memory that one convolution workspace of the job may take.");
  ForEachTenancy(report, [&](const TenancyReport& tenancy, const Labels& labels) {
    if (const auto limit_bytes = tenancy.WorkspaceLimitBytes()) out.Add(labels, *limit_bytes);
  });
}

void AddHardLimits(const NodeReport& report, Families& out) {
  out.BeginGauge("spillway_hard_limits",
                 "Hard limits of the driver's that the agent asked for, by what became of them.");
  const std::array<int64_t, kLimitStates> counts =
      report.hard_limits.value_or(std::array<int64_t, kLimitStates>{});
  for (size_t i = 0; i < kLimitStates; ++i) out.Add({{"state", kLimitStateNames[i]}}, counts[i]);
}

void AddValues(const NodeReport& report, Families& out) {
  for (const JobValue& value : kJobValues) {
    value.is_counter ? out.BeginCounter(value.name, value.help)
                     : out.BeginGauge(value.name, value.help);
    ForEachTenancy(report, [&](const TenancyReport& tenancy, const Labels& labels) {
      out.Add(labels, value.value(tenancy));
    });
  }
}

// A job whose protocol reports only the sums has the cause "unknown".
void AddTransfers(const NodeReport& report, Families& out) {
  out.BeginCounter("spillway_job_transfer_bytes_total",
                   "Bytes moved between device and host, by why.");
  ForEachTenancy(report, [&](const TenancyReport& tenancy, const Labels& labels) {
    const auto add = [&](const char* direction, const char* cause, int64_t bytes) {
      out.Add(With(With(labels, "direction", direction), "cause", cause), bytes);
    };
    const protocol::Account& parts = tenancy.parts;
    add("to_host", "planned", parts.planned_to_host_bytes);
    add("to_host", "pressure", parts.pressure_to_host_bytes);
    add("to_device", "planned", parts.planned_to_device_bytes);
    add("to_device", "demand", parts.demand_to_device_bytes);
    if (tenancy.unparted_to_host_bytes > 0)
      add("to_host", "unknown", tenancy.unparted_to_host_bytes);
    if (tenancy.unparted_to_device_bytes > 0)
      add("to_device", "unknown", tenancy.unparted_to_device_bytes);
  });
  out.BeginCounter("spillway_job_stall_seconds_total",
                   "Time in which the program waited for memory, by why.");
  ForEachTenancy(report, [&](const TenancyReport& tenancy, const Labels& labels) {
    const auto add = [&](const char* cause, int64_t stall_ns) {
      out.Add(With(labels, "cause", cause), static_cast<double>(stall_ns) / kNs);
    };
    for (size_t i = 0; i < protocol::kStallCauseNames.size(); ++i)
      add(protocol::kStallCauseNames[i], tenancy.parts.stall_ns[i]);
    if (tenancy.unparted_stall_ns > 0) add("unknown", tenancy.unparted_stall_ns);
  });
}

void AddPlans(const NodeReport& report, Families& out) {
  out.BeginHistogram("spillway_job_step_seconds",
                     "How long the iterations took that followed a plan.");
  ForEachTenancy(report, [&](const TenancyReport& tenancy, const Labels& labels) {
    out.Add(labels, protocol::kStepSeconds, tenancy.steps.counts, tenancy.steps.sum_ns);
  });
  out.BeginCounter("spillway_job_prefetches_total",
                   "Allocations that a plan asked for, by outcome.");
  ForEachTenancy(report, [&](const TenancyReport& tenancy, const Labels& labels) {
    out.Add(With(labels, "result", "hit"), tenancy.parts.prefetch_hits);
    out.Add(With(labels, "result", "late"), tenancy.parts.prefetches_late);
    out.Add(With(labels, "result", "unused"), tenancy.parts.prefetches_unused);
  });
  out.BeginCounter("spillway_job_uncopied_bytes_total", "Data evicted without a copy, by why.");
  ForEachTenancy(report, [&](const TenancyReport& tenancy, const Labels& labels) {
    out.Add(With(labels, "reason", "clean"), tenancy.plans.clean_bytes);
    out.Add(With(labels, "reason", "clean_by_content"), tenancy.plans.clean_by_content_bytes);
    out.Add(With(labels, "reason", "recomputable"), tenancy.plans.recomputable_bytes);
  });
  out.BeginCounter("spillway_job_replans_total", "Plans in the place of others, by why.");
  ForEachTenancy(report, [&](const TenancyReport& tenancy, const Labels& labels) {
    for (size_t i = 0; i < protocol::kReplanReasonNames.size(); ++i)
      out.Add(With(labels, "reason", protocol::kReplanReasonNames[i]), tenancy.parts.replans[i]);
  });
}

void AddFacts(const NodeReport& report, Families& out) {
  out.BeginGauge("spillway_job_info", "Facts about a job; always 1.");
  for (const JobReport& job : report.jobs) {
    out.Add(WithSource({{"job_id", job.name},
                        {"user", std::to_string(job.uid)},
                        {"command", job.command},
                        {"source", NameOf(job.source)}},
                       job),
            1.0);
  }
  out.BeginGauge("spillway_job_processes",
                 "Processes of a job, by their part of it and their connection.");
  for (const JobReport& job : report.jobs) {
    for (const auto& [part, processes] : job.parts) {
      const Labels labels = Of(job, part);
      out.Add(With(labels, "state", "connected"),
              static_cast<int64_t>(processes.all - processes.detached));
      out.Add(With(labels, "state", "detached"), static_cast<int64_t>(processes.detached));
    }
  }
}

}  // namespace

void AddJobs(const NodeReport& report, Families& out) {
  AddPhases(report, out);
  AddFacts(report, out);
  AddValues(report, out);
  AddWorkspaceLimits(report, out);
  AddHardLimits(report, out);
  AddTransfers(report, out);
  AddPlans(report, out);
}

}  // namespace spillway::agent
