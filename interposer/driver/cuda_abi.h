// The interposer's only include of cuda.h: every function of libcuda.so.1 under its exact name.
//
// cuda.h hides the binary interface behind macros. `cuMemAlloc` means cuMemAlloc_v2; with
// per-thread streams `cuLaunchKernel` means cuLaunchKernel_ptsz. A hook must have the exported
// name. The toolkit's own switch __CUDA_API_VERSION_INTERNAL removes all renaming macros. It
// declares each of the 637 symbols of the 13.0 stub (32-bit forms, _v2 to _v4, _ptds, _ptsz).
// tools/symbols.py fails if a later header has others.
// Invariant: inside the interposer a name means the exported symbol of that name.
#pragma once

#ifdef __cuda_cuda_h__
#error "cuda.h was included before cuda_abi.h: its names would mean other symbols"
#endif

#define __CUDA_API_VERSION_INTERNAL 1
// Keeps the enums as users see them, without the switch's ..._MAX enumerators.
#define __CUDA_API_VERSION_INTERNAL_ODR 1

#include <cuda.h>
#include <cudaProfiler.h>

#if CUDA_VERSION < 13000
#error "Spillway's hooks name functions of the CUDA 13.0 headers; older headers do not declare them"
#endif
