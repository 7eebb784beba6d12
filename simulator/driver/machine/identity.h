// UUIDs and bus addresses of simulated devices, the same for the driver and for NVML.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "simulator/driver/machine/profile.h"

namespace spillway::simulator {

using DeviceUuid = std::array<unsigned char, 16>;

DeviceUuid UuidOf(const Profile& profile, int device);
// "GPU-..." of each.
std::vector<std::string> UuidsOf(const Profile& profile, int device_count);
int BusOf(int device);
// "0000:01:00.0"
std::string BusIdOf(int device);

}  // namespace spillway::simulator
