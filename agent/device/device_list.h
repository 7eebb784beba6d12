// Which GPUs this node has: from NVML where it is installed (opened at run time), and from the
// configuration.
//
// Called once at start. Nothing here is kept open.
#pragma once

#include <string>
#include <vector>

#include "agent/config/config.h"
#include "agent/node/node.h"

namespace spillway::agent {

// What went wrong is added to `problems`; devices that NVML does not know are not found without the
// configuration.
std::vector<NodeDevice> ListDevices(const Config& config, std::vector<std::string>* problems);

}  // namespace spillway::agent
