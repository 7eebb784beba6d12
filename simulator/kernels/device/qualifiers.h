// CUDA's declaration qualifiers. Blocks run one after another on one thread, so shared memory is
// static memory of the function.
#pragma once

#undef __host__
#undef __device__
#undef __global__
#undef __shared__
#undef __constant__
#undef __managed__
#undef __launch_bounds__
#undef __grid_constant__
#undef __maxnreg__
#undef __cluster_dims__
#undef __forceinline__

#define __host__
#define __device__
// A kernel nobody launches here may be launched by name.
#define __global__ __attribute__((used))
// The tag tells simkernels that the variable is part of the block.
#define __shared__ static __attribute__((abi_tag("spillway_shared")))
#define __constant__
#define __managed__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __builtin_assume(condition)
#define SPILLWAY_SIMULATED_KERNELS 1
// __CUDA_ARCH__ in device code: simkernels replaces the name there.
#ifndef SPILLWAY_CUDA_ARCH
#define SPILLWAY_CUDA_ARCH 800
#endif
