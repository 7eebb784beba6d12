// Device-side random numbers: the toolkit's own curand_kernel.h.
#pragma once

#include "simulator/kernels/device/threads.h"

// Outside of device code this part declares threadIdx and its kin for itself.
#define __CUDA_ARCH__ SPILLWAY_CUDA_ARCH
#include <curand_mtgp32_kernel.h>
#undef __CUDA_ARCH__
#include_next <curand_kernel.h>
