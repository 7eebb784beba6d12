// Counts the processes on the devices, with an NVML that may not work yet, or no more. On one
// thread.
//
// Invariants
//  1. A library that does not work, or tells of no device after it had, is opened anew.
//  2. A loss is noted once, and so is its end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/node/device_processes.h"

namespace spillway::agent {

// An opened library.
class ProcessSource {
 public:
  virtual ~ProcessSource() = default;
  virtual bool works() const = 0;
  virtual DeviceProcesses Count() const = 0;
};

class ProcessCounter {
 public:
  using Open = std::function<std::unique_ptr<ProcessSource>()>;

  explicit ProcessCounter(Open open) : open_(std::move(open)) {}

  std::shared_ptr<const DeviceProcesses> Count();
  // For the log.
  std::vector<std::string> TakeNotes() { return std::exchange(notes_, {}); }

 private:
  const Open open_;
  std::unique_ptr<ProcessSource> source_;
  bool has_told_ = false, is_lost_ = false;
  std::vector<std::string> notes_;
};

}  // namespace spillway::agent
