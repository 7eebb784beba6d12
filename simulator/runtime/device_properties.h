// Fills cudaDeviceProp from the attributes of an initialised driver.
#pragma once

#include "simulator/runtime/entry.h"

namespace spillway::simulator::runtime {

cudaError_t FillProperties(const DriverTable& driver, cudaDeviceProp* properties, int device);

}  // namespace spillway::simulator::runtime
