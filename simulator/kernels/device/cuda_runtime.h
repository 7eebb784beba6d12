// Stands in for NVIDIA's cuda_runtime.h when a .cu file is compiled by g++ for the simulator: the
// real header, and the device vocabulary that nvcc would have built in.
//
// Included by: every .cu file that tools/simkernels compiles, before anything else. Needs -I to
// this folder before the toolkit's. Never seen by nvcc.
#pragma once

#include_next <cuda_runtime.h>

#include "simulator/kernels/device/qualifiers.h"

#include "simulator/kernels/device/atomics.h"
#include "simulator/kernels/device/half.h"
#include "simulator/kernels/device/intrinsics.h"
#include "simulator/kernels/device/kernel.h"
#include "simulator/kernels/device/runtime_templates.h"
#include "simulator/kernels/device/surfaces.h"
#include "simulator/kernels/device/tensor_maps.h"
#include "simulator/kernels/device/textures.h"
#include "simulator/kernels/device/threads.h"
#include "simulator/kernels/device/warps.h"
