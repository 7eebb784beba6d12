// Asks NVML again and again which processes hold device memory, on a thread of its own: NVML may be
// slow, or hang.
//
// Invariants
//  1. Latest never waits. What is older than kMostAgeNs is not told.
//  2. The destructor does not wait for NVML.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/node/device_processes.h"

namespace spillway::agent {

class ProcessWatch {
 public:
  static constexpr int64_t kMostAgeNs = 30'000'000'000;

  explicit ProcessWatch(int64_t interval_ns);
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  // Null: there is no count, or none of late.
  std::shared_ptr<const DeviceProcesses> Latest() const;
  // For the log; each is told once.
  std::vector<std::string> TakeNotes();

 private:
  struct Shared;
  static void Run(Shared& shared, int64_t interval_ns);

  const std::shared_ptr<Shared> shared_;  // also the thread's, which may outlive this object
};

}  // namespace spillway::agent
