// Asks a CUDA driver about its first device, and for all UUIDs, in a short-lived child process. The
// launcher becomes the job, so it must not carry a driver's threads or open devices, nor hang or
// crash with one.
//
// Invariants
//  1. The command loads a driver nowhere else.
//  2. The child writes only the answer: its standard output and error go to /dev/null.
//  3. It declares the driver functions that it calls itself: the command builds without the CUDA
//     headers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/environment_changes.h"

namespace spillway::cli {

// CUDA 12.4, the first driver with cuFuncGetParamInfo, which Spillway needs.
inline constexpr int kOldestDriverVersion = 12040;

std::string DriverVersionText(int driver_version);

enum class ProbeOutcome {
  kReady,
  kNoDriver,      // dlopen failed; `message` has the loader's error
  kNotADriver,    // the library lacks the driver's functions
  kDriverFailed,  // a call failed: `driver_result` has the error, `message` the call
  kCrashed,       // the child died or never answered, see `message`
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
      device_uuids;  // "GPU-...", of all devices; empty if the driver does not tell
  std::uint64_t device_bytes = 0;
  bool has_virtual_memory = false;  // support for cuMemCreate, cuMemMap and kin
  bool has_host_parking = false;    // VMM on host NUMA nodes
  bool has_fd_handles = false;
};

// `driver`: a path or "libcuda.so.1". `changes` apply to the child only.
AcceleratorFacts ProbeAccelerator(const std::string& driver, const EnvironmentChanges& changes);

struct DriverResultAdvice {
  std::string meaning;
  std::string remedy;
};
DriverResultAdvice AdviceForDriverResult(int driver_result);

}  // namespace spillway::cli
