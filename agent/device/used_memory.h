// What is used of the node's devices at this moment, by whomever: for who looks at the node.
//
// Called by the HTTP server's threads, several at once; NVML may take its time, and whoever comes
// meanwhile goes without.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "agent/device/nvml.h"

namespace spillway::agent {

class UsedMemory {
 public:
  // `is_asked`: false where the operator does not want NVML to be asked at all.
  explicit UsedMemory(bool is_asked) : is_asked_(is_asked) {}

  // By UUID; nothing of devices that nobody knows.
  std::map<std::string, int64_t> Read() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!is_asked_ || !lock) return {};
    if (!nvml_) nvml_.emplace();
    return nvml_->UsedBytes();
  }

 private:
  const bool is_asked_;
  std::mutex mutex_;
  std::optional<Nvml> nvml_;  // guarded by mutex_; from the first question on
};

}  // namespace spillway::agent
