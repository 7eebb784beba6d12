#include "agent/device/process_watch.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "agent/device/nvml.h"
#include "base/clock.h"
#include "base/file.h"

namespace spillway::agent {
namespace {

std::string CommandOf(pid_t pid) {
  std::string name =
      base::ReadFile("/proc/" + std::to_string(pid) + "/comm").optional().value_or("");
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

// The folder of its group in the one hierarchy of version 2. Other hierarchies have no such limits.
std::string GroupOf(pid_t pid) {
  const std::string groups =
      base::ReadFile("/proc/" + std::to_string(pid) + "/cgroup").optional().value_or("");
  const size_t line = groups.starts_with("0::/") ? 0 : groups.find("\n0::/");
  if (line == std::string::npos) return "";
  const size_t begin = groups.find('/', line);
  return "/sys/fs/cgroup" + groups.substr(begin, groups.find('\n', begin) - begin);
}

std::shared_ptr<const DeviceProcesses> Count(const Nvml& nvml) {
  auto processes = std::make_shared<DeviceProcesses>(nvml.UsedByProcesses());
  for (ProcessUse& use : processes->uses) {
    use.command = CommandOf(use.pid);
    use.group = GroupOf(use.pid);
    use.limits = nvml.LimitsOf(use.uuid, use.group);
  }
  return processes;
}

}  // namespace

struct ProcessWatch::Shared {
  mutable std::mutex mutex;
  std::condition_variable ended;
  bool ends = false;                              // guarded by mutex
  std::shared_ptr<const DeviceProcesses> latest;  // guarded by mutex
  uint64_t counted_ns = 0;                        // guarded by mutex
};

ProcessWatch::ProcessWatch(int64_t interval_ns) : shared_(std::make_shared<Shared>()) {
  std::thread([shared = shared_, interval_ns] { Run(*shared, interval_ns); }).detach();
}

ProcessWatch::~ProcessWatch() {
  const std::lock_guard lock(shared_->mutex);
  shared_->ends = true;
  shared_->ended.notify_all();
}

std::shared_ptr<const DeviceProcesses> ProcessWatch::Latest() const {
  const std::lock_guard lock(shared_->mutex);
  const uint64_t age_ns = base::MonotonicNs() - shared_->counted_ns;
  return age_ns <= static_cast<uint64_t>(kMostAgeNs) ? shared_->latest : nullptr;
}

// A library that does not work yet is opened anew: the driver may be loaded later.
void ProcessWatch::Run(Shared& shared, int64_t interval_ns) {
  std::optional<Nvml> nvml;
  std::unique_lock lock(shared.mutex);
  while (!shared.ends) {
    lock.unlock();
    if (!nvml || !nvml->works()) nvml.emplace();
    std::shared_ptr<const DeviceProcesses> counted = Count(*nvml);
    lock.lock();
    shared.latest = std::move(counted);
    shared.counted_ns = base::MonotonicNs();
    shared.ended.wait_for(lock, std::chrono::nanoseconds(interval_ns), [&] { return shared.ends; });
  }
}

}  // namespace spillway::agent
