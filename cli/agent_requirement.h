// Whether the agent that a job must follow is there and knows its device, before the job begins.
//
// Called by `spillway run` where the agent is required; asks the agent once. One thread.
#pragma once

#include <string>
#include <vector>

namespace spillway::cli {

// Throws Failure (125) when the agent does not answer, or knows none of these devices. Devices
// without a UUID ("") are not checked: a job is refused their memory when it begins.
void CheckAgentTakes(const std::string& address, const std::vector<std::string>& device_uuids);

// Whether a document of the agent names the device, however its UUID is written.
bool NamesDevice(const std::string& status, const std::string& uuid);

}  // namespace spillway::cli
