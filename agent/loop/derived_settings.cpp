#include "agent/loop/derived_settings.h"

#include <stdlib.h>
#include <sys/sysinfo.h>

#include "agent/arbiter/amounts.h"

namespace spillway::agent {

int64_t HostBytes(const Config& config) {
  if (config.host_bytes > 0) return config.host_bytes;
  struct sysinfo machine {};
  sysinfo(&machine);
  constexpr int64_t half = -kWholeInMillionths / 2;
  return BytesOf(config.host_bytes < 0 ? config.host_bytes : half,
                 static_cast<int64_t>(machine.totalram) * machine.mem_unit);
}

// Beside the socket (in /run), the file lives as long as jobs can: until the next boot.
std::string StatePathOf(const Config& config) {
  if (!config.state.empty() || config.socket.starts_with('@')) return config.state;
  return config.socket + ".state";
}

// systemd's STATE_DIRECTORY survives reboots.
std::string PlanStoreOf(const Config& config) {
  if (!config.plan_store.empty()) return config.plan_store;
  const char* const state_folder = getenv("STATE_DIRECTORY");
  if (state_folder != nullptr && *state_folder != 0) return std::string(state_folder) + "/plans";
  return config.socket.starts_with('@') ? "" : config.socket + ".plans";
}

PlanServiceRules PlanServiceRulesOf(const Config& config) {
  return {config.plan_workers,      config.plan_time_limit_ms * 1'000'000,
          config.plan_memory_bytes, config.plan_queue_per_user,
          config.plan_queue,        config.plan_store_bytes};
}

}  // namespace spillway::agent
