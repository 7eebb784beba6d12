// The only include of cuda.h in the interposer: every function that libcuda.so.1 exports, under its
// exact name.
//
// cuda.h hides the binary interface behind macros: `cuMemAlloc` means cuMemAlloc_v2, and with
// per-thread streams `cuLaunchKernel` means cuLaunchKernel_ptsz. A hook must be spelled as the
// driver exports it. The toolkit's own switch for that, __CUDA_API_VERSION_INTERNAL, declares each
// of the 637 symbols of the 13.0 stub (32-bit forms, _v2 to _v4, _ptds, _ptsz) and removes all
// renaming macros; tools/symbols.py fails if a later header has others.
//
// Invariant: inside the interposer a name means the exported symbol of that name, never another
// version of it.
#pragma once

#ifdef __cuda_cuda_h__
#error "cuda.h was included before cuda_abi.h: its names would mean other symbols"
#endif

#define __CUDA_API_VERSION_INTERNAL 1
// Without the ..._MAX enumerators that the switch would add: the enums stay those of a user's
// program.
#define __CUDA_API_VERSION_INTERNAL_ODR 1

#include <cuda.h>
#include <cudaProfiler.h>

#if CUDA_VERSION < 13000
#error "Spillway's hooks name functions of the CUDA 13.0 headers; older headers do not declare them"
#endif
