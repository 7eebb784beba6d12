// The operator's settings of this node, with their defaults. They never change: a reload makes new
// ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/arbiter/arbiter.h"
#include "agent/turns/turns.h"

namespace spillway::agent {

// Terms of a job. An unset field comes from the rule before, and finally from the defaults.
struct TermsChange {
  std::optional<int64_t> guaranteed_bytes = {}, limit_bytes = {}, floor_bytes = {};
  std::optional<int64_t> host_guaranteed_bytes = {}, host_limit_bytes = {};
  std::optional<int64_t> link_guaranteed_permille = {}, link_limit_permille = {};
  std::optional<int64_t> workspace_limit_bytes = {};
  std::optional<int64_t> weight = {}, priority = {};
  std::optional<int64_t> turns = {};  // a TurnsChoice
  bool operator==(const TermsChange&) const = default;
};

inline constexpr int64_t kDefaultFloorBytes = int64_t{512} << 20;

// Applies to jobs with a matching name (`*` matches anything) and, if set, this user.
struct JobRule {
  std::string job = "*";
  std::optional<int64_t> uid;
  TermsChange terms;
  bool operator==(const JobRule&) const = default;
};

struct OwnerChange {
  std::optional<int64_t> guaranteed_bytes = {}, limit_bytes = {}, host_limit_bytes = {};
  std::optional<int64_t> weight = {}, jobs = {};
  bool operator==(const OwnerChange&) const = default;
};

struct UserRule {
  std::optional<int64_t> uid;  // unset: applies to each user
  OwnerChange terms;
  bool operator==(const UserRule&) const = default;
};

struct AccountSetting {
  std::string name;
  std::vector<int64_t> uids;
  OwnerChange terms;
  bool operator==(const AccountSetting&) const = default;
};

struct DeviceSetting {
  std::string uuid;                   // "GPU-..."; as `nvidia-smi -L` prints it
  int64_t memory_bytes = 0;           // or a share of what NVML reports
  std::optional<int64_t> turns = {};  // a TurnsChoice, for jobs whose terms have none
  bool operator==(const DeviceSetting&) const = default;
};

struct ConnectionLimits {
  int64_t sessions = 4096;
  int64_t sessions_per_user = 1024;
  int64_t connections_per_second_per_user = 200;
  int64_t messages_per_second = 500;  // per session; of questions: per operator user
  int64_t devices_per_session = 64;
  bool operator==(const ConnectionLimits&) const = default;
};

struct Config {
  std::string socket = "/run/spillway/agent.sock";
  int64_t socket_mode = 0666;
  std::string job_socket;  // path; empty: none
  std::string http;        // "127.0.0.1:9477"; empty: no HTTP server
  std::string log_level = "info";
  std::string log_format = "text";  // or "json"
  int64_t usage_interval_ms = 500;
  std::string state;               // file of the operators' settings; empty: beside the socket
  int64_t resume_ms = 3000;        // after a start, time for an earlier instance's jobs to return
  std::vector<int64_t> operators;  // uids beside root's and the agent's own

  std::string http_socket;  // path; empty: none
  int64_t http_socket_mode = 0660;
  std::string http_token_file, http_certificate, http_key;  // paths; empty: none
  bool http_open = false;  // an address beyond loopback needs no token

  bool find_devices = true;
  std::vector<DeviceSetting> devices;
  int64_t device_reserve_bytes = int64_t{512} << 20;  // of each device, outside budgets
  bool sets_hard_limits = false;  // of the driver's own, on the control groups of jobs
  int64_t hard_limit_reserve_bytes = int64_t{1} << 30;  // of each process, beside its budget
  int64_t host_bytes = 0;

  bool host_pool = true;
  int64_t slab_bytes = int64_t{64} << 20;
  int64_t spare_slab_bytes = 0;  // made ahead of demand
  int64_t device_factor = 16;  // a process's slabs: at most this many times its most device memory
  bool huge_pages = true;
  bool driver_slabs = false;  // slabs are memory allocated by the driver
  std::string spill_folder;   // for files of what waits long; empty: none
  int64_t spill_bytes = int64_t{64} << 30;
  int64_t spill_after_ms = 10'000;
  bool spill_in_memory = false;                 // the folder may lie in memory, for tests
  int64_t link_to_device_bytes_per_second = 0;  // 0: from the device's name, else no link shares
  int64_t link_to_host_bytes_per_second = 0;

  int64_t plan_workers = 2;  // processes that plan at once; 0: jobs plan for themselves
  int64_t plan_time_limit_ms = 60'000;
  int64_t plan_memory_bytes = int64_t{2} << 30;
  int64_t plan_queue_per_user = 16, plan_queue = 128;
  std::string plan_store;  // folder; empty: the service's state folder, else beside the socket
  int64_t plan_store_bytes = int64_t{1} << 30;

  int64_t return_within_ms = 2000;
  int64_t patience_s = 600;
  int64_t unused_ms = 10'000;  // then a process that holds nothing loses its claim
  int64_t step_bytes = int64_t{64} << 20;
  int64_t headroom_bytes = int64_t{256} << 20;

  int64_t turn_quantum_ms = 2000;
  int64_t turn_cost_factor = 8;
  int64_t turn_stuck_s = 60;

  TermsChange defaults = {.floor_bytes = kDefaultFloorBytes};
  std::vector<JobRule> rules;
  std::vector<UserRule> users;
  std::vector<AccountSetting> accounts;
  ConnectionLimits limits;

  bool operator==(const Config&) const = default;
};

ArbiterRules ArbiterRulesOf(const Config& config);
TurnRules TurnRulesOf(const Config& config);
// Whether any job may take turns.
bool AllowsTurns(const Config& config);

// A job's terms on such a device: the defaults, then the matching rules in their order.
Terms TermsFor(const Config& config, const std::string& job, int64_t uid, int64_t memory_bytes,
               int64_t host_bytes);

// No uid: the terms of an unknown user.
OwnerTerms UserTermsFor(const Config& config, std::optional<int64_t> uid, int64_t host_bytes);
OwnerTerms AccountTermsFor(const AccountSetting& account, int64_t host_bytes);
const AccountSetting* AccountOf(const Config& config, int64_t uid);

void ApplyTerms(const TermsChange& change, Terms& terms, int64_t memory_bytes, int64_t host_bytes);

// Whether only this machine's processes can connect to "127.0.0.1:9477". Names count as other
// machines', but for localhost.
bool IsLoopback(const std::string& address);

bool FitsPattern(const std::string& pattern, const std::string& text);

}  // namespace spillway::agent
