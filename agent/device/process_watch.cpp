#include "agent/device/process_watch.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "agent/device/nvml.h"
#include "agent/device/process_counter.h"
#include "agent/device/process_list.h"
#include "base/clock.h"

namespace spillway::agent {
namespace {

class NvmlSource : public ProcessSource {
 public:
  bool works() const override { return nvml_.works(); }
  DeviceProcesses Count() const override {
    DeviceProcesses processes = nvml_.UsedByProcesses();
    for (ProcessUse& use : processes.uses) {
      use.command = CommandOf(use.pid);
      use.group = GroupOf(use.pid);
      use.limits = nvml_.LimitsOf(use.uuid, use.group);
    }
    return processes;
  }

 private:
  const Nvml nvml_;
};

}  // namespace

struct ProcessWatch::Shared {
  mutable std::mutex mutex;
  std::condition_variable ended;
  bool ends = false;                              // guarded by mutex
  std::shared_ptr<const DeviceProcesses> latest;  // guarded by mutex
  uint64_t counted_ns = 0;                        // guarded by mutex
  std::vector<std::string> notes;                 // guarded by mutex
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

std::vector<std::string> ProcessWatch::TakeNotes() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->notes, {});
}

void ProcessWatch::Run(Shared& shared, int64_t interval_ns) {
  ProcessCounter counter([] { return std::make_unique<NvmlSource>(); });
  std::unique_lock lock(shared.mutex);
  while (!shared.ends) {
    lock.unlock();
    std::shared_ptr<const DeviceProcesses> counted = counter.Count();
    lock.lock();
    shared.latest = std::move(counted);
    shared.counted_ns = base::MonotonicNs();
    for (std::string& note : counter.TakeNotes()) shared.notes.push_back(std::move(note));
    shared.ended.wait_for(lock, std::chrono::nanoseconds(interval_ns), [&] { return shared.ends; });
  }
}

}  // namespace spillway::agent
