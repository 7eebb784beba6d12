// The agent's visible state at one moment, for pages, metrics and the command.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/arbiter/arbiter.h"
#include "agent/identity/control_group.h"
#include "agent/node/durations.h"
#include "agent/node/hard_limits.h"
#include "agent/node/planning.h"
#include "agent/pool/pool.h"
#include "agent/turns/turns.h"
#include "protocol/message.h"

namespace spillway::agent {

struct UnmanagedProcess {
  pid_t pid = 0;
  std::string command;  // empty: unknown
  int64_t bytes = 0;    // beside what it reports
};
inline constexpr size_t kMostUnmanagedShown = 16;

struct DeviceReport {
  uint32_t number = 0;
  std::string uuid;
  std::string model;
  int64_t memory_bytes = 0;  // that may be budgeted
  int64_t budgeted_bytes = 0;
  int64_t resident_bytes = 0;  // as jobs report
  std::string bus_id = {};
  int numa_node = kAnyNode;
  bool is_found = true;  // false: configured, but unknown to NVML
  DeviceTurnView turns = {};
  // Of processes that bypass the agent, by the driver's count; nullopt: it does not tell.
  std::optional<int64_t> unmanaged_bytes = {};
  std::vector<UnmanagedProcess> unmanaged = {};  // the largest, by size
};

// One job on one device, all its processes together.
struct TenancyReport {
  TenancyView view;
  uint32_t device_number = 0;
  std::string uuid;
  protocol::Phase phase = protocol::Phase::kReactive;
  int64_t resident_bytes = 0, host_bytes = 0, unmovable_bytes = 0;
  int64_t to_host_bytes = 0, to_device_bytes = 0, stall_ns = 0, iterations = 0;
  int64_t demand_fetches = 0, refused_allocations = 0;
  // Parts come from processes that report them; unparted_ has the sums of the others.
  protocol::Account parts;
  protocol::StepTimes steps;
  int64_t idle_workspace_bytes = 0, dropped_workspace_bytes = 0, other_algorithms = 0;
  protocol::PlanUse plans;
  protocol::SpillUse spill;
  // view.wanted_bytes is more while that may still grow.
  int64_t footprint_bytes = 0;
  int64_t unparted_to_host_bytes = 0, unparted_to_device_bytes = 0, unparted_stall_ns = 0;
  // Whose reports the sums above have, once for each kind. While it is the same, they grow only by
  // what happens.
  std::vector<SessionId> reporters;

  // Of the driver's hard limits that the agent set on the job's control groups, together; nullopt:
  // none. The state: the gravest of theirs.
  std::optional<int64_t> hard_limit_bytes = {};
  std::optional<LimitState> hard_limit_state = {};

  TurnView turn;
  int64_t turn_waited_ns = 0, turns_begun = 0;

  // Of one workspace; nothing: any size.
  std::optional<int64_t> WorkspaceLimitBytes() const {
    const int64_t bytes = view.terms.workspace_limit;
    return bytes < protocol::kMostBytes ? std::optional(bytes) : std::nullopt;
  }
};

struct ProcessCount {
  size_t all = 0, detached = 0;  // detached: alive, without a connection
};

struct JobReport {
  std::string name, command;
  JobSource source = JobSource::kLocal;
  std::string source_id;
  std::map<std::string, ProcessCount> parts;  // by Slurm step or pod container
  uint32_t uid = 0;
  int64_t age_ns = 0;
  bool is_logged = true;  // false: its user causes too many lines
  ProcessCount processes;
  std::optional<int32_t> exit_code;  // last one reported
  std::vector<TenancyReport> tenancies;
};

struct OwnerUse {
  uint32_t device_number = 0;
  std::string uuid = {};
  int64_t granted_bytes = 0, wanted_bytes = 0;
  int64_t guaranteed_bytes = 0, limit_bytes = 0;  // of this device; no limit: all of it
};

struct OwnerReport {
  std::string name;     // "user-1001", "pod-1f2e...", "account-physics"
  std::string account;  // of a user; empty: none
  OwnerTerms terms;
  int64_t jobs = 0, waiting_jobs = 0;
  int64_t host_granted_bytes = 0;
  std::vector<OwnerUse> devices = {};
};

struct NodeCounters {
  int64_t admitted = 0, queued = 0, rejected = 0;
  int64_t grants = 0, revocations = 0, overdue = 0;
  int64_t jobs_started = 0, jobs_ended = 0, reclaimed = 0;
  Durations<kWaitSeconds> admission_waits;
  std::map<std::pair<std::string, std::string>, Durations<kAnswerSeconds>> api_requests;
  int64_t connections = 0, refused_connections = 0, faulty_frames = 0, reloads = 0,
          failed_reloads = 0;
};

struct AllocationReport {
  std::string name;
  size_t jobs = 0;  // that may use its socket
};

struct NodeReport {
  uint64_t instance = 0;
  int64_t up_ns = 0;
  bool draining = false, resuming = false, last_reload_succeeded = true;
  double config_read_s = 0;  // since 1970; set by the loop
  int64_t host_bytes = 0, host_budgeted_bytes = 0;
  int64_t spill_bytes = 0, spill_used_bytes = 0;  // the quota for files of evicted memory, and use
  std::optional<PoolView> pool;                   // nullopt: no host pool
  std::optional<PlanningView> planning;
  // How many by their state, pending first; nullopt: the agent sets none.
  std::optional<std::array<int64_t, kLimitStates>> hard_limits = {};
  size_t sessions = 0;
  std::vector<DeviceReport> devices;
  std::vector<std::string> unknown_devices;  // requested by jobs, unknown to the agent; bounded
  std::vector<AllocationReport> allocations = {};  // that have a socket of their own
  std::vector<std::string> waiting_pods = {};      // uids; refused at one of these sockets just now
  std::vector<JobReport> jobs;
  std::vector<OwnerReport> owners;
  NodeCounters counters;
};

}  // namespace spillway::agent
