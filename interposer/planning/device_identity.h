// What names a device to the agent. Asks the driver.
#pragma once

#include <string.h>

#include <cstdint>

#include "interposer/driver/driver_api.h"
#include "protocol/message.h"

namespace spillway::interposer {

inline protocol::DeviceUuid UuidOf(int device) {
  CUuuid uuid{};
  protocol::DeviceUuid bytes{};
  if (driver::Driver().cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS)
    memcpy(bytes.data(), &uuid, bytes.size());
  return bytes;
}

inline std::int64_t MemoryOf(int device) {
  size_t bytes = 0;
  return driver::Driver().cuDeviceTotalMem_v2(&bytes, device) == CUDA_SUCCESS
             ? static_cast<std::int64_t>(bytes)
             : 0;
}

}  // namespace spillway::interposer
