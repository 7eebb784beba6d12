// Fills cudaDeviceProp from the driver's device attributes.
//
// Called on any thread with an initialised driver.
#pragma once

#include "simulator/runtime/entry.h"

namespace spillway::simulator::runtime {

cudaError_t FillProperties(const DriverTable& driver, cudaDeviceProp* properties, int device);

}  // namespace spillway::simulator::runtime
