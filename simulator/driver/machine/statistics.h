// Counters, peaks and rule violations, written as JSON at exit.
//
// Any thread may count at any time, also while the process exits. Counters are atomics; the texts
// have their own lock.
//
// Invariants
//  1. A peak is never below the value it follows.
//  2. Writing the file needs neither the engine nor its mutex: statistics survive an exit anywhere.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace spillway::simulator {

class Level {
 public:
  void Add(std::uint64_t bytes);
  void Subtract(std::uint64_t bytes) { now_ -= bytes; }
  std::uint64_t now() const { return now_; }
  std::uint64_t peak() const { return peak_; }

 private:
  std::atomic<std::uint64_t> now_{0};
  std::atomic<std::uint64_t> peak_{0};
};

class Statistics {
 public:
  static constexpr std::size_t kMostDevices = 8;

  Level device_bytes;  // of all devices
  std::array<Level, kMostDevices> bytes_of_device;
  std::array<std::atomic<int>, kMostDevices> contexts_of_device{};
  Level host_bytes;                                     // pinned, managed and host-located memory
  std::atomic<std::uint64_t> device_bytes_capacity{0};  // of each device
  std::atomic<std::size_t> device_count{0};
  std::atomic<std::uint64_t> simulated_ns{0};
  std::atomic<std::uint64_t> kernels{0};
  std::atomic<std::uint64_t> h2d_bytes{0};
  std::atomic<std::uint64_t> d2h_bytes{0};
  std::atomic<std::uint64_t> d2d_bytes{0};
  // Expensive calls, and the virtual host time of these and of pinning.
  std::atomic<std::uint64_t> vmm_creates{0};
  std::atomic<std::uint64_t> vmm_maps{0};
  std::atomic<std::uint64_t> vmm_set_accesses{0};
  std::atomic<std::uint64_t> vmm_unmaps{0};
  std::atomic<std::uint64_t> vmm_releases{0};
  std::atomic<std::uint64_t> driver_busy_ns{0};
  std::atomic<std::uint64_t> unmapped_while_in_use{0};
  std::atomic<std::uint64_t> illegal_accesses{0};

  void SetIdentity(std::string profile, std::string clock);
  void CountNotSupported(const char* function);
  // The name lives as long as the process.
  void CountKernelWithoutRule(const char* mangled_name);
  void AddViolation(const std::string& text);  // printed on standard error too, the first few times

  // `key` is a key of the JSON file, or "device_bytes_now.1" for device 1; ~0 for an unknown key.
  std::uint64_t Read(const std::string& key) const;
  void WriteFile(const char* path) const;

 private:
  std::string Json() const;
  std::string DevicesJson() const;
  std::string WithoutRuleJson() const;

  mutable std::mutex mutex_;
  std::string profile_;
  std::string clock_;
  std::map<std::string, std::uint64_t> not_supported_;
  std::map<const char*, std::uint64_t> without_rule_;  // by the name's address, for speed
  std::vector<std::string> violations_;
};

Statistics& TheStatistics();

}  // namespace spillway::simulator
