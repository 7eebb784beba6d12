// Host time, device time, medians, several processes at the same moment.
//
// Called by: the probe's cases, on their thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tests/contract/device.h"
#include "tests/contract/simulated.h"

namespace spillway::probe {

using contract::kMiB;

// On the simulated driver, moving gigabytes would only measure this machine's processor.
inline bool Simulated() { return contract::DriverIsSimulated(); }

double MicrosecondsSince(std::chrono::steady_clock::time_point start);

// Device milliseconds between two events around `work`, which enqueues into `stream`.
double DeviceMs(CUstream stream, const std::function<void()>& work);

// Reports each operation's median as "<prefix> <operation>" in microseconds.
class Durations {
 public:
  // Runs `call`, which must succeed, and adds its host duration to `operation`.
  void Time(const std::string& operation, const std::function<CUresult()>& call);
  void Report(const std::string& prefix) const;

 private:
  struct Series {
    std::string operation;
    std::vector<double> microseconds;
  };
  std::vector<Series> series_;
};

// Starts `body(index)` in `count` forked processes at the same moment, and waits for them. Must be
// called before this process initialises the driver. `prepare` runs in each before that moment.
void InProcessesAtOnce(int count, const std::function<void(int)>& prepare,
                       const std::function<void(int)>& body);

double GigabytesPerSecond(double bytes, double milliseconds);

}  // namespace spillway::probe
