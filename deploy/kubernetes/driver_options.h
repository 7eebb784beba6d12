// The command line of `spillway-kubernetes`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace spillway::kubernetes {

struct DriverOptions {
  std::string node;
  std::string agent_socket = "/run/spillway/agent.sock";
  std::string job_socket = "/run/spillway/jobs/agent.sock";
  std::string library = "/usr/lib/spillway/libspillway.so";
  std::string kubelet_folder = "/var/lib/kubelet";
  std::string cdi_folder = "/var/run/cdi";
  std::string gpu_folder = "/proc/driver/nvidia/gpus";
  std::string instance;
  std::string api_server, token_file, ca_file;  // api_server empty: as kubelet tells a pod
  int slots = 0;
  bool gives_gpus = true, set_frameworks = true, serves_claims = true;
  bool probe = false, help = false, version = false;
};

base::Result<DriverOptions> ReadDriverOptions(const std::vector<std::string>& arguments);
std::string DriverHelp();

}  // namespace spillway::kubernetes
