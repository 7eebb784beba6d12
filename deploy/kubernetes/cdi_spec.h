// CDI specifications (Container Device Interface, 0.5.0): what a container gets by naming a device.
// Pure.
//
// base/container_edits.h says what is mounted and set. Runtimes set these variables over the
// image's and the pod's own.
//
// Invariants
//  1. A device's name has its claim's uid, so it is never used again: runtimes cache what they
//  read.
//  2. No budget is in the container's environment, which is the tenant's. The agent has it.
#pragma once

#include <string>
#include <vector>

#include "deploy/kubernetes/driver_state.h"

namespace spillway::kubernetes {

struct Injection {
  std::string library = "/usr/lib/spillway/libspillway.so";  // on the host
  std::string job_socket = "/run/spillway/jobs/agent.sock";  // on the host; of all jobs
  bool set_frameworks = true;  // tensors allocated one by one (base/framework_settings.h)
};

std::string ClaimSpec(const ClaimRecord& claim, const Injection& injection);
std::string ClaimSpecFileOf(const std::string& uid);  // a file's name
// The uid in such a name; empty: another file.
std::string ClaimInFileName(const std::string& file);
std::string ClaimDeviceOf(const std::string& uid, const std::string& device);

// For containers of the device plugin, which have no claim.
std::string SlotSpec(const Injection& injection);
inline constexpr char kSlotSpecFile[] = "k8s.spillway.dev-slot.json";
inline constexpr char kSlotDevice[] = "k8s.spillway.dev/slot=gpu";

}  // namespace spillway::kubernetes
