// The process that asks the GPU driver for slabs, one after the other. It opens the driver that
// $SPILLWAY_DRIVER names, else libcuda.so.1. It has no device context: none of its calls needs one
// (cuda.h, the errors of each).
//
// Failures are text for an operator in the reply: no driver, no device, no exportable host memory
// (CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, since CUDA 12.2), a refused
// export.
#pragma once

namespace spillway::agent {

inline constexpr char kSlabWorkerOption[] = "--slab-worker";

int RunSlabWorker();

}  // namespace spillway::agent
