#include "agent/device/process_counter.h"

namespace spillway::agent {

std::shared_ptr<const DeviceProcesses> ProcessCounter::Count() {
  if (source_ == nullptr || !source_->works() || is_lost_) {
    source_.reset();  // before the next one: both would be the same library
    source_ = open_();
  }
  auto processes = std::make_shared<const DeviceProcesses>(source_->Count());
  const bool tells = !processes->devices.empty(), was_lost = is_lost_;
  has_told_ = has_told_ || tells;
  is_lost_ = has_told_ && !tells;
  if (is_lost_ && !was_lost)
    notes_.emplace_back(
        "NVML tells of no device any more: memory of foreign processes is unknown, "
        "and the driver's limits hold as last read; it is opened anew");
  if (was_lost && !is_lost_) notes_.emplace_back("NVML tells of its devices again");
  return processes;
}

}  // namespace spillway::agent
