// Asks a CUDA driver about its first device, in a short-lived child process.
//
// A child, because the launcher becomes the job: it must not carry a driver, its threads or its
// open devices into it, and a driver that hangs or crashes must not take the launcher with it. One
// thread; the child is reaped before return.
//
// Invariants
//  1. The only place in the command that loads a driver.
//  2. The child writes nothing but the answer: its standard output and error go to /dev/null.
//  3. Declares the few driver functions that it calls itself: the command builds without the CUDA
//  headers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/environment_changes.h"

namespace spillway::cli {

// CUDA 12.4, the first whose driver tells a kernel's parameters (cuFuncGetParamInfo); below it
// nothing can be managed.
inline constexpr int kOldestDriverVersion = 12040;

// "12.4" of 12040.
std::string DriverVersionText(int driver_version);

enum class ProbeOutcome {
  kReady,
  kNoDriver,      // dlopen failed; `message` is the loader's
  kNotADriver,    // loads, but lacks the functions
  kDriverFailed,  // a call failed; `driver_result` says how, `message` which
  kCrashed,       // the child died or never answered; `message` says which
};

struct AcceleratorFacts {
  ProbeOutcome outcome = ProbeOutcome::kCrashed;
  std::string message;
  std::string driver_path;  // as loaded, links resolved
  int driver_result = 0;    // CUresult
  int driver_version = 0;   // 13000 is CUDA 13.0
  int device_count = 0;
  std::string device_name;
  std::vector<std::string>
      device_uuids;  // "GPU-...", of all devices; empty where the driver does not say
  std::uint64_t device_bytes = 0;
  bool has_virtual_memory = false;  // the VMM group
  bool has_host_parking = false;    // VMM on host NUMA nodes
  bool has_fd_handles = false;
};

// `driver` is a path or "libcuda.so.1"; `changes` are made in the child only, before the driver is
// loaded.
AcceleratorFacts ProbeAccelerator(const std::string& driver, const EnvironmentChanges& changes);

// What a CUresult from starting the driver means and what to do about it, for people.
struct DriverResultAdvice {
  std::string meaning;
  std::string remedy;
};
DriverResultAdvice AdviceForDriverResult(int driver_result);

}  // namespace spillway::cli
