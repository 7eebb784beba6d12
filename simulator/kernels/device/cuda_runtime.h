// Replaces NVIDIA's cuda_runtime.h when g++ compiles a .cu file for the simulator: adds the device
// vocabulary, which nvcc has built in. tools/simkernels includes it before anything else.
#pragma once

#include_next <cuda_runtime.h>

#include "simulator/kernels/device/qualifiers.h"

#include "simulator/kernels/device/atomics.h"
#include "simulator/kernels/device/device_runtime.h"
#include "simulator/kernels/device/half.h"
#include "simulator/kernels/device/inline_ptx.h"
#include "simulator/kernels/device/intrinsics.h"
#include "simulator/kernels/device/kernel.h"
#include "simulator/kernels/device/rounding.h"
#include "simulator/kernels/device/runtime_templates.h"
#include "simulator/kernels/device/surfaces.h"
#include "simulator/kernels/device/tensor_maps.h"
#include "simulator/kernels/device/textures.h"
#include "simulator/kernels/device/threads.h"
#include "simulator/kernels/device/warps.h"

// For the program's own headers. The toolkit's, above, take the parts for other compilers.
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ (CUDART_VERSION / 1000)
#define __CUDACC_VER_MINOR__ (CUDART_VERSION % 1000 / 10)
#define __CUDACC_VER_BUILD__ 0
