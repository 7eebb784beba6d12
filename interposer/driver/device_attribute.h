// What a device promises.
#pragma once

#include "interposer/driver/driver_api.h"

namespace spillway::driver {

// False, too, if the driver does not know the attribute.
inline bool HasAttribute(CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  return Driver().cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS && value != 0;
}

}  // namespace spillway::driver
