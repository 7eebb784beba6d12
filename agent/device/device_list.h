// This node's GPUs: from NVML where it is installed (opened at run time), and from the
// configuration.
#pragma once

#include <string>
#include <vector>

#include "agent/config/config.h"
#include "agent/node/table/node_facts.h"

namespace spillway::agent {

// Without NVML only configured devices are found.
std::vector<NodeDevice> ListDevices(const Config& config, std::vector<std::string>* problems);

}  // namespace spillway::agent
