// The process that asks the GPU driver for slabs, one after the other, until nobody wants more.
//
// Main of a process of its own: it may die or stand still in the driver. It opens the driver that
// $SPILLWAY_DRIVER names, else libcuda.so.1, and has no context on any device: none of the calls
// that it makes asks for one (cuda.h, the errors that each names).
//
// What it cannot do it says in the reply, as text for an operator: no driver, no device, a driver
// or device without host memory that can be exported
// (CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, since CUDA 12.2), an export
// that is refused.
#pragma once

namespace spillway::agent {

// The option by which the agent's program is run as this.
inline constexpr char kSlabWorkerOption[] = "--slab-worker";

// Serves kSlabWorkerFile. The exit code.
int RunSlabWorker();

}  // namespace spillway::agent
