// Launches a registered kernel: the single path from the runtime's launch forms to the driver's.
#pragma once

#include "simulator/runtime/registry.h"

namespace spillway::simulator::runtime {

cudaError_t Launch(const DriverTable& driver, const void* function, dim3 grid, dim3 block,
                   void** arguments, std::size_t shared_bytes, cudaStream_t stream);
cudaError_t LaunchCooperative(const DriverTable& driver, const void* function, dim3 grid,
                              dim3 block, void** arguments, std::size_t shared_bytes,
                              cudaStream_t stream);
cudaError_t LaunchConfigured(const DriverTable& driver, const cudaLaunchConfig_t* config,
                             const void* function, void** arguments);

// Attribute lists have the same layout in both APIs.
CUlaunchConfig DriverConfig(const cudaLaunchConfig_t& config);

}  // namespace spillway::simulator::runtime
