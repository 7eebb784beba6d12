#include "simulator/driver/machine/statistics.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/environment.h"
#include "base/file.h"
#include "base/json_text.h"
#include "simulator/driver/machine/kernel_names.h"
#include "simulator/driver/machine/process.h"

namespace spillway::simulator {
namespace {

using base::JsonQuoted;

constexpr std::size_t kViolationsKept = 100;
constexpr std::size_t kViolationsPrinted = 5;

// With `%p` each process of a job leaves a file of its own.
std::string PathOfThisProcess(std::string path) {
  if (const std::size_t at = path.find("%p"); at != std::string::npos)
    path.replace(at, 2, std::to_string(getpid()));
  return path;
}

// Runs after the program's own exit handlers and destructors.
__attribute__((destructor)) void WriteStatisticsAtExit() {
  const char* path = std::getenv(environment::kSimStats);
  if (path != nullptr && *path != '\0' && WasInitialised() && !IsForkedChild())
    TheStatistics().WriteFile(PathOfThisProcess(path).c_str());
}

}  // namespace

Statistics& TheStatistics() {
  static Statistics* const statistics = new Statistics;
  return *statistics;
}

void Level::Add(std::uint64_t bytes) {
  const std::uint64_t now = now_ += bytes;
  std::uint64_t peak = peak_;
  while (peak < now && !peak_.compare_exchange_weak(peak, now)) {
  }
}

void Statistics::SetIdentity(std::string profile, std::string clock) {
  const std::lock_guard lock(mutex_);
  profile_ = std::move(profile);
  clock_ = std::move(clock);
}

void Statistics::CountNotSupported(const char* function) {
  const std::lock_guard lock(mutex_);
  ++not_supported_[function];
}

void Statistics::CountKernelWithoutRule(const char* mangled_name) {
  const std::lock_guard lock(mutex_);
  ++without_rule_[mangled_name];
}

void Statistics::AddViolation(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (violations_.size() < kViolationsPrinted)
    std::fprintf(stderr, "simulated GPU: %s\n", text.c_str());
  if (violations_.size() < kViolationsKept) violations_.push_back(text);
}

std::uint64_t Statistics::Read(const std::string& key) const {
  const std::map<std::string, std::uint64_t> values = {
      {"simulated_ns", simulated_ns},
      {"device_bytes_capacity", device_bytes_capacity},
      {"device_bytes_peak", device_bytes.peak()},
      {"device_bytes_now", device_bytes.now()},
      {"host_bytes_peak", host_bytes.peak()},
      {"host_bytes_now", host_bytes.now()},
      {"kernels", kernels},
      {"h2d_bytes", h2d_bytes},
      {"d2h_bytes", d2h_bytes},
      {"d2d_bytes", d2d_bytes},
      {"vmm_creates", vmm_creates},
      {"vmm_maps", vmm_maps},
      {"vmm_set_accesses", vmm_set_accesses},
      {"vmm_unmaps", vmm_unmaps},
      {"vmm_releases", vmm_releases},
      {"driver_busy_ns", driver_busy_ns},
      {"unmapped_while_in_use", unmapped_while_in_use},
      {"illegal_accesses", illegal_accesses},
  };
  const auto found = values.find(key);
  if (found != values.end()) return found->second;
  for (std::size_t i = 0; i < device_count; ++i) {
    if (key == "device_bytes_now." + std::to_string(i)) return bytes_of_device[i].now();
    if (key == "device_bytes_peak." + std::to_string(i)) return bytes_of_device[i].peak();
    if (key == "contexts." + std::to_string(i))
      return static_cast<std::uint64_t>(contexts_of_device[i].load());
  }
  return ~std::uint64_t{0};
}

std::string Statistics::DevicesJson() const {
  std::string json = "\"devices\":[";
  for (std::size_t i = 0; i < device_count; ++i) {
    json.append(i == 0 ? "" : ",");
    json.append("{\"bytes_peak\":").append(std::to_string(bytes_of_device[i].peak()));
    json.append(",\"bytes_now\":").append(std::to_string(bytes_of_device[i].now())).append("}");
  }
  return json + "]";
}

std::string Statistics::WithoutRuleJson() const {
  std::map<std::string, std::uint64_t> launches;
  for (const auto& [name, count] : without_rule_) launches[Demangled(name)] += count;
  std::string json = "\"kernels_without_rule\":{";
  const char* comma = "";
  for (const auto& [name, count] : launches) {
    json.append(comma).append(JsonQuoted(name)).append(":").append(std::to_string(count));
    comma = ",";
  }
  return json + "}";
}

std::string Statistics::Json() const {
  const std::lock_guard lock(mutex_);
  std::string json =
      "{\"schema\":1,\"profile\":" + JsonQuoted(profile_) + ",\"clock\":" + JsonQuoted(clock_);
  for (const char* key :
       {"simulated_ns", "device_bytes_capacity", "device_bytes_peak", "device_bytes_now",
        "host_bytes_peak", "host_bytes_now", "kernels", "h2d_bytes", "d2h_bytes", "d2d_bytes",
        "vmm_creates", "vmm_maps", "vmm_set_accesses", "vmm_unmaps", "vmm_releases",
        "driver_busy_ns", "unmapped_while_in_use", "illegal_accesses"}) {
    json.append(",\"").append(key).append("\":").append(std::to_string(Read(key)));
  }
  json.append(",").append(DevicesJson()).append(",\"not_supported\":{");
  const char* comma = "";
  for (const auto& [name, count] : not_supported_) {
    json.append(comma).append(JsonQuoted(name)).append(":").append(std::to_string(count));
    comma = ",";
  }
  json.append("},").append(WithoutRuleJson()).append(",\"violations\":[");
  comma = "";
  for (const auto& text : violations_) {
    json.append(comma).append(JsonQuoted(text));
    comma = ",";
  }
  return json + "]}\n";
}

void Statistics::WriteFile(const char* path) const {
  const base::Status written = base::WriteFile(path, Json());
  if (!written.ok())
    std::fprintf(stderr, "simulated GPU: the statistics: %s\n", written.text().c_str());
}

}  // namespace spillway::simulator

extern "C" __attribute__((visibility("default"))) unsigned long long spillway_sim_read(
    const char* key) {
  return spillway::simulator::TheStatistics().Read(key);
}
