#include "simulator/runtime/cuda12/device_properties.h"

#include <cstring>

namespace spillway::simulator::runtime {

DeviceProperties12 PropertiesOf(const DriverTable& driver, const cudaDeviceProp& newer,
                                int device) {
  DeviceProperties12 properties{};
#define SPILLWAY_KEPT(member) \
  std::memcpy(&properties.member, &newer.member, sizeof properties.member);
#define SPILLWAY_OLD(member, attribute) \
  driver.cuDeviceGetAttribute(&properties.member, CU_DEVICE_ATTRIBUTE_##attribute, device);
  SPILLWAY_PROPERTIES_12(SPILLWAY_KEPT, SPILLWAY_OLD)
#undef SPILLWAY_KEPT
#undef SPILLWAY_OLD
  return properties;
}

}  // namespace spillway::simulator::runtime
