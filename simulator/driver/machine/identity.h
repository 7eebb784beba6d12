// What simulated devices are called: by UUID and by place on the bus, the same to the driver and to
// NVML.
#pragma once

#include <array>
#include <string>

#include "simulator/driver/machine/profile.h"

namespace spillway::simulator {

using DeviceUuid = std::array<unsigned char, 16>;

DeviceUuid UuidOf(const Profile& profile, int device);
int BusOf(int device);
// "0000:01:00.0"
std::string BusIdOf(int device);

}  // namespace spillway::simulator
