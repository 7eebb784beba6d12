// What the operator has decided about this node: plain values, with what holds when nothing is
// said.
//
// Made by config_file.h from files, or by hand in tests; read by all rooms of the agent. Never
// changes: a reload makes another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/arbiter/arbiter.h"

namespace spillway::agent {

// Sizes are bytes or shares, see BytesOf.

// Terms of a job; what is unset is taken from the rule before, at last from the defaults.
struct TermsChange {
  std::optional<int64_t> guaranteed_bytes = {}, limit_bytes = {}, floor_bytes = {};
  std::optional<int64_t> host_guaranteed_bytes = {}, host_limit_bytes = {};
  std::optional<int64_t> link_guaranteed_permille = {}, link_limit_permille = {};
  std::optional<int64_t> weight = {}, priority = {};
  bool operator==(const TermsChange&) const = default;
};

// The device memory without which a job cannot run, where nobody sets another floor.
inline constexpr int64_t kDefaultFloorBytes = int64_t{512} << 20;

// Applies to jobs whose name the pattern fits (`*` stands for anything) and whose user it is, where
// one is given.
struct JobRule {
  std::string job = "*";
  std::optional<int64_t> uid;
  TermsChange terms;
  bool operator==(const JobRule&) const = default;
};

// Terms of a user, or of an account, for all its jobs together.
struct OwnerChange {
  std::optional<int64_t> guaranteed_bytes = {}, limit_bytes = {}, host_limit_bytes = {};
  std::optional<int64_t> weight = {}, jobs = {};
  bool operator==(const OwnerChange&) const = default;
};

struct UserRule {
  std::optional<int64_t> uid;  // none: every user, each for itself
  OwnerChange terms;
  bool operator==(const UserRule&) const = default;
};

// Users who share among themselves what the account has.
struct AccountSetting {
  std::string name;
  std::vector<int64_t> uids;
  OwnerChange terms;
  bool operator==(const AccountSetting&) const = default;
};

struct DeviceSetting {
  std::string uuid;          // "GPU-..."; as nvidia-smi -L says
  int64_t memory_bytes = 0;  // or a share of what NVML says
  bool operator==(const DeviceSetting&) const = default;
};

struct ConnectionLimits {
  int64_t sessions = 4096;
  int64_t sessions_per_user = 1024;
  int64_t connections_per_second_per_user = 200;
  int64_t messages_per_second =
      500;  // of one session; questions: of all operators' sessions of a user
  int64_t devices_per_session = 64;
  bool operator==(const ConnectionLimits&) const = default;
};

struct Config {
  std::string socket = "/run/spillway/agent.sock";
  int64_t socket_mode = 0666;
  std::string http;  // "127.0.0.1:9477"; empty: no pages
  std::string log_level = "info";
  int64_t usage_interval_ms = 500;
  std::string state;         // file of what operators have set; empty: beside the socket
  int64_t resume_ms = 3000;  // after a start, time for jobs of an earlier instance to come back
  std::vector<int64_t> operators;  // uids beside root's and the agent's own

  bool find_devices = true;  // ask NVML
  std::vector<DeviceSetting> devices;
  int64_t device_reserve_bytes = int64_t{512} << 20;  // of each device, for what no budget sees
  int64_t host_bytes = 0;  // for what is away; 0: half of the machine's memory

  bool host_pool = true;  // lend jobs slabs of it
  int64_t slab_bytes = int64_t{64} << 20;
  int64_t spare_slab_bytes = 0;  // made before somebody asks
  int64_t device_factor =
      16;  // slabs of a process: so many times the device memory that it has held
  bool huge_pages = true;
  bool driver_slabs = false;                    // slabs are memory that the driver makes
  int64_t link_to_device_bytes_per_second = 0;  // 0: by the device's name, else nobody waits
  int64_t link_to_host_bytes_per_second = 0;

  int64_t plan_workers = 2;  // processes that plan at once; 0: jobs plan for themselves
  int64_t plan_time_limit_ms = 60'000;
  int64_t plan_memory_bytes = int64_t{2} << 30;
  int64_t plan_queue_per_user = 16, plan_queue = 128;
  std::string plan_store;  // folder; empty: the service's state folder, else beside the socket
  int64_t plan_store_bytes = int64_t{1} << 30;

  int64_t return_within_ms = 2000;
  int64_t patience_s = 600;
  int64_t unused_ms = 10'000;  // after which a process that holds nothing has no claim
  int64_t step_bytes = int64_t{64} << 20;
  int64_t headroom_bytes = int64_t{256} << 20;

  TermsChange defaults = {.floor_bytes = kDefaultFloorBytes};
  std::vector<JobRule> rules;
  std::vector<UserRule> users;
  std::vector<AccountSetting> accounts;
  ConnectionLimits limits;

  bool operator==(const Config&) const = default;
};

ArbiterRules ArbiterRulesOf(const Config& config);

// What a job may have on a device of so much memory, by the defaults and the rules that fit, in
// their order.
Terms TermsFor(const Config& config, const std::string& job, int64_t uid, int64_t memory_bytes,
               int64_t host_bytes);

// Of a user by the entries that fit, in their order; no uid: of who is known by no user of the
// node's.
OwnerTerms UserTermsFor(const Config& config, std::optional<int64_t> uid, int64_t host_bytes);
OwnerTerms AccountTermsFor(const AccountSetting& account, int64_t host_bytes);
// The account of a user; null: none.
const AccountSetting* AccountOf(const Config& config, int64_t uid);

// `memory_bytes` and `host_bytes` are what shares are of.
void ApplyTerms(const TermsChange& change, Terms& terms, int64_t memory_bytes, int64_t host_bytes);

bool FitsPattern(const std::string& pattern, const std::string& text);

}  // namespace spillway::agent
