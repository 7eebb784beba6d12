// Checks before a job begins that its required agent answers and knows its device.
#pragma once

#include <string>
#include <vector>

namespace spillway::cli {

// Throws Failure (125) if the agent does not answer or knows none of these devices. Ignores devices
// without a UUID (""): their memory is refused when the job begins.
void CheckAgentTakes(const std::string& address, const std::vector<std::string>& device_uuids);

// In any spelling of its UUID.
bool NamesDevice(const std::string& status, const std::string& uuid);

}  // namespace spillway::cli
