// Memory that any process uses on the node's devices now. Called by several threads of the HTTP
// server. NVML may be slow, so a concurrent caller gets an empty answer.
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
  explicit UsedMemory(bool is_asked) : is_asked_(is_asked) {}

  // By UUID.
  std::map<std::string, int64_t> Read() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!is_asked_ || !lock) return {};
    if (!nvml_) nvml_.emplace();
    return nvml_->UsedBytes();
  }

 private:
  const bool is_asked_;
  std::mutex mutex_;
  std::optional<Nvml> nvml_;  // guarded by mutex_; made by the first call
};

}  // namespace spillway::agent
